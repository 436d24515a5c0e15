// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/descriptor_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace heddle::ops {
namespace {

constexpr int64_t kMostAtOnce = int64_t{1} << 30;

}  // namespace

Status FileError(const char* what, const std::string& path) {
  const int error = errno;
  const std::string why = std::strerror(error);
  if (error == ENOENT) return NotFound("cannot {} '{}': no such file", what, path);
  if (error == ENOSPC || error == EDQUOT) return ResourceExhausted("cannot {} '{}': {}", what, path, why);
  return DataLoss("cannot {} '{}': {}", what, path, why);
}

Status ReadBytesAt(int descriptor, const std::string& path, int64_t size, int64_t begin, int64_t count,
                   char* out) {
  for (int64_t done = 0; done < count;) {
    const ssize_t got =
        pread(descriptor, out + done, static_cast<size_t>(std::min(count - done, kMostAtOnce)), begin + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return DataLoss("cannot read '{}': {}", path, std::strerror(errno));
    if (got == 0)
      return DataLoss("cannot read '{}': it became shorter while it was read, it had {} bytes", path, size);
    done += got;
  }
  return OkStatus();
}

Status WriteBytesAt(int descriptor, int64_t offset, std::string_view bytes, const std::string& shown) {
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(descriptor, bytes.data(), std::min<size_t>(bytes.size(), kMostAtOnce), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError("write", shown);
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return OkStatus();
}

void EarlyFlush::Add(int descriptor, int64_t offset, int64_t count) {
  constexpr int64_t kBytes = int64_t{8} << 20, kPage = 4096;
  if (!begin_) begin_ = offset;
  // The last page is likely to be written to again.
  const int64_t end = (offset + count) / kPage * kPage;
  if (end - *begin_ < kBytes) return;
  // Where it is refused the flush in the end does all, and tells what fails.
  sync_file_range(descriptor, *begin_, end - *begin_, SYNC_FILE_RANGE_WRITE);
  begin_ = end;
}

}  // namespace heddle::ops
