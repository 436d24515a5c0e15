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
constexpr int64_t kPieceBytes = 16 * SpilledArray::kChunkBytes;

}  // namespace

Result<SpilledArray> SpilledArray::Write(SpillFile& file, int64_t offset, const void* bytes, int64_t count) {
  SpilledArray array;
  array.offset_ = offset;
  array.bytes_ = count;
  array.checksums_.reserve(static_cast<size_t>((count + kChunkBytes - 1) / kChunkBytes));
  const char* const from = static_cast<const char*>(bytes);
  for (int64_t at = 0; at < count; at += kPieceBytes) {
    const int64_t end = std::min(count, at + kPieceBytes);
    for (int64_t chunk = at; chunk < end; chunk += kChunkBytes)
      array.checksums_.push_back(
          Crc32c({from + chunk, static_cast<size_t>(std::min(kChunkBytes, end - chunk))}));
    HEDDLE_RETURN_IF_ERROR(file.WriteAt(offset + at, from + at, end - at));
  }
  return array;
}

// `begin` is where a chunk begins, and the last byte is the last one of a chunk.
Status SpilledArray::ReadChunks(const SpillFile& file, int64_t begin, int64_t count, char* out) const {
  for (int64_t at = 0; at < count; at += kPieceBytes) {
    const int64_t end = std::min(count, at + kPieceBytes);
    HEDDLE_RETURN_IF_ERROR(file.ReadAt(offset_ + begin + at, out + at, end - at));
    for (int64_t chunk = at; chunk < end; chunk += kChunkBytes) {
      const std::string_view bytes(out + chunk, static_cast<size_t>(std::min(kChunkBytes, end - chunk)));
      if (Crc32c(bytes) != checksums_[static_cast<size_t>((begin + chunk) / kChunkBytes)])
        return DataLoss("spill: {} bytes of a file in '{}' are not what was written there", bytes.size(),
                        file.folder())
            .WithNote(
                "the disk or its controller has changed them; name a folder on another disk (--spill-folder "
                "FOLDER)");
    }
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
