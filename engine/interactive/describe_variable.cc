// SPDX-License-Identifier: Apache-2.0
#include "engine/interactive/describe_variable.h"

#include <fmt/format.h>

#include "core/text/utf8.h"

namespace heddle::engine {
namespace {

constexpr size_t kMostText = 60;  // bytes of a string that are shown
constexpr int64_t kMostTypes = 8;

std::string SizeOf(const Shape& shape) {
  const auto size = [](int64_t n) { return n == kUnknown ? std::string("?") : std::to_string(n); };
  return fmt::format("{}x{}", size(shape.rows), size(shape.columns));
}

std::string TypesOf(const Schema& schema) {
  std::string text;
  for (int64_t c = 0; c < std::min(schema.columns(), kMostTypes); ++c)
    text += fmt::format("{}{}", c > 0 ? ", " : "", Name(schema.types[static_cast<size_t>(c)]));
  return schema.columns() > kMostTypes ? text + ", ..." : text;
}

}  // namespace

std::string Describe(const ValueInfo& info) {
  switch (info.data_type) {
    case DataType::kScalar:
      return info.value_type == ValueType::kUnknown ? "scalar" : std::string(Name(info.value_type));
    case DataType::kMatrix: return "matrix " + SizeOf(info.shape);
    case DataType::kFrame:
      return fmt::format("frame {}{}", SizeOf(info.shape),
                         info.schema == nullptr ? "" : " (" + TypesOf(*info.schema) + ")");
    case DataType::kList: return "list";
    case DataType::kUnknown:
    case DataType::kTuple: break;
  }
  return "known when it runs";
}

std::string Describe(const Variable& variable) {
  std::string text = Describe(variable.info);
  if (variable.list != nullptr) return fmt::format("{} of {}", text, variable.list->size());
  if (variable.value.IsScalar() && variable.info.IsScalar()) {
    const Scalar& scalar = variable.value.scalar();
    if (!scalar.IsString()) return text + " " + scalar.ToText();
    const std::string_view shown = CutAtCharacter(scalar.AsString(), kMostText);
    return fmt::format("{} \"{}\"{}", text, shown, shown.size() < scalar.AsString().size() ? "..." : "");
  }
  if (variable.value.IsMatrix() && variable.value.matrix().IsSparse())
    text += fmt::format(", {} non-zeros", variable.value.matrix().stored());
  return text;
}

}  // namespace heddle::engine
