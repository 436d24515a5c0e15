// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/spilled_array.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

#include "ops/io/checksums/crc32c.h"

namespace heddle::ops {
namespace {

// What is checked and moved in one go: what a checksum has read is still in the caches when it is written.
// One thread does it all: file systems let one write to a file at a time, and two that read it by turns hide
// from the disk that it is read from the first byte to the last.
constexpr int64_t kPieceBytes = 16 * SpilledArray::kChunkBytes;

int64_t ChunksOf(int64_t bytes) {
  return (bytes + SpilledArray::kChunkBytes - 1) / SpilledArray::kChunkBytes;
}

// Of chunk `chunk` of `count` bytes.
uint32_t ChecksumOf(const char* bytes, int64_t count, int64_t chunk) {
  const int64_t begin = chunk * SpilledArray::kChunkBytes;
  return Crc32c({bytes + begin, static_cast<size_t>(std::min(SpilledArray::kChunkBytes, count - begin))});
}

}  // namespace

Result<SpilledArray> SpilledArray::Write(SpillFile& file, int64_t offset, const void* bytes, int64_t count) {
  SpilledArray array;
  array.offset_ = offset;
  array.bytes_ = count;
  array.checksums_.reserve(static_cast<size_t>(ChunksOf(count)));
  for (int64_t at = 0; at < count; at += kPieceBytes) {
    const char* const from = static_cast<const char*>(bytes) + at;
    const int64_t size = std::min(kPieceBytes, count - at);
    for (int64_t chunk = 0; chunk < ChunksOf(size); ++chunk)
      array.checksums_.push_back(ChecksumOf(from, size, chunk));
    HEDDLE_RETURN_IF_ERROR(file.WriteAt(offset + at, from, size));
  }
  return array;
}

// `begin` is where a chunk begins, and the last byte is the last one of a chunk.
Status SpilledArray::ReadChunks(const SpillFile& file, int64_t begin, int64_t count, char* out) const {
  for (int64_t at = 0; at < count; at += kPieceBytes) {
    const int64_t size = std::min(kPieceBytes, count - at);
    HEDDLE_RETURN_IF_ERROR(file.ReadAt(offset_ + begin + at, out + at, size));
    const uint32_t* const checksums = checksums_.data() + (begin + at) / kChunkBytes;
    for (int64_t chunk = 0; chunk < ChunksOf(size); ++chunk)
      if (ChecksumOf(out + at, size, chunk) != checksums[chunk])
        return DataLoss("spill: bytes of a file in '{}' are not what was written there", file.folder())
            .WithNote("the disk has changed them: name a folder on another one (--spill-folder FOLDER)");
  }
  return OkStatus();
}

Status SpilledArray::Read(const SpillFile& file, int64_t begin, int64_t count, void* out) const {
  char* to = static_cast<char*>(out);
  const int64_t end = begin + count;
  std::unique_ptr<char[]> scratch;  // For the chunks of which only a part is asked for.
  while (begin < end) {
    const int64_t chunk = begin / kChunkBytes * kChunkBytes;
    const int64_t chunk_end = std::min(bytes_, chunk + kChunkBytes);
    int64_t stop = std::min(end, chunk_end);
    if (begin == chunk && chunk_end <= end) {
      stop = end == bytes_ ? end : end / kChunkBytes * kChunkBytes;
      HEDDLE_RETURN_IF_ERROR(ReadChunks(file, begin, stop - begin, to));
    } else {
      if (scratch == nullptr) scratch = std::make_unique_for_overwrite<char[]>(kChunkBytes);
      HEDDLE_RETURN_IF_ERROR(ReadChunks(file, chunk, chunk_end - chunk, scratch.get()));
      std::memcpy(to, scratch.get() + (begin - chunk), static_cast<size_t>(stop - begin));
    }
    to += stop - begin;
    begin = stop;
  }
  return OkStatus();
}

void SpilledArray::Announce(const SpillFile& file, int64_t begin, int64_t count) const {
  if (count > 0) file.Announce(offset_ + begin, count);
}

}  // namespace heddle::ops
