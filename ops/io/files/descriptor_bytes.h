// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"

namespace heddle::ops {

/// An error of the system as people understand it: "cannot read 'X.csv': no such file". Takes errno.
Status FileError(const char* what, const std::string& path);

/// Reads the bytes [begin, begin + count) of an open file that had `size` bytes when it was opened; messages
/// call it `path`. kDataLoss when it has become shorter or cannot be read.
Status ReadBytesAt(int descriptor, const std::string& path, int64_t size, int64_t begin, int64_t count,
                   char* out);

/// Writes all of the bytes to an offset of an open file; messages call it `shown`. kResourceExhausted when
/// the disk is full.
Status WriteBytesAt(int descriptor, int64_t offset, std::string_view bytes, const std::string& shown);

/// Has the disk begin with what is written to a file one piece behind the other, some megabytes at a time and
/// without waiting for it: the flush in the end then has little left to do.
class EarlyFlush {
 public:
  /// A piece of so many bytes has been written.
  void Add(int descriptor, int64_t offset, int64_t count);

 private:
  std::optional<int64_t> begin_;  // Of what the disk has not begun with.
};

}  // namespace heddle::ops
