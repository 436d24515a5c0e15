// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/numpy/zip_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace heddle::ops {
namespace {

constexpr uint32_t kLocalMark = 0x04034b50, kEntryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr uint32_t kEnd64Mark = 0x06064b50, kLocatorMark = 0x07064b50;
constexpr int64_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr int64_t kMostComment = 65535;
constexpr int64_t kMostDirectoryBytes = int64_t{64} << 20;
constexpr uint32_t kIn64 = 0xffffffff;  // a size that stands elsewhere in 64 bits
constexpr uint16_t kExtra64 = 1;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr int64_t kMostRatio = 1032;  // deflate makes no more of a byte

template <typename T>
T At(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <typename T>
void Append(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

Status Damaged(const std::string& path, std::string_view what) {
  return DataLoss("cannot read '{}': it is a zip archive that is cut off or damaged: {}", path, what);
}

// Where the directory of the archive is.
struct Directory {
  uint64_t begin = 0;
  uint64_t bytes = 0;
};

Result<Directory> FindDirectory(const std::string& path, const InputFile& archive) {
  const int64_t size = archive.size();
  const int64_t tail_bytes = std::min(size, kEndBytes + kMostComment + kLocatorBytes);
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view tail, archive.Read(size - tail_bytes, tail_bytes, &buffer));
  // The end record is the last one whose comment reaches to the end of the file.
  for (int64_t at = tail_bytes - kEndBytes; at >= 0; --at) {
    const std::string_view end = tail.substr(static_cast<size_t>(at));
    if (At<uint32_t>(end, 0) != kEndMark || At<uint16_t>(end, 20) + kEndBytes != tail_bytes - at) continue;
    Directory directory{.begin = At<uint32_t>(end, 16), .bytes = At<uint32_t>(end, 12)};
    if (at < kLocatorBytes) return directory;
    const std::string_view locator = tail.substr(static_cast<size_t>(at - kLocatorBytes));
    if (At<uint32_t>(locator, 0) != kLocatorMark) return directory;
    const auto place = At<uint64_t>(locator, 8);
    if (place > static_cast<uint64_t>(std::max<int64_t>(0, size - kEnd64Bytes)) || size < kEnd64Bytes)
      return Damaged(path, "its end record points behind its end");
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view end64,
                            archive.Read(static_cast<int64_t>(place), kEnd64Bytes, &buffer));
    if (At<uint32_t>(end64, 0) != kEnd64Mark) return Damaged(path, "its end record is none");
    return Directory{.begin = At<uint64_t>(end64, 48), .bytes = At<uint64_t>(end64, 40)};
  }
  return Damaged(path, "it has no end record");
}

// Sizes that do not fit in 32 bits stand in an extra field, in this order, those only that do not fit.
bool TakeSizesIn64(std::string_view extra, uint64_t* bytes, uint64_t* packed, uint64_t* begin) {
  if (*bytes != kIn64 && *packed != kIn64 && *begin != kIn64) return true;
  while (extra.size() >= 4) {
    const size_t length = At<uint16_t>(extra, 2);
    if (length > extra.size() - 4) return false;
    std::string_view field = extra.substr(4, length);
    if (At<uint16_t>(extra, 0) == kExtra64) {
      for (uint64_t* const size : {bytes, packed, begin}) {
        if (*size != kIn64) continue;
        if (field.size() < 8) return false;
        *size = At<uint64_t>(field, 0);
        field.remove_prefix(8);
      }
      return true;
    }
    extra.remove_prefix(4 + length);
  }
  return false;
}

// Where the bytes of a member begin, behind its own header at `header`.
Result<int64_t> BeginOfMember(const std::string& path, const InputFile& archive, int64_t header) {
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view local, archive.Read(header, kLocalBytes, &buffer));
  if (At<uint32_t>(local, 0) != kLocalMark) return Damaged(path, "a member is not where it should be");
  return header + kLocalBytes + At<uint16_t>(local, 26) + At<uint16_t>(local, 28);
}

Result<CountedBytes> Inflate(const std::string& path, const InputFile& archive, const ZipMember& member) {
  const Status damaged = Damaged(path, fmt::format("what '{}' holds", member.name));
  if (member.bytes / kMostRatio > member.packed_bytes + 1) return damaged;
  CountedBytes out;
  HEDDLE_RETURN_IF_ERROR(out.Renew(member.bytes, path));
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) return Internal("zlib does not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closer(&stream, inflateEnd);
  constexpr int64_t kPieceBytes = 1 << 20;
  CountedBytes buffer;
  int64_t done = 0;
  int code = Z_OK;
  for (int64_t at = 0; at < member.packed_bytes && code != Z_STREAM_END; at += kPieceBytes) {
    HEDDLE_ASSIGN_OR_RETURN(
        const std::string_view piece,
        archive.Read(member.begin + at, std::min(kPieceBytes, member.packed_bytes - at), &buffer));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream.avail_in = static_cast<uInt>(piece.size());
    do {
      // One byte more than there is room for would be told by a stream that does not end.
      const int64_t room = std::min<int64_t>(member.bytes - done, 1 << 30);
      Bytef extra;
      stream.next_out = room > 0 ? reinterpret_cast<Bytef*>(out.data() + done) : &extra;
      stream.avail_out = room > 0 ? static_cast<uInt>(room) : 1;
      code = inflate(&stream, Z_NO_FLUSH);
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) return damaged;
      if (room == 0 && stream.avail_out == 0) return damaged;
      if (room > 0) done += room - static_cast<int64_t>(stream.avail_out);
    } while (code == Z_OK && (stream.avail_in > 0 || stream.avail_out == 0));
  }
  if (code != Z_STREAM_END || done != member.bytes) return damaged;
  uLong checksum = 0;
  for (std::string_view rest = out.view(); !rest.empty();
       rest.remove_prefix(std::min<size_t>(rest.size(), 1 << 30)))
    checksum = crc32(checksum, reinterpret_cast<const Bytef*>(rest.data()),
                     static_cast<uInt>(std::min<size_t>(rest.size(), 1 << 30)));
  if (checksum != member.checksum) return damaged;
  return out;
}

// A part of a file as a file.
class PartOfFile : public InputFile {
 public:
  PartOfFile(const InputFile& whole, int64_t begin, int64_t size)
      : whole_(whole), begin_(begin), size_(size) {}
  int64_t size() const override { return size_; }
  Result<std::string_view> Read(int64_t begin, int64_t count, CountedBytes* buffer) const override {
    return whole_.Read(begin_ + begin, count, buffer);
  }

 private:
  const InputFile& whole_;
  const int64_t begin_;
  const int64_t size_;
};

class MemberInMemory : public InputFile {
 public:
  explicit MemberInMemory(CountedBytes bytes) : bytes_(std::move(bytes)) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.view().size()); }
  Result<std::string_view> Read(int64_t begin, int64_t count, CountedBytes*) const override {
    return bytes_.view().substr(static_cast<size_t>(begin), static_cast<size_t>(count));
  }

 private:
  const CountedBytes bytes_;
};

}  // namespace

Result<std::vector<ZipMember>> ReadZipDirectory(const std::string& path, const InputFile& archive) {
  const auto size = static_cast<uint64_t>(archive.size());
  HEDDLE_ASSIGN_OR_RETURN(const Directory directory, FindDirectory(path, archive));
  if (directory.bytes > size || directory.begin > size - directory.bytes ||
      directory.bytes > static_cast<uint64_t>(kMostDirectoryBytes))
    return Damaged(path, "its directory is not inside of it");
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(
      std::string_view rest,
      archive.Read(static_cast<int64_t>(directory.begin), static_cast<int64_t>(directory.bytes), &buffer));
  std::vector<ZipMember> members;
  while (!rest.empty()) {
    const Status damaged = Damaged(path, fmt::format("entry {} of its directory", members.size() + 1));
    if (rest.size() < kEntryBytes || At<uint32_t>(rest, 0) != kEntryMark) return damaged;
    const size_t name = At<uint16_t>(rest, 28), extra = At<uint16_t>(rest, 30),
                 comment = At<uint16_t>(rest, 32);
    if (rest.size() - kEntryBytes < name + extra + comment) return damaged;
    ZipMember member;
    member.name = rest.substr(kEntryBytes, name);
    member.checksum = At<uint32_t>(rest, 16);
    uint64_t packed = At<uint32_t>(rest, 20), bytes = At<uint32_t>(rest, 24), begin = At<uint32_t>(rest, 42);
    if (!TakeSizesIn64(rest.substr(kEntryBytes + name, extra), &bytes, &packed, &begin)) return damaged;
    const auto method = At<uint16_t>(rest, 10);
    if ((At<uint16_t>(rest, 8) & 1) != 0)
      return DataLoss("cannot read '{}': '{}' in it is encrypted", path, member.name);
    if (method != kStored && method != kDeflated)
      return DataLoss("cannot read '{}': '{}' in it is packed in a way that Heddle does not know (method {})",
                      path, member.name, method);
    member.deflated = method == kDeflated;
    if (begin > size || size - begin < kLocalBytes || packed > size - begin - kLocalBytes ||
        bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) ||
        (!member.deflated && bytes != packed))
      return damaged;
    HEDDLE_ASSIGN_OR_RETURN(member.begin, BeginOfMember(path, archive, static_cast<int64_t>(begin)));
    member.packed_bytes = static_cast<int64_t>(packed);
    member.bytes = static_cast<int64_t>(bytes);
    if (member.begin > archive.size() - member.packed_bytes) return damaged;
    members.push_back(std::move(member));
    rest.remove_prefix(kEntryBytes + name + extra + comment);
  }
  return members;
}

Result<std::unique_ptr<InputFile>> OpenZipMember(const std::string& path, const InputFile& archive,
                                                 const ZipMember& member) {
  if (!member.deflated)
    return std::unique_ptr<InputFile>(std::make_unique<PartOfFile>(archive, member.begin, member.bytes));
  HEDDLE_ASSIGN_OR_RETURN(CountedBytes bytes, Inflate(path, archive, member));
  return std::unique_ptr<InputFile>(std::make_unique<MemberInMemory>(std::move(bytes)));
}

namespace {

// The records of a member, but for its bytes.
struct MemberRecords {
  std::string local;      // Before its bytes.
  std::string directory;  // In the directory.
};

MemberRecords RecordsOf(const ZipSource& member, uint32_t checksum, uint64_t begin) {
  const bool large = member.bytes >= kIn64, far = begin >= kIn64;
  const auto size = static_cast<uint64_t>(member.bytes);
  const uint32_t shown = large ? kIn64 : static_cast<uint32_t>(size);
  const uint16_t version = large || far ? 45 : 20;
  constexpr uint16_t kUtf8 = 1 << 11, kFirstDay = 33;  // 1980-01-01: the bytes must not tell the time
  // Version to extract, flags, method, time, day, checksum, sizes, length of the name: alike in both records.
  std::string common;
  for (const uint16_t field : {version, kUtf8, kStored, uint16_t{0}, kFirstDay}) Append(field, &common);
  for (const uint32_t field : {checksum, shown, shown}) Append(field, &common);
  Append(static_cast<uint16_t>(member.name.size()), &common);
  std::string sizes;  // That stand in an extra field, because they do not fit.
  if (large) {
    Append(size, &sizes);
    Append(size, &sizes);
  }
  const auto append_extra = [](const std::string& numbers, std::string* out) {
    if (numbers.empty()) return;
    Append(kExtra64, out);
    Append(static_cast<uint16_t>(numbers.size()), out);
    *out += numbers;
  };
  const auto bytes_of_extra = [](const std::string& numbers) {
    return static_cast<uint16_t>(numbers.empty() ? 0 : numbers.size() + 4);
  };
  MemberRecords records;
  Append(kLocalMark, &records.local);
  records.local += common;
  Append(bytes_of_extra(sizes), &records.local);
  records.local += member.name;
  append_extra(sizes, &records.local);
  if (far) Append(begin, &sizes);
  Append(kEntryMark, &records.directory);
  Append(version, &records.directory);
  records.directory += common;
  Append(bytes_of_extra(sizes), &records.directory);
  for (const uint16_t field : {uint16_t{0}, uint16_t{0}, uint16_t{0}}) Append(field, &records.directory);
  Append(uint32_t{0}, &records.directory);  // attributes
  Append(far ? kIn64 : static_cast<uint32_t>(begin), &records.directory);
  records.directory += member.name;
  append_extra(sizes, &records.directory);
  return records;
}

}  // namespace

Status WriteZip(const std::vector<ZipSource>& members, const ByteSink& sink) {
  std::string directory;
  uint64_t begin = 0;
  for (const ZipSource& member : members) {
    uLong checksum = 0;
    HEDDLE_RETURN_IF_ERROR(member.source([&](std::string_view piece) {
      checksum =
          crc32(checksum, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(piece.size()));
      return OkStatus();
    }));
    const MemberRecords records = RecordsOf(member, static_cast<uint32_t>(checksum), begin);
    HEDDLE_RETURN_IF_ERROR(sink(records.local));
    HEDDLE_RETURN_IF_ERROR(member.source(sink));
    directory += records.directory;
    begin += records.local.size() + static_cast<uint64_t>(member.bytes);
  }
  const uint64_t directory_bytes = directory.size(), count = members.size();
  std::string end;
  const bool far = begin >= kIn64;
  if (far) {
    Append(kEnd64Mark, &end);
    Append(uint64_t{kEnd64Bytes - 12}, &end);
    for (const uint16_t field : {uint16_t{45}, uint16_t{45}}) Append(field, &end);
    for (const uint32_t field : {uint32_t{0}, uint32_t{0}}) Append(field, &end);
    for (const uint64_t field : {count, count, directory_bytes, begin}) Append(field, &end);
    Append(kLocatorMark, &end);
    Append(uint32_t{0}, &end);
    Append(begin + directory_bytes, &end);
    Append(uint32_t{1}, &end);
  }
  const auto shown_count = static_cast<uint16_t>(count);
  Append(kEndMark, &end);
  for (const uint16_t field : {uint16_t{0}, uint16_t{0}, shown_count, shown_count}) Append(field, &end);
  Append(static_cast<uint32_t>(directory_bytes), &end);
  Append(far ? kIn64 : static_cast<uint32_t>(begin), &end);
  Append(uint16_t{0}, &end);
  return sink(directory + end);
}

}  // namespace heddle::ops
