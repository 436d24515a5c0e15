// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/descriptor_bytes.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace heddle::ops {

Status ReadBytesAt(int descriptor, const std::string& path, int64_t size, int64_t begin, int64_t count,
                   char* out) {
  constexpr int64_t kMostAtOnce = int64_t{1} << 30;
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

}  // namespace heddle::ops
