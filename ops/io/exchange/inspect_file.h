// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/io/exchange/column_facts.h"
#include "ops/io/formats/file_format.h"

namespace heddle::ops {

/// What is in a file that somebody else has written.
struct FileFacts {
  std::string path;
  int64_t bytes = 0;  ///< Of what it holds, unpacked.
  FileFormat format = FileFormat::kCsv;
  std::string why;  ///< Why it is taken for that: "the first line has a comma".
  bool is_frame = false;
  bool has_metadata = false;
  // Of csv.
  std::string separator;  ///< "" for any number of blanks.
  bool header = false;
  std::string why_header;
  std::string column_groups;  ///< Of binary: those of the file, in words; "": it has none.
  int64_t rows = kUnknown;
  int64_t columns = kUnknown;
  int64_t nonzeros = kUnknown;  ///< In the rows that were looked at.
  int64_t rows_looked_at = 0;   ///< All others are only counted.
  bool looked_at_all = true;
  std::vector<ColumnFacts> facts;  ///< One a column, of the first kMostColumns.
  std::vector<std::vector<std::string>> first_rows;
  std::vector<std::string> warnings;
  std::string how_to_read;   ///< The call of read() that gives it; empty where no call was found, and
  std::string why_not_read;  ///< why.

  static constexpr int64_t kMostColumns = 1000;
};

struct InspectOptions {
  std::optional<FileFormat> format;
  std::optional<bool> header;
  std::optional<std::string> separator;
  std::optional<std::string> dataset;  ///< Of a file of several arrays.
  bool transposed = false;             ///< Of an array.
  int64_t rows_shown = 5;
  bool finds_call = true;  ///< FileFacts::how_to_read, for which the file is read once more.
  int64_t bytes_looked_at = int64_t{64} << 20;  ///< INT64_MAX: the whole file.
};

/// Looks at a file; memory for a few pieces of it. Errors: kNotFound, kDataLoss for what is no file of a
/// format that Heddle reads.
Result<FileFacts> InspectFile(const std::string& path, const InspectOptions& options, Files& files);

/// The warning of a matrix that `writer` keeps column by column (FileSummary::column_major_writer).
std::string TransposeOf(std::string_view writer);

}  // namespace heddle::ops
