// SPDX-License-Identifier: Apache-2.0
#include "core/values/data_type.h"

#include <array>

#include "core/text/named_value.h"

namespace heddle {
namespace {

constexpr std::array<std::string_view, 6> kDataTypes = {"unknown", "scalar", "matrix",
                                                        "frame",   "list",   "tuple"};
constexpr std::array<std::string_view, 5> kValueTypes = {"unknown", "double", "integer", "boolean", "string"};
constexpr std::array<std::string_view, 2> kFormats = {"dense", "sparse"};
constexpr std::array<std::string_view, 4> kStorages = {"dense", "csr", "column groups", "on a device"};

}  // namespace

std::string_view Name(DataType type) { return kDataTypes[static_cast<size_t>(type)]; }
std::string_view Name(ValueType type) { return kValueTypes[static_cast<size_t>(type)]; }
std::string_view Name(ElementType type) { return type == ElementType::kFloat64 ? "f64" : "f32"; }
std::string_view Name(Format format) { return kFormats[static_cast<size_t>(format)]; }
std::string_view Name(Storage storage) { return kStorages[static_cast<size_t>(storage)]; }
std::optional<DataType> ParseDataType(std::string_view name) {
  return ValueNamed<DataType>(kDataTypes, name);
}
std::optional<ValueType> ParseValueType(std::string_view name) {
  return ValueNamed<ValueType>(kValueTypes, name);
}
std::optional<Format> ParseFormat(std::string_view name) { return ValueNamed<Format>(kFormats, name); }

}  // namespace heddle
