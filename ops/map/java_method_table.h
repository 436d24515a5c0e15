// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/map/java_methods.h"

// What the tables of methods are written with: functions of values as functions of calls.
namespace heddle::ops {

using JavaText = std::u16string;

/// f(x) of an argument of type T.
template <typename T, auto f>
Result<JavaValue> OfOne(const JavaCall& call) {
  return JavaValue(f(std::get<T>(call[0])));
}
/// f(x, y) of arguments of the types T and U.
template <typename T, auto f, typename U = T>
Result<JavaValue> OfTwo(const JavaCall& call) {
  return JavaValue(f(std::get<T>(call[0]), std::get<U>(call[1])));
}
inline Result<JavaValue> FirstOf(const JavaCall& call) { return call[0]; }
inline Result<JavaValue> TextOfFirst(const JavaCall& call) { return JavaValue(TextOf(call[0])); }
/// equals() of what is compared by its value.
inline Result<JavaValue> AreEqual(const JavaCall& call) { return JavaValue(call[0] == call[1]); }

// A method with one unusual property (JavaMethod says what each means).
inline JavaMethod Boxed(JavaMethod method) { return method.is_boxed = true, method; }
inline JavaMethod Repeating(JavaMethod method) { return method.repeats_last = true, method; }
inline JavaMethod TakingNull(JavaMethod method) { return method.takes_null = true, method; }
inline JavaMethod WithRegex(int parameter, JavaMethod method) { return method.regex = parameter, method; }
inline JavaMethod WithFunction(JavaSignature signature, JavaMethod method) {
  return method.function = std::move(signature), method;
}

/// A text in an error.
std::string Shown(std::u16string_view text);

}  // namespace heddle::ops
