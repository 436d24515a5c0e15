// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_typing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "core/text/utf8.h"
#include "ops/map/java_methods.h"

namespace heddle::ops {
namespace {

using Kind = JavaExpression::Kind;

constexpr const char* kManual = "docs/map.md lists the methods and operators of Java that map() knows";

std::string TypesOf(std::span<const JavaType> types) {
  std::string text;
  for (const JavaType type : types) text += (text.empty() ? "" : ", ") + std::string(Name(type));
  return text;
}

}  // namespace

Status WrongExpression(size_t at, const std::string& what) {
  // Words of the expression, which may be as long as it is.
  constexpr size_t kMostShown = 300;
  return InvalidArgument("map: {} at character {} of the expression", ShownInLine(what, kMostShown), at)
      .WithNote(kManual);
}

JavaExpression MakeExpression(Kind kind, JavaType type, size_t at, std::vector<JavaExpression> operands) {
  JavaExpression expression;
  expression.kind = kind;
  expression.type = type;
  expression.at = at;
  expression.operands = std::move(operands);
  return expression;
}

std::optional<JavaType> ElementOf(JavaType type) {
  switch (type) {
    case JavaType::kStrings: return JavaType::kString;
    case JavaType::kDoubles: return JavaType::kDouble;
    case JavaType::kIntegers: return JavaType::kInteger;
    case JavaType::kCharacters: return JavaType::kCharacter;
    default: return std::nullopt;
  }
}

std::string_view ClassOf(JavaType type) {
  switch (type) {
    case JavaType::kBoolean: return "Boolean";
    case JavaType::kCharacter: return "Character";
    case JavaType::kInteger: return "Integer";
    case JavaType::kLong: return "Long";
    case JavaType::kDouble: return "Double";
    default: return Name(type);
  }
}

std::optional<JavaType> TypeOfCast(const std::string& name, std::string* op) {
  constexpr std::pair<std::string_view, JavaType> kTypes[] = {
      {"boolean", JavaType::kBoolean}, {"char", JavaType::kCharacter}, {"byte", JavaType::kInteger},
      {"short", JavaType::kInteger},   {"int", JavaType::kInteger},    {"long", JavaType::kLong},
      {"double", JavaType::kDouble},   {"String", JavaType::kString}};
  for (const auto& [known, type] : kTypes) {
    if (known != name) continue;
    if (name == "byte" || name == "short") *op = name;
    return type;
  }
  return std::nullopt;
}

bool IsObject(const JavaExpression& expression) {
  return !IsPrimitive(expression.type) || expression.is_boxed;
}

std::optional<JavaType> TypeOfChoice(JavaExpression& yes, JavaExpression& no) {
  for (JavaExpression* const literal : {&yes, &no}) {
    const JavaExpression& other = literal == &yes ? no : yes;
    const bool is_character = literal->kind == Kind::kLiteral && literal->type == JavaType::kInteger &&
                              other.type == JavaType::kCharacter &&
                              std::get<int32_t>(literal->literal) >= 0 &&
                              std::get<int32_t>(literal->literal) <= UINT16_MAX;
    if (is_character) return JavaType::kCharacter;
  }
  if (yes.type == JavaType::kNull || no.type == JavaType::kNull) {
    // Beside null a number becomes an object.
    yes.is_boxed = no.is_boxed = true;
    return yes.type == JavaType::kNull ? no.type : yes.type;
  }
  if (Widens(yes.type, no.type)) return no.type;
  if (Widens(no.type, yes.type)) return yes.type;
  return std::nullopt;
}

Result<JavaType> TypeOfBinary(const JavaToken& op, const JavaExpression& left, const JavaExpression& right) {
  const JavaType a = left.type, b = right.type;
  const bool numbers = IsNumber(a) && IsNumber(b);
  const bool whole_numbers = IsWhole(a) && IsWhole(b);
  const bool booleans = a == JavaType::kBoolean && b == JavaType::kBoolean;
  const bool equality = op.text == "==" || op.text == "!=";
  const bool short_circuit = op.text == "&&" || op.text == "||";
  const bool bitwise = op.text == "&" || op.text == "|" || op.text == "^";
  const bool shift = op.text == "<<" || op.text == ">>" || op.text == ">>>";
  if (equality && (a == JavaType::kNull || b == JavaType::kNull)) {
    if (IsObject(left) && IsObject(right)) return JavaType::kBoolean;
  } else if (short_circuit || ((bitwise || equality) && booleans)) {
    if (booleans) return JavaType::kBoolean;
  } else if (bitwise || shift) {
    if (whole_numbers) return shift ? std::max(a, JavaType::kInteger) : std::max({a, b, JavaType::kInteger});
  } else if (op.text == "+" && (a == JavaType::kString || b == JavaType::kString)) {
    const bool arrays = ElementOf(a) || ElementOf(b);
    if (!arrays && HasText(a) && HasText(b)) return JavaType::kString;
  } else if (equality && numbers && !(left.is_boxed && right.is_boxed)) {
    return JavaType::kBoolean;
  } else if (equality && a == b) {
    const bool is_enumeration =
        a == JavaType::kDayOfWeek || a == JavaType::kMonth || a == JavaType::kTimeUnit;
    if (is_enumeration) return JavaType::kBoolean;
    return WrongExpression(
        op.at, fmt::format("{} asks whether two {} are one object; a.equals(b) compares them", op.text,
                           a == JavaType::kString ? "texts" : "values"));
  } else if (numbers && !equality && (op.text[0] == '<' || op.text[0] == '>')) {
    return JavaType::kBoolean;
  } else if (numbers && !equality) {
    return std::max({a, b, JavaType::kInteger});
  }
  return WrongExpression(op.at, fmt::format("{} is not defined on a {} and a {}", op.text, Name(a), Name(b)));
}

Result<JavaExpression> CallOf(const std::string& owner, bool on_value, const std::string& name, size_t at,
                              std::vector<JavaExpression> operands) {
  std::vector<JavaType> types;
  std::optional<JavaType> function_result;
  for (const JavaExpression& operand : operands) {
    const bool is_function = operand.kind == Kind::kFunction;
    types.push_back(is_function ? JavaType::kFunction : operand.type);
    if (is_function) function_result = operand.type;
  }
  const JavaMethod* method = FindJavaMethod(owner, on_value, name, types, function_result);
  if (method == nullptr) {
    const std::string arguments = TypesOf(std::span(types).subspan(on_value ? 1 : 0));
    if (name == "new")
      return WrongExpression(at, fmt::format("map() does not know new {}({})", owner, arguments));
    return WrongExpression(at, fmt::format("map() does not know {}.{}({})",
                                           on_value && owner == "String" ? "text" : owner, name, arguments));
  }
  JavaExpression call = MakeExpression(Kind::kCall, method->result, at, std::move(operands));
  call.method = method;
  call.is_boxed = method->is_boxed;
  if (method->regex >= 0) {
    const JavaExpression& regex = call.operands[static_cast<size_t>(method->regex)];
    if (regex.kind == Kind::kLiteral && regex.type == JavaType::kString) {
      Result<JavaRegex> parsed = JavaRegex::Parse(std::get<std::u16string>(regex.literal));
      if (!parsed.ok()) return WrongExpression(regex.at, parsed.status().message() + ",");
      call.regex = *std::move(parsed);
    }
  }
  return call;
}

}  // namespace heddle::ops
