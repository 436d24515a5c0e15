// SPDX-License-Identifier: Apache-2.0
#include "core/values/data_type.h"

#include <array>

namespace heddle {
namespace {

constexpr std::array<std::string_view, 6> kDataTypes = {"unknown", "scalar", "matrix",
                                                        "frame",   "list",   "tuple"};
constexpr std::array<std::string_view, 5> kValueTypes = {"unknown", "double", "integer", "boolean", "string"};
constexpr std::array<std::string_view, 2> kFormats = {"dense", "sparse"};
constexpr std::array<std::string_view, 2> kStorages = {"dense", "csr"};

template <typename T, size_t n>
std::optional<T> Find(const std::array<std::string_view, n>& names, std::string_view name) {
  for (size_t i = 0; i < n; ++i)
    if (names[i] == name) return static_cast<T>(i);
  return std::nullopt;
}

}  // namespace

std::string_view Name(DataType type) { return kDataTypes[static_cast<size_t>(type)]; }
std::string_view Name(ValueType type) { return kValueTypes[static_cast<size_t>(type)]; }
std::string_view Name(ElementType type) { return type == ElementType::kFloat64 ? "f64" : "f32"; }
std::string_view Name(Format format) { return kFormats[static_cast<size_t>(format)]; }
std::string_view Name(Storage storage) { return kStorages[static_cast<size_t>(storage)]; }
std::optional<DataType> ParseDataType(std::string_view name) { return Find<DataType>(kDataTypes, name); }
std::optional<ValueType> ParseValueType(std::string_view name) { return Find<ValueType>(kValueTypes, name); }
std::optional<Format> ParseFormat(std::string_view name) { return Find<Format>(kFormats, name); }

}  // namespace heddle
