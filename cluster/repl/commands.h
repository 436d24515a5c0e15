// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace heddle::cluster {

/// One of the lines that begin with ":".
struct Command {
  std::string_view name;      ///< ":type"
  std::string_view argument;  ///< "EXPR", "[NAME]" when it may be left out; "" when it takes none.
  std::string_view help;
};

/// All commands, in the order of the help.
std::span<const Command> Commands();

}  // namespace heddle::cluster
