// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle {

/// What kind of thing a value is. Lists live in the variables of the control program (core/values/list.h),
/// never in graphs. A tuple is what an operator with several results makes: nothing but `result` nodes reads
/// it, and no variable holds it.
enum class DataType : uint8_t { kUnknown, kScalar, kMatrix, kFrame, kList, kTuple };
/// What a scalar (or the cells of a frame) holds. Every matrix holds doubles from the language's point of
/// view.
enum class ValueType : uint8_t { kUnknown, kDouble, kInteger, kBoolean, kString };
/// Bytes of a cell of a matrix: 8 or 4.
enum class ElementType : uint8_t { kFloat64, kFloat32 };
/// Part of a value's meaning, for 0*Inf, 0*NaN and the sign of zero alone (docs/numerics.md R6); fixed on the
/// graph node.
enum class Format : uint8_t { kDense, kSparse };
/// How a matrix lies in memory. No part of its meaning: kernels are given what they take
/// (Operator::storages).
enum class Storage : uint8_t {
  kDense,         ///< Every cell, row by row.
  kCsr,           ///< Compressed sparse rows: the cells that are not zero.
  kColumnGroups,  ///< Codes and dictionaries of their tuples (core/values/column_groups.h).
  kOnDevice,      ///< In the memory of a device (core/values/device_cells.h).
};
/// The format of a value of which nothing but its storage is known: what a file or a test made.
constexpr Format FormatOf(Storage storage) {
  return storage == Storage::kCsr ? Format::kSparse : Format::kDense;
}

constexpr int64_t BytesOf(ElementType type) { return type == ElementType::kFloat64 ? 8 : 4; }

std::string_view Name(DataType type);     ///< "scalar", "matrix", "frame", "list", "tuple", "unknown"
std::string_view Name(ValueType type);    ///< "double", "integer", "boolean", "string", "unknown"
std::string_view Name(ElementType type);  ///< "f64", "f32"
std::string_view Name(Format format);     ///< "dense", "sparse"
std::string_view Name(Storage storage);   ///< "dense", "csr", "column groups", "on a device"
std::optional<DataType> ParseDataType(std::string_view name);
std::optional<ValueType> ParseValueType(std::string_view name);
std::optional<Format> ParseFormat(std::string_view name);

}  // namespace heddle
