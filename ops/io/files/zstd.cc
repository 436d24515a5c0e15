// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/zstd.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "ops/io/files/little_endian.h"

namespace heddle::ops {
namespace {

constexpr int kLevel = 3;
constexpr int64_t kPieceBytes = 1 << 20;
constexpr int64_t kMostHeaderBytes = 18;  // of a frame
constexpr uint32_t kSkippable = 0x184d2a50, kSkippableMask = 0xfffffff0;

Status Damaged(const std::string& path) {
  return DataLoss("cannot read '{}': its zstd data is damaged or cut short", path);
}

bool IsSkippable(std::string_view bytes) {
  return bytes.size() >= 4 && (LittleEndian(bytes, 0, 4) & kSkippableMask) == kSkippable;
}

bool IsFrame(std::string_view bytes) {
  return bytes.size() >= 4 && LittleEndian(bytes, 0, 4) == ZSTD_MAGICNUMBER;
}

// Bytes of the header of a frame, by its first five: RFC 8878, section 3.1.1.1.
int64_t HeaderBytes(std::string_view frame) {
  const auto descriptor = static_cast<uint8_t>(frame[4]);
  const bool single_segment = (descriptor & 0x20) != 0;
  constexpr int64_t kDictionaryBytes[] = {0, 1, 2, 4}, kSizeBytes[] = {0, 2, 4, 8};
  const int size_flag = descriptor >> 6;
  const int64_t size_bytes = size_flag == 0 && single_segment ? 1 : kSizeBytes[size_flag];
  return 5 + (single_segment ? 0 : 1) + kDictionaryBytes[descriptor & 3] + size_bytes;
}

// Small reads one after the other out of larger ones.
class Walk {
 public:
  explicit Walk(const InputFile& file) : file_(file) {}
  // Up to `count` bytes at `at`, fewer at the end of the file.
  Result<std::string_view> Look(int64_t at, int64_t count) {
    count = std::min(count, file_.size() - at);
    if (at < begin_ || at + count > begin_ + static_cast<int64_t>(window_.size())) {
      HEDDLE_ASSIGN_OR_RETURN(window_, file_.Read(at, std::min(kWindow, file_.size() - at), &buffer_));
      begin_ = at;
    }
    return window_.substr(static_cast<size_t>(at - begin_), static_cast<size_t>(count));
  }

 private:
  static constexpr int64_t kWindow = 1 << 12;
  const InputFile& file_;
  CountedBytes buffer_;
  std::string_view window_;
  int64_t begin_ = 0;
};

class ZstdPieces : public PackedPieces {
 public:
  // False where the file cannot be cut.
  Result<bool> Find(const InputFile& packed) {
    Walk walk(packed);
    for (int64_t at = 0; at < packed.size();) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string_view head, walk.Look(at, kMostHeaderBytes));
      if (IsSkippable(head) && head.size() >= 8) {
        at += 8 + static_cast<int64_t>(LittleEndian(head, 4, 4));
        if (at > packed.size()) return false;
        continue;
      }
      if (!IsFrame(head) || head.size() < 5) return false;
      const unsigned long long bytes = ZSTD_getFrameContentSize(head.data(), head.size());
      if (bytes > static_cast<unsigned long long>(kMostBytesOfPiece)) return false;  // or it is not known
      const bool has_checksum = (static_cast<uint8_t>(head[4]) & 4) != 0;
      HEDDLE_ASSIGN_OR_RETURN(const int64_t end, EndOfBlocks(&walk, at + HeaderBytes(head), packed.size()));
      const int64_t frame_end = end + (has_checksum ? 4 : 0);
      if (end == kNone || frame_end > packed.size()) return false;
      // A frame of nothing is no piece that anybody could look for.
      if (bytes > 0) {
        frames_.push_back({at, frame_end - at});
        begins_.push_back(begins_.back() + static_cast<int64_t>(bytes));
      }
      at = frame_end;
    }
    return true;
  }

  Status Unpack(const InputFile& packed, const std::string& path, size_t piece, char* out) const override {
    CountedBytes buffer;
    const Frame& frame = frames_[piece];
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes, packed.Read(frame.begin, frame.bytes, &buffer));
    const auto size = static_cast<size_t>(begins_[piece + 1] - begins_[piece]);
    return ZSTD_decompress(out, size, bytes.data(), bytes.size()) == size ? OkStatus() : Damaged(path);
  }

 private:
  static constexpr int64_t kNone = -1;
  struct Frame {
    int64_t begin;
    int64_t bytes;
  };

  // A block has three bytes before it: whether it is the last one, its kind, and its length.
  static Result<int64_t> EndOfBlocks(Walk* walk, int64_t at, int64_t size) {
    for (bool last = false; !last;) {
      if (at + 3 > size) return kNone;
      HEDDLE_ASSIGN_OR_RETURN(const std::string_view head, walk->Look(at, 3));
      const auto header = static_cast<uint32_t>(LittleEndian(head, 0, 3));
      last = (header & 1) != 0;
      const bool repeated_byte = (header >> 1 & 3) == 1;
      at += 3 + (repeated_byte ? 1 : int64_t{header >> 3});
    }
    return at;
  }

  std::vector<Frame> frames_;
};

}  // namespace

bool IsZstd(std::string_view beginning) { return IsFrame(beginning) || IsSkippable(beginning); }

Result<CountedBytes> Unzstd(const InputFile& packed, const std::string& path, int64_t most_bytes) {
  const std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(),
                                                                        ZSTD_freeDStream);
  if (stream == nullptr) return ResourceExhausted("cannot read '{}': memory has no room for zstd", path);
  CountedBytes buffer, block, out;
  HEDDLE_RETURN_IF_ERROR(block.Renew(kPieceBytes, path));
  size_t state = 0;  // 0: between two frames
  for (int64_t at = 0; at < packed.size(); at += kPieceBytes) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view piece,
                            packed.Read(at, std::min(kPieceBytes, packed.size() - at), &buffer));
    ZSTD_inBuffer in{piece.data(), piece.size(), 0};
    for (bool more = true; in.pos < in.size || more;) {
      ZSTD_outBuffer given{block.data(), static_cast<size_t>(kPieceBytes), 0};
      state = ZSTD_decompressStream(stream.get(), &given, &in);
      if (ZSTD_isError(state) != 0) return Damaged(path);
      if (static_cast<int64_t>(out.view().size() + given.pos) > most_bytes)
        return ResourceExhausted("'{}' holds more than {} bytes when unpacked", path, most_bytes);
      HEDDLE_RETURN_IF_ERROR(out.Append({block.data(), given.pos}, path));
      more = given.pos == given.size && state != 0;  // there may be more to give without more input
    }
  }
  if (state != 0) return Damaged(path);
  return out;
}

Result<std::shared_ptr<const PackedPieces>> FindZstdPieces(const InputFile& packed) {
  auto pieces = std::make_shared<ZstdPieces>();
  HEDDLE_ASSIGN_OR_RETURN(const bool found, pieces->Find(packed));
  return found ? std::shared_ptr<const PackedPieces>(std::move(pieces)) : nullptr;
}

Status AppendZstdFrame(std::string_view bytes, std::string* out) {
  const size_t begin = out->size(), most = ZSTD_compressBound(bytes.size());
  out->resize(begin + most);
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  if (context == nullptr) return ResourceExhausted("memory has no room for zstd");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  const size_t size = ZSTD_compress2(context.get(), out->data() + begin, most, bytes.data(), bytes.size());
  if (ZSTD_isError(size) != 0) return Internal("zstd: {}", ZSTD_getErrorName(size));
  out->resize(begin + size);
  return OkStatus();
}

}  // namespace heddle::ops
