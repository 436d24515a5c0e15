// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/values/value.h"
#include "ops/io/formats/file_format.h"

// WriteValue() by several ranks: each keeps the bytes of its rows beside the file, and rank 0 makes the file
// of them (docs/files.md, "Read and written by several workers"). The bytes are those of WriteValue().
namespace heddle::ops {

/// Whether a value can be written so: its rows have bytes of their own, whoever writes those before.
bool CanWriteJoined(const ValueInfo& value, const std::string& path, const WriteOptions& options,
                    Files& files);

/// Rows of `whole` from `row_begin` on. What comes out is for FinishJoined().
Result<std::string> KeepRows(const Value& rows, int64_t row_begin, const ValueInfo& whole,
                             const std::string& path, const WriteOptions& options, Files& files);
/// Makes the file of what all ranks have kept, in the order of their rows, and its .mtd.
Status FinishJoined(const std::vector<std::string>& kept, const ValueInfo& whole, const std::string& path,
                    const WriteOptions& options, Files& files);

}  // namespace heddle::ops
