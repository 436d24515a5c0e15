// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "ops/map/java_regex.h"
#include "ops/map/java_value.h"

namespace heddle::ops {

/// A call with its arguments. The value that a method is called on is the first of them.
struct JavaCall {
  std::span<const JavaValue> values;
  const JavaRegex* regex = nullptr;  ///< Of the argument that is a regular expression.
  /// The argument that is a function; unset where there is none.
  std::function<Result<JavaValue>(std::span<const JavaValue> arguments)> function;
  const std::atomic<bool>* cancelled = nullptr;  ///< For what may last; the result does not count then.

  const JavaValue& operator[](size_t i) const { return values[i]; }
  size_t size() const { return values.size(); }
  const std::u16string& Text(size_t i) const { return std::get<std::u16string>(values[i]); }
  int32_t Integer(size_t i) const { return std::get<int32_t>(values[i]); }
};

/// What a parameter that is a function takes and gives.
struct JavaSignature {
  std::vector<JavaType> takes;
  JavaType gives;
};

/// A method that map() knows.
struct JavaMethod {
  std::string_view owner;  ///< The class; of those called on a value, of the value.
  bool on_value;           ///< Called on a value, which is the first parameter.
  std::string_view name;   ///< "new" of a constructor.
  std::vector<JavaType> parameters;
  JavaType result;
  /// The arguments have the types of the parameters, and none is null but where a parameter is kAny or
  /// `takes_null` is set. kFailedPrecondition, as Java throws.
  Result<JavaValue> (*run)(const JavaCall& call);
  // Unusual ones are set by the functions of java_method_table.h.
  int regex = -1;             ///< The parameter that is a regular expression; `run` gets it parsed.
  bool is_boxed = false;      ///< The result is an object (Integer, Double, ...): methods are called on it.
  bool repeats_last = false;  ///< The last parameter stands for any number of arguments, none as well.
  bool takes_null = false;    ///< Behind the first argument.
  std::optional<JavaSignature> function = std::nullopt;  ///< Of the parameter kFunction.
};

/// Constants of classes: Math.PI, Integer.MAX_VALUE, ChronoUnit.DAYS.
struct JavaConstant {
  std::string_view owner, name;
  JavaValue value;
};

/// The first method of this name whose parameters take arguments of these types, and a function that gives
/// `function_result`; nullptr when there is none.
const JavaMethod* FindJavaMethod(std::string_view owner, bool on_value, std::string_view name,
                                 std::span<const JavaType> arguments,
                                 std::optional<JavaType> function_result);
/// What a function takes that is the argument `index` of such a method; nullptr where none takes one.
const JavaSignature* FindJavaSignature(std::string_view owner, bool on_value, std::string_view name,
                                       size_t index);
const JavaConstant* FindJavaConstant(std::string_view owner, std::string_view name);
/// The package of a class that is not of java.lang, as "java.time"; empty of all others.
std::string_view PackageOf(std::string_view class_name);

// The tables, a family each.
std::span<const JavaMethod> JavaTextMethods();
std::span<const JavaMethod> JavaBuilderMethods();
std::span<const JavaMethod> JavaNumberMethods();
std::span<const JavaMethod> JavaCharacterMethods();
std::span<const JavaMethod> JavaStreamMethods();
std::span<const JavaMethod> JavaLocalDateMethods();
std::span<const JavaMethod> SystemdsMethods();

}  // namespace heddle::ops
