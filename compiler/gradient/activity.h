// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/gradient/single_assignment.h"

namespace heddle::compiler {

/// Which values of a function need adjoints: those that depend on what is asked for and on which the results
/// depend, each through operators that have a derivative there, or should have. What is no number that can
/// vary (an integer, a text, a truth value, a frame) needs none.
class Activity {
 public:
  /// `parameters`: what is asked for; `results`: variables, the final names.
  Activity(const SingleAssignment& code, const std::set<std::string>& parameters,
           const std::set<std::string>& results);

  bool IsActive(const std::string& variable) const { return variables_.contains(variable); }
  bool IsActive(int32_t block, NodeId node) const { return nodes_.contains({block, node}); }

 private:
  std::set<std::string, std::less<>> variables_;
  std::set<std::pair<int32_t, NodeId>> nodes_;
};

/// True if values of the type can vary by small steps, as far as the type is known.
bool CanVary(const ValueInfo& type);
/// What Operator::adjoints says of an input: "" of an operator without a derivative.
std::string_view AdjointOf(const Node& node, size_t input);
/// The variables of a step that hold its values; not its indexes.
std::vector<std::string> ValuesOf(const Block& step);

}  // namespace heddle::compiler
