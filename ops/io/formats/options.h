// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/io/formats/file_format.h"

// How ReadOptions come about: metadata first, then what the script says, then a look at the file.
namespace heddle::ops {

std::string Lower(std::string_view text);

/// One option of read(), from the script or the metadata. kInvalidArgument: no value that it may have, or a
/// contradiction to an earlier one.
Status ApplyReadOption(std::string_view name, const Scalar& value, ReadOptions* options);

/// The types of columns in a schema text: "string,double,int,boolean" or the names of column types, any case.
Result<std::vector<ColumnType>> ParseSchema(std::string_view text);

/// The types of the columns of a frame in a file: one type for all columns, or one for each; strings where
/// schema= says nothing. kDataLoss where it says another number.
Result<std::vector<ColumnType>> ColumnTypesOf(const ReadOptions& options, size_t columns);

/// kDataLoss where schema= says other types than a file has that says them itself.
Status CheckSaidTypes(const ReadOptions& options, const Schema& found);

/// What `<path>.mtd` says, if it exists.
Status ReadMetadata(Files& files, ReadOptions* options);

/// Finds out by the first lines of the file what is not said: format, separator, and whether the first line
/// holds names. Where the lines may mean two things this is an error that tells how to say it.
Status GuessFormat(Files& files, ReadOptions* options);
/// The same of a frame: binary or text where the file looks like that, else csv.
Status GuessFrameFormat(Files& files, ReadOptions* options);

/// kInvalidArgument: what is to separate fields would not, because it may be in the cells of a matrix, or
/// ends a line. Texts that have a separator are quoted.
Status CheckSeparators(const WriteOptions& options);

/// compression= of write(): none, gzip, zstd or groups, in any case; kInvalidArgument for other texts.
Status SetCompression(const std::string& text, WriteOptions* options);
/// kInvalidArgument: column groups in another format than binary.
Status CheckCompression(FileFormat format, const WriteOptions& options);

}  // namespace heddle::ops
