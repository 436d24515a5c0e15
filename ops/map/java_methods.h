// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "ops/map/java_regex.h"
#include "ops/map/java_value.h"

namespace heddle::ops {

/// A method that map() knows. The text or array that a method is called on is its first argument.
struct JavaMethod {
  std::string_view owner;  ///< "String" or "DoubleStream" of those called on a value, else a class.
  bool on_text;            ///< Called on a text, or on an array of numbers.
  std::string_view name;
  std::vector<JavaType> parameters;
  JavaType result;
  /// `arguments` have the types of the parameters. kFailedPrecondition, as Java throws.
  Result<JavaValue> (*run)(std::span<const JavaValue> arguments, const JavaRegex* regex);
  int regex = -1;  ///< The parameter that is a regular expression; `run` gets it parsed.
};

std::span<const JavaMethod> JavaMethods();

/// The first method of this name whose parameters take arguments of these types; nullptr when there is none.
const JavaMethod* FindJavaMethod(std::string_view owner, bool on_text, std::string_view name,
                                 std::span<const JavaType> arguments);

}  // namespace heddle::ops
