// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/programs/text_format.h"
#include "engine/variables/variables.h"

// Variables as bytes, lists included: a text that says what they are, then their values in wire form.
namespace heddle::engine {

/// Appends what a variable is, without its values; what it is called stands before.
void AppendVariable(const Variable& variable, std::string* out);
Variable ReadVariable(TextReader& reader);

/// With its values, and back: for what travels at once. kDataLoss when these are no such bytes.
std::string EncodeVariable(const Variable& variable);
Result<Variable> DecodeVariable(std::string_view bytes);

}  // namespace heddle::engine
