// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/io/files/files.h"

namespace heddle::ops {

/// Where a packed file can be undone in the middle: pieces one after the other, each for itself. Any thread.
class PackedPieces {
 public:
  virtual ~PackedPieces() = default;
  /// Where piece i begins in the unpacked file; one more for its end.
  const std::vector<int64_t>& begins() const { return begins_; }
  /// Undoes one piece into `out`, which has room for exactly that. kDataLoss when it is damaged.
  virtual Status Unpack(const InputFile& packed, const std::string& path, size_t piece, char* out) const = 0;

 protected:
  std::vector<int64_t> begins_ = {0};
};

/// A piece is no longer than this, whatever a file says.
constexpr int64_t kMostBytesOfPiece = int64_t{16} << 20;

/// The file that `packed` holds, read by its pieces. A few of them are kept, because readers come back to
/// what they have just looked at.
std::unique_ptr<InputFile> MakePackedFile(std::unique_ptr<InputFile> packed,
                                          std::shared_ptr<const PackedPieces> pieces,
                                          const std::string& path);

}  // namespace heddle::ops
