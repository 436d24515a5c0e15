// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace heddle::compiler {

/// Algebra in DML. Single capital letters in `before` stand for any matrix; what is left of the graph must
/// have the bits of what was there.
struct Rule {
  std::string_view name;
  std::string_view before;
  std::string_view after;
};

/// All rules, in the order in which they are tried.
std::span<const Rule> Rules();

}  // namespace heddle::compiler
