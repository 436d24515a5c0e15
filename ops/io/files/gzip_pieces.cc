// SPDX-License-Identifier: Apache-2.0
// Gzip data in pieces that are undone each for itself.
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "ops/io/files/gzip.h"
#include "ops/io/files/little_endian.h"

namespace heddle::ops {
namespace {

constexpr int64_t kReadBytes = 1 << 20;
constexpr int kGzipWindow = 15 + 16, kRawWindow = -15;
constexpr int64_t kWindowBytes = 1 << 15;
// Bytes between two places where inflate may begin again: of a large file more, so that what is kept for them
// stays small.
constexpr int64_t kLeastBetween = int64_t{4} << 20, kMostBetween = int64_t{12} << 20;
constexpr int64_t kBytesOfMembers = int64_t{1} << 19;  // so many of small members are one piece
constexpr int64_t kFixedHeader = 12, kTrailer = 8;     // a header with an extra field; CRC-32 and size

Status Damaged(const std::string& path) {
  return DataLoss("cannot read '{}': its gzip data is damaged or cut short", path);
}

void AppendLittleEndian(uint64_t value, size_t count, std::string* out) {
  for (size_t i = 0; i < count; ++i) out->push_back(static_cast<char>(value >> (8 * i) & 255));
}

// How long a member says that it is, header and trailer included; 0 where it says nothing. In an extra field
// HD of ours it stands in eight bytes, in one BC of bgzip, less one, in two.
int64_t SaidLength(std::string_view header) {
  if (header.size() < kFixedHeader || !IsGzip(header) || header[2] != 8 || header[3] != 4) return 0;
  std::string_view fields = header.substr(kFixedHeader);
  fields = fields.substr(0, LittleEndian(header, 10, 2));
  while (fields.size() >= 4) {
    const size_t length = LittleEndian(fields, 2, 2);
    if (length > fields.size() - 4) return 0;
    if (fields.starts_with("HD") && length == 8) return static_cast<int64_t>(LittleEndian(fields, 4, 8));
    if (fields.starts_with("BC") && length == 2) return static_cast<int64_t>(LittleEndian(fields, 4, 2)) + 1;
    fields.remove_prefix(4 + length);
  }
  return 0;
}

// Undoes gzip data into memory that has room for exactly what is wanted.
class Inflater {
 public:
  explicit Inflater(const std::string& path) : path_(path) {}
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Status BeginMember() { return inflateInit2(&stream_, kGzipWindow) == Z_OK ? OkStatus() : NotStarted(); }
  /// In the middle of a member, behind `window`: the low `bits` bits of what is left of `byte` come first.
  Status BeginInside(int bits, uint8_t byte, std::string_view window) {
    raw_ = true;
    if (inflateInit2(&stream_, kRawWindow) != Z_OK) return NotStarted();
    if (bits > 0 && inflatePrime(&stream_, bits, byte >> (8 - bits)) != Z_OK) return NotStarted();
    if (window.empty()) return OkStatus();
    return inflateSetDictionary(&stream_, reinterpret_cast<const Bytef*>(window.data()),
                                static_cast<uInt>(window.size())) == Z_OK
               ? OkStatus()
               : NotStarted();
  }

  /// Bytes from `at` to `end` of `packed` give the next `count` bytes.
  Status Fill(const InputFile& packed, int64_t at, int64_t end, char* out, int64_t count) {
    CountedBytes buffer;
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(count);
    while (stream_.avail_out > 0) {
      if (stream_.avail_in == 0) {
        HEDDLE_RETURN_IF_ERROR(Feed(packed, &at, end, &buffer));
        SkipTrailer();
        if (stream_.avail_in == 0) continue;
      }
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        trailer_ = raw_ ? kTrailer : 0;
        raw_ = false;
        SkipTrailer();
        if (inflateReset2(&stream_, kGzipWindow) != Z_OK) return NotStarted();
        ended_ = true;
        continue;
      }
      ended_ = false;
      if (code != Z_OK && code != Z_BUF_ERROR) return Damaged(path_);
    }
    return OkStatus();
  }
  /// All the input is taken, and a member ended with it, checked.
  Status Finish(const InputFile& packed, int64_t at, int64_t end) {
    // What is left of a member that has given everything: its last bits and its trailer.
    CountedBytes buffer;
    Bytef extra;
    while (!ended_ || stream_.avail_in > 0 || at < end) {
      if (stream_.avail_in == 0) HEDDLE_RETURN_IF_ERROR(Feed(packed, &at, end, &buffer));
      stream_.next_out = &extra;
      stream_.avail_out = 1;
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (stream_.avail_out == 0 || (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR))
        return Damaged(path_);
      ended_ = code == Z_STREAM_END;
      if (ended_ && inflateReset2(&stream_, kGzipWindow) != Z_OK) return NotStarted();
    }
    return OkStatus();
  }

 private:
  static Status NotStarted() { return Internal("zlib does not start"); }
  // Gives inflate the bytes at `*at`, which must lie before `end`, and moves `*at` behind them.
  Status Feed(const InputFile& packed, int64_t* at, int64_t end, CountedBytes* buffer) {
    if (*at >= end) return Damaged(path_);
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view piece,
                            packed.Read(*at, std::min(kReadBytes, end - *at), buffer));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream_.avail_in = static_cast<uInt>(piece.size());
    *at += static_cast<int64_t>(piece.size());
    return OkStatus();
  }
  void SkipTrailer() {
    const auto skipped = static_cast<uInt>(std::min<int64_t>(trailer_, stream_.avail_in));
    stream_.next_in += skipped;
    stream_.avail_in -= skipped;
    trailer_ -= skipped;
  }

  const std::string& path_;
  z_stream stream_{};
  bool raw_ = false;     // without header and trailer
  bool ended_ = false;   // the last member has
  int64_t trailer_ = 0;  // bytes of one that are still to be skipped
};

// Members that say how long they are.
class MarkedMembers : public PackedPieces {
 public:
  // False where one says nothing, or not what is there.
  Result<bool> Find(const InputFile& packed) {
    CountedBytes buffer;
    places_.push_back(0);
    int64_t bytes = 0;  // of the piece that is being put together
    for (int64_t at = 0; at < packed.size();) {
      constexpr int64_t kLook = 64;
      HEDDLE_ASSIGN_OR_RETURN(const std::string_view header,
                              packed.Read(at, std::min(kLook, packed.size() - at), &buffer));
      const int64_t length = SaidLength(header);
      if (length < kFixedHeader + kTrailer || length > packed.size() - at) return false;
      HEDDLE_ASSIGN_OR_RETURN(const std::string_view size, packed.Read(at + length - 4, 4, &buffer));
      const auto more = static_cast<int64_t>(LittleEndian(size, 0, 4));
      if (more > kMostBytesOfPiece - kBytesOfMembers) return false;
      bytes += more;
      at += length;
      // Members of nothing belong to the piece before.
      if (bytes < kBytesOfMembers && at < packed.size()) continue;
      if (bytes == 0 && begins_.size() > 1) {
        places_.back() = at;
        continue;
      }
      if (bytes == 0) return false;
      begins_.push_back(begins_.back() + bytes);
      places_.push_back(at);
      bytes = 0;
    }
    return true;
  }

  Status Unpack(const InputFile& packed, const std::string& path, size_t piece, char* out) const override {
    Inflater inflater(path);
    HEDDLE_RETURN_IF_ERROR(inflater.BeginMember());
    const int64_t begin = places_[piece], end = places_[piece + 1];
    // Piece by piece of the input, so that Finish can go on where Fill stops: all of it at once.
    CountedBytes buffer;
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes, packed.Read(begin, end - begin, &buffer));
    const Whole whole(bytes);
    HEDDLE_RETURN_IF_ERROR(inflater.Fill(whole, 0, whole.size(), out, begins_[piece + 1] - begins_[piece]));
    return inflater.Finish(whole, whole.size(), whole.size());
  }

 private:
  class Whole : public InputFile {
   public:
    explicit Whole(std::string_view bytes) : bytes_(bytes) {}
    int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
    Result<std::string_view> Read(int64_t begin, int64_t, CountedBytes*) const override {
      return bytes_.substr(static_cast<size_t>(begin));  // all the rest at once
    }

   private:
    const std::string_view bytes_;
  };

  std::vector<int64_t> places_;  // Where the members of each piece begin; one more for the end.
};

// Any gzip data: what inflate needs to begin again is kept at ends of blocks.
class Checkpoints : public PackedPieces {
 public:
  // False where a block is longer than a piece may be.
  Result<bool> Find(const InputFile& packed, const std::string& path) {
    z_stream stream{};
    if (inflateInit2(&stream, kGzipWindow) != Z_OK) return Internal("zlib does not start");
    const std::unique_ptr<z_stream, int (*)(z_stream*)> closer(&stream, inflateEnd);
    CountedBytes buffer, block;
    HEDDLE_RETURN_IF_ERROR(block.Renew(kReadBytes, path));
    bool inside = false, between = false, padding = false;
    int64_t unpacked = 0;
    const int64_t bytes_between = std::clamp(packed.size() / 128, kLeastBetween, kMostBetween);
    for (int64_t at = 0; at < packed.size();) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string_view piece,
                              packed.Read(at, std::min(kReadBytes, packed.size() - at), &buffer));
      at += static_cast<int64_t>(piece.size());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      stream.avail_in = static_cast<uInt>(piece.size());
      while (stream.avail_in > 0) {
        const int64_t place = at - stream.avail_in;
        if (!inside) {
          padding |= between && *stream.next_in == 0;
          if (padding) {
            const std::string_view rest = piece.substr(piece.size() - stream.avail_in);
            if (rest.find_first_not_of('\0') != std::string_view::npos) return Damaged(path);
            break;
          }
          if (between && inflateReset(&stream) != Z_OK) return Damaged(path);
          inside = true;
          if (points_.empty() || unpacked - begins_.back() >= bytes_between)
            HEDDLE_RETURN_IF_ERROR(Add({.place = place, .is_member = true}, unpacked, {}, path));
        }
        stream.next_out = reinterpret_cast<Bytef*>(block.data());
        stream.avail_out = static_cast<uInt>(kReadBytes);
        const int code = inflate(&stream, Z_BLOCK);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) return Damaged(path);
        unpacked += kReadBytes - static_cast<int64_t>(stream.avail_out);
        if (unpacked - begins_.back() > kMostBytesOfPiece) return false;
        if (code == Z_STREAM_END) {
          inside = false;
          between = true;
        } else if ((stream.data_type & 128) != 0 && (stream.data_type & 64) == 0 &&
                   unpacked - begins_.back() >= bytes_between) {
          char window[kWindowBytes];
          uInt length = 0;
          if (inflateGetDictionary(&stream, reinterpret_cast<Bytef*>(window), &length) != Z_OK)
            return Internal("zlib keeps no window");
          HEDDLE_RETURN_IF_ERROR(
              Add({.place = at - static_cast<int64_t>(stream.avail_in), .bits = stream.data_type & 7},
                  unpacked, {window, length}, path));
        }
      }
    }
    if (inside || !between) return Damaged(path);
    points_.push_back({.place = packed.size()});
    begins_.push_back(unpacked);
    // What begins where the file ends, or where another begins, is no piece.
    while (begins_.size() > 2 && begins_[begins_.size() - 2] == unpacked) {
      begins_.pop_back();
      points_.erase(points_.end() - 2);
    }
    return true;
  }

  Status Unpack(const InputFile& packed, const std::string& path, size_t piece, char* out) const override {
    const Point& point = points_[piece];
    Inflater inflater(path);
    if (point.is_member) {
      HEDDLE_RETURN_IF_ERROR(inflater.BeginMember());
    } else {
      CountedBytes buffer;
      HEDDLE_ASSIGN_OR_RETURN(const std::string_view byte, packed.Read(point.place - 1, 1, &buffer));
      HEDDLE_RETURN_IF_ERROR(
          inflater.BeginInside(point.bits, static_cast<uint8_t>(byte[0]),
                               windows_.view().substr(static_cast<size_t>(point.window),
                                                      static_cast<size_t>(point.window_bytes))));
    }
    return inflater.Fill(packed, point.place, points_[piece + 1].place, out,
                         begins_[piece + 1] - begins_[piece]);
  }

 private:
  struct Point {
    int64_t place = 0;  // of the first byte that is not yet taken
    int bits = 0;       // of the byte before that are not yet taken
    bool is_member = false;
    int64_t window = 0;
    int64_t window_bytes = 0;
  };

  Status Add(Point point, int64_t unpacked, std::string_view window, const std::string& path) {
    point.window = static_cast<int64_t>(windows_.view().size());
    point.window_bytes = static_cast<int64_t>(window.size());
    HEDDLE_RETURN_IF_ERROR(windows_.Append(window, path));
    if (!points_.empty()) begins_.push_back(unpacked);
    points_.push_back(point);
    return OkStatus();
  }

  std::vector<Point> points_;
  CountedBytes windows_;
};

}  // namespace

Result<std::shared_ptr<const PackedPieces>> FindGzipPieces(const InputFile& packed, const std::string& path) {
  auto marked = std::make_shared<MarkedMembers>();
  HEDDLE_ASSIGN_OR_RETURN(const bool are_marked, marked->Find(packed));
  if (are_marked) return std::shared_ptr<const PackedPieces>(std::move(marked));
  auto checkpoints = std::make_shared<Checkpoints>();
  HEDDLE_ASSIGN_OR_RETURN(const bool found, checkpoints->Find(packed, path));
  return found ? std::shared_ptr<const PackedPieces>(std::move(checkpoints)) : nullptr;
}

Status AppendGzipMember(std::string_view bytes, std::string* out) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRawWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return Internal("zlib does not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closer(&stream, deflateEnd);
  constexpr size_t kExtra = 12;  // two letters, length, and eight bytes
  const size_t header = kFixedHeader + kExtra, begin = out->size();
  out->resize(begin + header + deflateBound(&stream, bytes.size()));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out->data() + begin + header);
  stream.avail_out = static_cast<uInt>(out->size() - begin - header);
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) return Internal("zlib does not end");
  out->resize(begin + header + stream.total_out);
  // No time and no name: the bytes are a function of what is packed.
  std::string head("\x1f\x8b\x08\x04\0\0\0\0\0\xff", 10);
  AppendLittleEndian(kExtra, 2, &head);
  head += "HD";
  AppendLittleEndian(8, 2, &head);
  AppendLittleEndian(header + stream.total_out + kTrailer, 8, &head);
  std::copy(head.begin(), head.end(), out->begin() + static_cast<int64_t>(begin));
  AppendLittleEndian(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())),
                     4, out);
  AppendLittleEndian(bytes.size(), 4, out);
  return OkStatus();
}

}  // namespace heddle::ops
