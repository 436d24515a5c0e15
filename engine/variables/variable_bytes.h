// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/programs/text_format.h"
#include "engine/variables/variables.h"

// Variables as bytes, lists included: a text that says what they are, then the values of it in wire form.
namespace heddle::engine {

/// Appends what a variable is, without its values; what it is called stands before.
void AppendVariable(const Variable& variable, std::string* out);
Variable ReadVariable(TextReader& reader);
/// Hands the values to `sink`, piece by piece: a matrix is never copied whole. An error of `sink` ends it.
Status WriteValues(const Variable& variable, const std::function<Status(std::string_view bytes)>& sink);
/// Takes the values off the front of `bytes`; kDataLoss when they are not there.
Status TakeValues(std::string_view* bytes, Variable* variable);

/// Both in one, and back: for what travels at once. kDataLoss when these are no such bytes.
std::string EncodeVariable(const Variable& variable);
Result<Variable> DecodeVariable(std::string_view bytes);

}  // namespace heddle::engine
