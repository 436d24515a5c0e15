// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/programs/program.h"

namespace heddle::compiler {

/// What the value of a variable or node is made of, in a function that calls itself.
struct NumberFact {
  bool is_structural = false;    ///< A number made of the node, cells of the structure and constants alone.
  bool differs_by_node = false;  ///< Nodes of the structure may have different values.
  bool from_call = false;        ///< A result of a call of the function is in it.
  bool from_cell = false;        ///< A cell of a matrix parameter is in it.
  /// It changes by small steps with a parameter by which the function is differentiated: structural or not,
  /// operators compute it, so that it has a derivative.
  bool is_active = false;
};

/// Finds for each variable and node of a function what it is made of, by going over the blocks until nothing
/// changes.
class NumberFacts {
 public:
  /// `node_parameter`: index in function.parameters. `active`: the parameters by which the function is
  /// differentiated. `function` outlives it.
  NumberFacts(const Function& function, size_t node_parameter, std::set<std::string> active = {});

  /// By node of a graph of the function.
  std::vector<NumberFact> Of(const Graph& graph) const;
  NumberFact OfVariable(const std::string& name) const;
  /// Whether a variable is this parameter, unchanged: itself, or a copy of it.
  bool IsParameter(const std::string& variable, const std::string& parameter) const;
  /// The literal that a variable always is; nullptr where it is none.
  const Scalar* LiteralOf(const std::string& name) const;
  bool IsAssigned(const std::string& name) const { return assignments_.contains(name); }

 private:
  bool Follow(const std::vector<Block>& blocks);
  bool Meet(const std::string& name, const NumberFact& fact);
  NumberFact OfNode(const Graph& graph, NodeId id, const std::vector<NumberFact>& facts) const;
  bool IsMatrixParameter(const Graph& graph, NodeId id) const;

  const Function& function_;
  const std::string& node_;
  const std::set<std::string> active_;
  std::map<std::string, NumberFact> variables_;  // assigned ones
  std::map<std::string, int> assignments_;
  std::map<std::string, std::string> copies_;  // of variables assigned once
  std::map<std::string, Scalar> literals_;     // likewise
};

/// The bounds of an index that are one row (column): both the same node, or the same literal.
bool IsOnePosition(const Graph& graph, const Node& index, size_t first);

}  // namespace heddle::compiler
