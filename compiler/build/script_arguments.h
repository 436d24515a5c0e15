// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/values/scalar.h"

namespace heddle::compiler {

/// The literal that an argument of the command line stands for (language reference 1.7): exactly TRUE or
/// FALSE, else an int64, else a double by Java's rules, else a string without surrounding quotes and with
/// escapes processed.
Scalar ArgumentValue(const std::string& text);

}  // namespace heddle::compiler
