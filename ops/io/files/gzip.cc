// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/gzip.h"

#include <zlib.h>

#include <algorithm>

namespace heddle::ops {
namespace {

constexpr int64_t kPieceBytes = 1 << 20;
constexpr int kGzipWindow = 15 + 16;

Status Damaged(const std::string& path) {
  return DataLoss("cannot read '{}': its gzip data is damaged or cut short", path);
}

class Unpacker {
 public:
  Unpacker(const std::string& path, int64_t most_bytes) : path_(path), most_bytes_(most_bytes) {}
  ~Unpacker() { inflateEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  Status Start() {
    HEDDLE_RETURN_IF_ERROR(block_.Renew(kPieceBytes, path_));
    return inflateInit2(&stream_, kGzipWindow) == Z_OK ? OkStatus() : Internal("zlib does not start");
  }

  // Takes the next bytes of the packed file.
  Status Take(std::string_view packed) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    while (stream_.avail_in > 0) {
      if (!inside_) {
        // A member begins with 0x1f; zero bytes, from here to the end, are padding.
        padding_ |= between_ && *stream_.next_in == 0;
        if (padding_) return TakePadding();
        if (between_ && inflateReset(&stream_) != Z_OK) return Damaged(path_);
        inside_ = true;
      }
      HEDDLE_RETURN_IF_ERROR(TakeMember());
    }
    return OkStatus();
  }

  bool whole() const { return !inside_ && between_; }
  CountedBytes out() { return std::move(out_); }

 private:
  Status TakePadding() {
    const bool zeros = std::all_of(stream_.next_in, stream_.next_in + stream_.avail_in,
                                   [](Bytef byte) { return byte == 0; });
    stream_.avail_in = 0;
    return zeros ? OkStatus() : Damaged(path_);
  }

  // Unpacks until the member ends, or all input is taken and all that it gives is out.
  Status TakeMember() {
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(block_.data());
      stream_.avail_out = kPieceBytes;
      const int code = inflate(&stream_, Z_NO_FLUSH);
      // Z_BUF_ERROR: nothing more to give until there is more input.
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) return Damaged(path_);
      const std::string_view given = block_.view().substr(0, kPieceBytes - stream_.avail_out);
      if (static_cast<int64_t>(out_.view().size() + given.size()) > most_bytes_)
        return ResourceExhausted("'{}' holds more than {} bytes when unpacked", path_, most_bytes_);
      HEDDLE_RETURN_IF_ERROR(out_.Append(given, path_));
      if (code == Z_STREAM_END) {
        inside_ = false;
        between_ = true;
        return OkStatus();
      }
    } while (stream_.avail_in > 0 || stream_.avail_out == 0);
    return OkStatus();
  }

  const std::string& path_;
  const int64_t most_bytes_;
  z_stream stream_{};
  CountedBytes block_;
  CountedBytes out_;
  bool inside_ = false;   // a member has begun and not ended
  bool between_ = false;  // a member has ended
  bool padding_ = false;  // only zero bytes may follow
};

}  // namespace

bool IsGzip(std::string_view beginning) { return beginning.starts_with("\x1f\x8b"); }

Result<CountedBytes> Gunzip(const InputFile& packed, const std::string& path, int64_t most_bytes) {
  Unpacker unpacker(path, most_bytes);
  HEDDLE_RETURN_IF_ERROR(unpacker.Start());
  CountedBytes buffer;
  for (int64_t at = 0; at < packed.size(); at += kPieceBytes) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view piece,
                            packed.Read(at, std::min(kPieceBytes, packed.size() - at), &buffer));
    HEDDLE_RETURN_IF_ERROR(unpacker.Take(piece));
  }
  if (!unpacker.whole()) return Damaged(path);
  return unpacker.out();
}

}  // namespace heddle::ops
