// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::compiler {

/// The options of "read" or "write": the parameters of the operator that are attributes of its node.
std::vector<std::string> FileOptionsOf(std::string_view operator_name);

}  // namespace heddle::compiler
