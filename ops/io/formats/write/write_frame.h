// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/values/frame.h"
#include "ops/io/formats/file_format.h"

namespace heddle::ops {

/// The text of a frame (language reference 4.2). csv: rows of fields, names before them where options.header;
/// missing cells are empty, and texts stand in quotes where they would be read as something else. text: "row
/// column text" of every cell that is neither missing nor 0 nor FALSE. Booleans are true and false.
/// kCancelled; what the sink says.
Status WriteFrame(const Frame& frame, const WriteOptions& options, const ByteSink& sink);

/// The names of its column types for metadata: "STRING,FP64,".
std::string SchemaText(const Schema& schema);

}  // namespace heddle::ops
