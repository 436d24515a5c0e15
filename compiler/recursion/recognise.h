// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/optimize/names.h"
#include "compiler/parse/diagnostics.h"
#include "core/programs/program.h"
#include "ops/recursion/structure/structure_program.h"

namespace heddle::compiler {

/// A function that calls itself over a structure, so that what it decides and which nodes it calls follow
/// from the structure alone (docs/recursion.md): the structure program, which runs before all operators, and
/// the numbers that operators read of it.
struct Recursion {
  std::string function;
  size_t node_parameter = 0;        ///< The parameter that the calls change.
  bool is_forward = false;          ///< The function is the forward one of a derivative (DerivativeRole).
  ops::StructureProgram structure;  ///< Decisions, calls and numbers of a node.
  /// Scalar variables that differ from node to node and that `structure` computes: graphs read them as
  /// numbers.
  Names numbers;
  /// By block: the nodes whose values operators read as numbers, in the order in which they are given. Behind
  /// those of all blocks come the results of the function that are in `numbers`.
  std::map<int32_t, std::vector<NodeId>> given;
  /// An element that it reads of a list parameter, by a literal name or position; without a key, the elements
  /// that a number of the node says: all are of one size then, and become the rows of one matrix.
  struct Element {
    std::string list;
    std::optional<Scalar> key;
    std::string name() const;  ///< Of the variable that stands for it: "model[\"W\"]", "M0[]".
    /// Of one without a key: the variable with the number of rows of an element.
    std::string rows() const { return name() + ".rows"; }
    bool operator==(const Element&) const = default;
  };
  std::vector<Element> elements;
  Names free;  ///< Scalar parameters whose values no size depends on.

  /// The variables that it needs, parameters but for the node; elements in place of lists.
  std::vector<std::string> Inputs(const Function& function) const;
};

/// The variable that a step on lists has for an argument; "" for none.
const std::string& ArgumentOf(const Block& step, std::string_view argument);

/// What a look at a function has found.
struct Recognition {
  bool calls_itself = false;
  bool is_candidate = false;   ///< It goes over a structure: worth a word where it is not recognised.
  bool is_recognised = false;  ///< `recursion` is filled in.
  Recursion recursion;
  std::string condition;  ///< Else: the condition that does not hold, "C3" (docs/recursion.md),
  std::string reason;     ///< what is against it, with its line.
};

/// Looks at a function of a program after its passes. `key`: that of Program::functions. `active`: of a
/// forward function, the parameters by which it is differentiated.
Recognition Recognise(const std::string& key, const Function& function,
                      const std::set<std::string>& active = {});

/// "'rnn' is not compiled as structural recursion: the condition at line 17 uses 'score', ... (C3);
/// interpreted".
std::string NotRecognisedText(const Function& function, const Recognition& recognition);
/// Says so of each function that goes over a structure and is not recognised.
void WarnOfInterpreted(const Program& program, Diagnostics* diagnostics);

/// What was found at each function that calls itself, for people; `with_steps`, also the steps of its
/// structure program.
std::string ExplainRecursion(const Program& program, bool with_steps = false);

}  // namespace heddle::compiler
