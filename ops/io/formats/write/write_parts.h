// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "core/values/value.h"
#include "ops/io/formats/file_format.h"

// The parts of WriteValue, for who has a value piece by piece only.
namespace heddle::ops {

/// What metadata say of a value.
struct WrittenValue {
  Value::Kind kind = Value::Kind::kMatrix;
  Shape shape;
  int64_t nonzeros = 0;                            ///< Of a matrix.
  ValueType scalar_type = ValueType::kUnknown;     ///< Of a scalar.
  std::shared_ptr<const Schema> schema = nullptr;  ///< Of a frame.
};

/// Whether such a value can be written there; what only the cells tell comes later.
Status CheckWrite(Value::Kind kind, const Shape& shape, const std::string& path, const WriteOptions& options);

/// Of a file of text that holds a matrix: what stands before its rows, and its rows, or some of them
/// (WriteOptions::rows_before). The rows are made in parallel, a few pieces at a time, and given in order;
/// where they are packed, a new piece begins after every `rows_of_unit` rows.
Status GiveTextBeginning(const Shape& shape, int64_t nonzeros, const WriteOptions& options,
                         const ByteSink& sink);
Status WriteTextRows(const Matrix& matrix, int64_t rows_of_unit, const WriteOptions& options,
                     const ByteSink& sink);
/// How many bytes WriteTextRows gives of these rows where nothing is packed, found in less time than the text
/// takes; any number when it is cancelled.
int64_t BytesOfTextRows(const Matrix& matrix, const WriteOptions& options);
/// So many rows make about a piece.
int64_t RowsOfTextUnit(const Shape& shape, int64_t nonzeros, FileFormat format);

/// WriteValue() of a matrix or frame that has been checked.
Status WriteRows(const Value& value, const std::string& path, const WriteOptions& options, Files& files);

/// The .mtd of a file that is there.
Status WriteMetadata(const WrittenValue& value, const std::string& path, const WriteOptions& options,
                     Files& files);

}  // namespace heddle::ops
