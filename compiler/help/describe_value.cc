// SPDX-License-Identifier: Apache-2.0
#include "compiler/help/describe_value.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::compiler {
namespace {

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

}  // namespace heddle::compiler
