// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/io/formats/read_chunks.h"

// The first look at a text, shared by ranks (docs/files.md, "Read and written by several workers"). A format
// says of each chunk what it finds there, as a record that the chunk alone decides, and makes its summary of
// all records. Who looks is not its business: one process at all chunks, or every rank at its share.
namespace heddle::ops {

/// What one rank has found in its chunks.
struct LookedShare {
  std::vector<int64_t> offsets;      ///< Where its chunks begin, and where the last of them ends.
  std::vector<std::string> records;  ///< One for each chunk.

  std::string ToBytes() const;
  /// nullopt: they are not what ToBytes makes.
  static std::optional<LookedShare> Parse(std::string_view bytes);
};

/// A record of numbers alone is its bytes; others have ToBytes() and Parse(bytes), which says whether they
/// are such.
template <typename Record>
std::string RecordBytes(const Record& record) {
  if constexpr (requires { record.ToBytes(); }) {
    return record.ToBytes();
  } else {
    static_assert(std::is_trivially_copyable_v<Record>);
    return {reinterpret_cast<const char*>(&record), sizeof(Record)};
  }
}
template <typename Record>
bool ParseRecord(std::string_view bytes, Record* record) {
  if constexpr (requires { record->Parse(bytes); }) {
    return record->Parse(bytes);
  } else {
    if (bytes.size() != sizeof(Record)) return false;
    std::memcpy(static_cast<void*>(record), bytes.data(), sizeof(Record));
    return true;
  }
}

/// Who looks at the chunks of one text. One for each look; one thread.
class ChunkLooks {
 public:
  /// This process looks at all chunks.
  ChunkLooks() = default;
  /// This rank looks at its share, and the look ends with a failure behind it: what was found is in share(),
  /// unless something is wrong with the file.
  static ChunkLooks OfShare(ShareOfChunks share);
  /// The ranks have looked at all: their shares in order.
  static ChunkLooks Of(std::vector<LookedShare> shares);

  bool looks_at_all() const { return !is_share_ && !known_; }
  const std::optional<LookedShare>& share() const { return found_; }

  template <typename Record>
  struct Chunks {
    std::vector<int64_t> offsets;  ///< One more than records.
    std::vector<Record> records;
  };
  /// Chunks that begin where cut(share) says, and what look(text, &record) finds in each; it says whether all
  /// is well there. Several at once.
  template <typename Record, typename Cut, typename LookAt>
  Result<Chunks<Record>> Look(const TextFile& text, const Cut& cut, const LookAt& look) {
    if (known_) return Known<Record>(text);
    Chunks<Record> chunks;
    HEDDLE_ASSIGN_OR_RETURN(chunks.offsets, cut(share_));
    chunks.records.resize(chunks.offsets.size() - 1);
    std::atomic<bool> is_well = true;
    HEDDLE_RETURN_IF_ERROR(VisitChunks(text, chunks.offsets, [&](size_t chunk, std::string_view piece) {
      if (is_well && !look(piece, &chunks.records[chunk])) is_well = false;
    }));
    if (!is_share_) return chunks;
    if (is_well) {
      found_ = LookedShare{.offsets = std::move(chunks.offsets)};
      for (const Record& record : chunks.records) found_->records.push_back(RecordBytes(record));
    }
    return Cancelled("a share of a look ends behind its chunks");
  }

  template <typename Record>
  struct Lines {
    LineChunks chunks;  ///< `lines` counts from the beginning of the file.
    std::vector<Record> records;
  };
  /// The same of a text of which each line stands for itself, from `begin` on, behind so many lines:
  /// look(chunk, text, lines_before, &record, &lines) says in a status what is wrong, and in `lines` how many
  /// it has taken. Of what is wrong in several chunks the first in the file is told.
  template <typename Record, typename LookAt>
  Result<Lines<Record>> LookAtLines(const ReadOptions& options, const TextFile& text, int64_t begin,
                                    int64_t lines_before, const LookAt& look) {
    Lines<Record> found;
    if (looks_at_all()) {
      HEDDLE_ASSIGN_OR_RETURN(found.chunks, CutLines(text, begin, options.chunk_bytes));
      for (int64_t& lines : found.chunks.lines) lines += lines_before;
      found.records.resize(found.chunks.offsets.size() - 1);
      HEDDLE_RETURN_IF_ERROR(VisitLineChunks(
          options, text, found.chunks, ChunkOrder::kAny, [](size_t) { return true; },
          [&](size_t c, std::string_view piece, int64_t* lines) {
            return look(c, piece, found.chunks.lines[c], &found.records[c], lines);
          }));
      return found;
    }
    // A rank does not know the lines before its share: a fault is told by a look at all chunks.
    HEDDLE_ASSIGN_OR_RETURN(Chunks<WithLines<Record>> chunks,
                            Look<WithLines<Record>>(
                                text,
                                [&](const ShareOfChunks& share) {
                                  return CutAtLineEnds(text, begin, options.chunk_bytes, "", share);
                                },
                                [&](std::string_view piece, WithLines<Record>* record) {
                                  record->lines = CountLines(piece);
                                  int64_t lines = 0;
                                  return !IsCancelled(options.cancelled) &&
                                         look(size_t{0}, piece, int64_t{0}, &record->record, &lines).ok();
                                }));
    found.chunks.offsets = std::move(chunks.offsets);
    found.chunks.lines.push_back(lines_before);
    for (WithLines<Record>& record : chunks.records) {
      found.chunks.lines.push_back(found.chunks.lines.back() + record.lines);
      found.records.push_back(std::move(record.record));
    }
    return found;
  }

 private:
  template <typename Record>
  struct WithLines {
    int64_t lines = 0;
    Record record = {};

    std::string ToBytes() const { return RecordBytes(lines) + RecordBytes(record); }
    bool Parse(std::string_view bytes) {
      return bytes.size() >= sizeof(lines) && ParseRecord(bytes.substr(0, sizeof(lines)), &lines) &&
             ParseRecord(bytes.substr(sizeof(lines)), &record);
    }
  };

  template <typename Record>
  Result<Chunks<Record>> Known(const TextFile& text) const {
    Chunks<Record> chunks;
    for (const LookedShare& share : *known_) {
      for (size_t i = 0; i < share.records.size(); ++i) {
        chunks.offsets.push_back(share.offsets[i]);
        if (!ParseRecord(share.records[i], &chunks.records.emplace_back()))
          return Internal("what a worker found in '{}' arrived malformed", text.path());
      }
      if (&share == &known_->back()) chunks.offsets.push_back(share.offsets.back());
    }
    return chunks;
  }

  ShareOfChunks share_;
  bool is_share_ = false;
  std::optional<std::vector<LookedShare>> known_;
  std::optional<LookedShare> found_;
};

}  // namespace heddle::ops
