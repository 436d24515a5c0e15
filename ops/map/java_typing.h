// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "ops/map/java_expression.h"
#include "ops/map/java_lexer.h"

// What Java says of the types of expressions, apart from how they are written: which operands an operator
// takes, which method a call means, and what type comes out. The parser asks for each expression it makes.
namespace heddle::ops {

/// The error of an expression that is wrong at a character of its text.
Status WrongExpression(size_t at, const std::string& what);

JavaExpression MakeExpression(JavaExpression::Kind kind, JavaType type, size_t at,
                              std::vector<JavaExpression> operands = {});

/// The element of an array; nullopt of all other types.
std::optional<JavaType> ElementOf(JavaType type);

/// The class whose methods are called on a value of the type.
std::string_view ClassOf(JavaType type);

/// The type that a cast to the type called `name` gives. A byte or a short is an int here, and `op` becomes
/// that name.
std::optional<JavaType> TypeOfCast(const std::string& name, std::string* op);

/// Whether the value is an object, which may be null: a boxed number or boolean is one.
bool IsObject(const JavaExpression& expression);

/// The type that both values of a choice are taken as; nullopt where there is none. An int that is written as
/// a number is a char beside a char; beside null a number becomes an object (`is_boxed`).
std::optional<JavaType> TypeOfChoice(JavaExpression& yes, JavaExpression& no);

/// The type of `left op right`.
Result<JavaType> TypeOfBinary(const JavaToken& op, const JavaExpression& left, const JavaExpression& right);

/// The call of the method of class `owner` that takes these operands, with the value that it is called on
/// first if it is called on one (`on_value`).
Result<JavaExpression> CallOf(const std::string& owner, bool on_value, const std::string& name, size_t at,
                              std::vector<JavaExpression> operands);

}  // namespace heddle::ops
