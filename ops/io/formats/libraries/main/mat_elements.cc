// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/libraries/main/mat_elements.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace heddle::ops {
namespace {

constexpr int64_t kFileHeadBytes = 128, kHeadBytes = 8, kPieceBytes = 1 << 18;
constexpr uint32_t kPacked = 15;  // the type of a packed element

// A stream of zlib that is unpacked and thrown away.
class Unpacked {
 public:
  Unpacked() { is_ready_ = inflateInit(&stream_) == Z_OK; }
  ~Unpacked() { inflateEnd(&stream_); }
  Unpacked(const Unpacked&) = delete;

  // False when the bytes are no part of such a stream.
  bool Take(std::string* bytes) {
    stream_.next_in = reinterpret_cast<Bytef*>(bytes->data());
    stream_.avail_in = static_cast<uInt>(bytes->size());
    while (is_ready_ && !is_at_end_ && stream_.avail_in > 0) {
      stream_.next_out = reinterpret_cast<Bytef*>(room_.data());
      stream_.avail_out = static_cast<uInt>(room_.size());
      const int outcome = inflate(&stream_, Z_NO_FLUSH);
      is_at_end_ = outcome == Z_STREAM_END;
      if (outcome != Z_OK && !is_at_end_) return false;
    }
    return is_ready_;
  }
  // Its checksum has come, and was right.
  bool is_at_end() const { return is_at_end_; }

 private:
  z_stream stream_{};
  bool is_ready_ = false;
  bool is_at_end_ = false;
  std::array<char, 1 << 16> room_;
};

Status CheckPacked(const ModuleInput& input, int64_t begin, int64_t end, const Status& damaged) {
  Unpacked unpacked;
  std::string piece;
  for (int64_t at = begin; at < end; at += kPieceBytes) {
    piece.resize(static_cast<size_t>(std::min(kPieceBytes, end - at)));
    HEDDLE_RETURN_IF_ERROR(input.read(at, static_cast<int64_t>(piece.size()), piece.data()));
    if (!unpacked.Take(&piece)) return damaged;
  }
  return unpacked.is_at_end() ? OkStatus() : damaged;
}

}  // namespace

Status CheckMatElements(const ModuleInput& input) {
  const Status damaged = DataLoss("cannot read '{}': it is damaged or cut short", input.path);
  std::array<char, kFileHeadBytes> head;
  if (input.size < kFileHeadBytes + kHeadBytes) return damaged;
  HEDDLE_RETURN_IF_ERROR(input.read(0, kFileHeadBytes, head.data()));
  const bool swapped = head[kFileHeadBytes - 2] == 'M';  // "MI" of big-endian machines, else "IM"
  for (int64_t at = kFileHeadBytes; at < input.size;) {
    std::array<uint32_t, 2> element;  // type, bytes
    if (input.size - at < kHeadBytes) return damaged;
    HEDDLE_RETURN_IF_ERROR(input.read(at, kHeadBytes, reinterpret_cast<char*>(element.data())));
    if (swapped)
      for (uint32_t& number : element) number = __builtin_bswap32(number);
    const auto [type, bytes] = element;
    const int64_t begin = at + kHeadBytes, end = begin + bytes;
    if (type == 0 || bytes == 0 || end > input.size) return damaged;
    if (type == kPacked) HEDDLE_RETURN_IF_ERROR(CheckPacked(input, begin, end, damaged));
    at = end;
  }
  return OkStatus();
}

}  // namespace heddle::ops
