// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace heddle {

/// Whether name `a` comes before name `b` where digits in them are numbers: "part-2" before "part-10". Names
/// that differ only in zeros before a number, "a1" and "a01", come in the order of their bytes.
bool ComesBefore(std::string_view a, std::string_view b);

}  // namespace heddle
