// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "ops/io/formats/file_format.h"

namespace heddle::ops {

/// What a conversion is told; all else is found in the file, as read() and `inspect` find it.
struct ConvertOptions {
  std::optional<FileFormat> from, to;  ///< `to`: else the end of the path says it.
  std::optional<DataType> data_type;   ///< kMatrix or kFrame.
  std::optional<bool> header;          ///< Of the csv file that is read.
  std::optional<std::string> separator;
  std::optional<std::string> schema;     ///< Of a frame.
  std::optional<int64_t> rows, columns;  ///< Of a file of cells.
  std::optional<std::string> dataset;    ///< Of a file of several arrays.
  bool transposed = false;               ///< Of an array.
  /// Empty cells of numbers in csv are NaN where they become cells of a matrix; else they are 0.
  bool empty_as_nan = false;
  std::optional<bool> to_header;  ///< Of the csv file that is written; else where there are names.
  std::optional<std::string> to_separator;
  bool sparse = false;  ///< As sparse= of write().
  std::optional<std::string> compression;  ///< As compression= of write(); else the end of the path says it.
  const std::atomic<bool>* cancelled = nullptr;
};

struct Converted {
  DataType data_type = DataType::kMatrix;
  Shape shape;
  FileFormat from = FileFormat::kCsv, to = FileFormat::kCsv;
  std::vector<std::string> warnings;  ///< What the new file does not hold.
};

/// Writes what is in one file into another, as write() would: whole or not at all, with its .mtd. In memory
/// for a few pieces of rows, where both formats have rows in order; else the value has to fit.
///
/// A csv file becomes a frame where a column has texts, or where names of columns would be lost otherwise and
/// the new format has names; types of columns are those that all its lines fit. What is a frame in a format
/// of matrices alone has to be numbers, and the other way round a matrix becomes a frame of FP64.
///
/// An empty cell of a csv file is missing where the new file can say so, whatever the type of its column is.
/// Elsewhere it is what read() makes of it, with a warning.
Result<Converted> ConvertFile(const std::string& from, const std::string& to, const ConvertOptions& options,
                              Files& files);

}  // namespace heddle::ops
