// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/values/frame.h"
#include "ops/io/formats/file_format.h"

namespace heddle::ops {

/// The rows of a frame as text (language reference 4.2). csv: fields; missing cells are empty, and texts
/// stand in quotes where they would be read as something else. text: "row column text" of every cell that is
/// neither missing nor 0 nor FALSE. Booleans are true and false. Formats with a writer of their own: what
/// that gives. `first_row` is the one, if it is among these, whose line is the first that is not blank in a
/// csv file without names: rows count from 0 and those of options.rows_before. kCancelled; what the sink
/// says.
Status WriteFrameRows(const Frame& frame, int64_t first_row, const WriteOptions& options,
                      const ByteSink& sink);
/// How many bytes that gives of csv and text where nothing is packed, found in less time; any number when it
/// is cancelled.
int64_t BytesOfFrameRows(const Frame& frame, int64_t first_row, const WriteOptions& options);
/// The first row of these that gives a line that is not blank; INT64_MAX: none.
int64_t FirstFilledRow(const Frame& frame);
/// The line of names that stands before the rows of a csv file.
std::string CsvNames(const Schema& schema, const WriteOptions& options);

/// The names of its column types for metadata: "STRING,FP64,".
std::string SchemaText(const Schema& schema);

}  // namespace heddle::ops
