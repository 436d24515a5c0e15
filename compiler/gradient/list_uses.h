// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/programs/program.h"

namespace heddle::compiler {

/// An element of a list that a function reads under a name or position that the script has:
/// as.matrix(model["W"]), as.scalar(model[2]).
struct ListElement {
  Scalar key;
  ListOperation operation = ListOperation::kAsMatrix;  ///< or kAsScalar
  SourcePosition position;                             ///< Of a place that reads it.

  /// As the script writes it, of this list.
  std::string NameIn(const std::string& list) const;
};

/// The variables of a function that are assigned at one place, to a literal.
std::map<std::string, Scalar> LiteralsOf(const Function& function);

/// The element that a step reads; nullopt if the step does something else, or the run tells which element.
std::optional<ListElement> ElementReadBy(const Block& step, const std::map<std::string, Scalar>& literals);

/// Of functions that call each other: the parameters that are lists of which no more is needed than such
/// elements. They are never assigned, and go nowhere else than into elements and into calls, for parameters
/// like them. A call needs all of these elements: what is read or passed on only in some calls, by a
/// condition that is the same in the calls of a recursion (a flag), keeps the list.
class ListUses {
 public:
  /// Of the functions that calls of `function` lead to, and of itself.
  ListUses(const Program& program, const std::string& function);

  /// By ListElement::NameIn("") those that the function and what it calls read of the parameter. nullptr if
  /// it is none of those lists.
  const std::map<std::string, ListElement>* ElementsOf(const std::string& function,
                                                       const std::string& parameter) const;
  /// Whether the function has such a parameter.
  bool HasAny(const std::string& function) const;

 private:
  using Key = std::pair<std::string, std::string>;  // function, parameter
  struct Use {
    bool is_elements = true;
    std::map<std::string, ListElement> elements;
    std::vector<Key> passed_for;
  };
  class Reader;

  std::map<Key, Use> uses_;
};

}  // namespace heddle::compiler
