// SPDX-License-Identifier: Apache-2.0
// Rows of a binary file that holds column groups, as column groups: codes are copied as they lie, and no cell
// is made.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/io/formats/binary/binary_file.h"
#include "ops/io/formats/binary/binary_layout.h"
#include "ops/io/formats/binary/row_coding.h"

namespace heddle::ops {
namespace {

// Codes that stand in a block one behind the other.
class StoredCodes {
 public:
  StoredCodes(const char* bytes, int32_t bits)
      : bytes_(reinterpret_cast<const uint8_t*>(bytes)), bits_(bits) {}
  uint32_t At(int64_t i) const {
    if (bits_ == 4) return bytes_[i / 2] >> (i % 2 * 4) & 15;
    if (bits_ == 8) return bytes_[i];
    return Load<uint16_t>(reinterpret_cast<const char*>(bytes_) + 2 * i);
  }
  // Whether each of `count` codes is less than `tuples`.
  bool AreBelow(int64_t tuples, int64_t count) const {
    if (tuples == int64_t{1} << bits_) return true;
    uint32_t most = 0;
    for (int64_t i = 0; i < count; ++i) most = std::max(most, At(i));
    return count == 0 || most < tuples;
  }
  const uint8_t* data() const { return bytes_; }

 private:
  const uint8_t* bytes_;
  const int32_t bits_;
};

// The exceptions or runs of a group in one block: how many there are, their rows and their codes.
struct ListedCodes {
  static ListedCodes At(const char* bytes, int32_t bits) {
    const auto count = Load<uint64_t>(bytes);
    return {
        .count = static_cast<int64_t>(count), .rows = bytes + 8, .codes = {bytes + BytesBefore(count), bits}};
  }
  // Bytes before the codes.
  static int64_t BytesBefore(uint64_t count) { return 8 + RoundUpTo8(2 * static_cast<int64_t>(count)); }
  int64_t RowAt(int64_t i) const { return Load<uint16_t>(rows + 2 * i); }

  int64_t count;
  const char* rows;
  StoredCodes codes;
};

// Exceptions or runs of all blocks.
struct JoinedCodes {
  std::vector<int64_t> rows;  // Counted from the first of the result.
  std::vector<uint16_t> codes;
};

bool IsListed(const ColumnGroup& group) {
  return group.encoding == Encoding::kDefault || group.encoding == Encoding::kRuns;
}

class CodedRows {
 public:
  // Of 4 bits, two codes share a byte: the rows of the result begin at an even one.
  static Result<CodedRows> Make(const BinaryFile& file, int64_t begin, int64_t end) {
    CodedRows target(file, begin / 2 * 2, end);
    target.groups_ = file.coding()->groups();
    target.groups_.rows = end - target.begin_;
    for (ColumnGroup& group : target.groups_.groups) {
      if (group.encoding == Encoding::kDenseCodes) {
        HEDDLE_ASSIGN_OR_RETURN(group.codes, Codes::Make(target.groups_.rows, group.codes.bits()));
      } else if (group.encoding == Encoding::kUncompressed) {
        HEDDLE_ASSIGN_OR_RETURN(group.dictionary, Matrix::Dense(target.groups_.rows, group.width()));
      }
    }
    target.listed_.resize(static_cast<size_t>(file.BlocksUpTo(end) - target.first_block_));
    return target;
  }

  // A block whose checksum is right; others are taken at the same time.
  Status Take(int64_t number, const char* bytes) {
    const BinaryBlock block = file_.Block(number);
    const char* const block_end = bytes + block.bytes;
    const int64_t rows = file_.EndRow(number) - file_.FirstRow(number);
    const Range range = RangeOf(number);
    std::string& listed = listed_[static_cast<size_t>(number - first_block_)];
    for (ColumnGroup& group : groups_.groups) {
      switch (group.encoding) {
        case Encoding::kEmpty:
        case Encoding::kConstant: break;
        case Encoding::kDenseCodes: {
          const int64_t size = RoundUpTo8(CodeBytes(rows, group.codes.bits()));
          if (size > block_end - bytes) return Short(number);
          HEDDLE_RETURN_IF_ERROR(TakeCodes(number, rows, bytes, range, &group));
          bytes += size;
          break;
        }
        case Encoding::kUncompressed: {
          const bool are_doubles = block.layout == BlockLayout::kGroups64;
          const int64_t size = RoundUpTo8(rows * group.width() * (are_doubles ? 8 : 4));
          if (size > block_end - bytes) return Short(number);
          are_doubles ? TakeCells<double>(bytes, range, &group) : TakeCells<float>(bytes, range, &group);
          bytes += size;
          break;
        }
        case Encoding::kDefault:
        case Encoding::kRuns: {
          if (block_end - bytes < 8) return Short(number);
          const auto count = Load<uint64_t>(bytes);
          if (count > static_cast<uint64_t>(rows)) return Damaged(number, "has more codes than rows");
          const int64_t size = ListedCodes::BytesBefore(count) +
                               RoundUpTo8(CodeBytes(static_cast<int64_t>(count), group.codes.bits()));
          if (size > block_end - bytes) return Short(number);
          HEDDLE_RETURN_IF_ERROR(
              CheckListed(number, rows, ListedCodes::At(bytes, group.codes.bits()), group));
          listed.append(bytes, static_cast<size_t>(size));
          bytes += size;
          break;
        }
      }
    }
    return bytes == block_end ? OkStatus() : Damaged(number, "has bytes behind it");
  }

  Result<Matrix> Finish(int64_t begin) && {
    std::vector<JoinedCodes> joined(groups_.groups.size());
    for (size_t i = 0; i < listed_.size(); ++i) AppendListed(first_block_ + static_cast<int64_t>(i), &joined);
    for (size_t g = 0; g < groups_.groups.size(); ++g)
      if (IsListed(groups_.groups[g])) HEDDLE_RETURN_IF_ERROR(Store(joined[g], &groups_.groups[g]));
    const int64_t rows = groups_.rows;
    return Matrix::OfGroups(std::make_shared<const ColumnGroups>(std::move(groups_)))
        .Rows(begin - begin_, rows);
  }

 private:
  // The wanted rows of a block.
  struct Range {
    int64_t from, to;  // Counted in the block.
    int64_t first;     // In the result.
  };
  Range RangeOf(int64_t block) const {
    const int64_t first = file_.FirstRow(block);
    return {.from = std::max(begin_, first) - first,
            .to = std::min(end_, file_.EndRow(block)) - first,
            .first = std::max(begin_, first) - begin_};
  }

  CodedRows(const BinaryFile& file, int64_t begin, int64_t end)
      : file_(file), begin_(begin), end_(end), first_block_(begin / file.rows_of_block()) {}

  Status Short(int64_t block) const { return Damaged(block, "is cut off"); }
  Status Damaged(int64_t block, std::string_view what) const {
    return file_.Malformed(block, fmt::format("what is stored of a column group {}", what));
  }
  Status TakeCodes(int64_t number, int64_t rows, const char* bytes, const Range& range,
                   ColumnGroup* group) const {
    const int32_t bits = group->codes.bits();
    const StoredCodes stored(bytes, bits);
    if (!stored.AreBelow(group->tuples(), rows)) return Damaged(number, "has a code beyond its dictionary");
    // Both begin at even rows: where codes have 4 bits, at a byte.
    std::memcpy(group->codes.mutable_data() + CodeBytes(range.first, bits),
                stored.data() + CodeBytes(range.from, bits),
                static_cast<size_t>(CodeBytes(range.to - range.from, bits)));
    return OkStatus();
  }

  template <typename T>
  static void TakeCells(const char* bytes, const Range& range, ColumnGroup* group) {
    const T* const cells = reinterpret_cast<const T*>(bytes);
    const int64_t width = group->width();
    std::copy(cells + range.from * width, cells + range.to * width,
              group->dictionary.mutable_data() + range.first * width);
  }

  Status CheckListed(int64_t number, int64_t rows, const ListedCodes& listed,
                     const ColumnGroup& group) const {
    if (!listed.codes.AreBelow(group.tuples(), listed.count))
      return Damaged(number, "has a code beyond its dictionary");
    const bool are_runs = group.encoding == Encoding::kRuns;
    if (are_runs && (listed.count == 0 || listed.RowAt(0) != 0))
      return Damaged(number, "has rows without a run");
    for (int64_t i = 0; i < listed.count; ++i)
      if (listed.RowAt(i) >= rows || (i > 0 && listed.RowAt(i) <= listed.RowAt(i - 1)))
        return Damaged(number, "has rows out of order");
    return OkStatus();
  }

  // Adds the wanted exceptions and runs of a block. A run that goes on from the block before is one with it.
  void AppendListed(int64_t number, std::vector<JoinedCodes>* joined) {
    const std::string bytes = std::exchange(listed_[static_cast<size_t>(number - first_block_)], {});
    const Range range = RangeOf(number);
    const char* at = bytes.data();
    for (size_t g = 0; g < groups_.groups.size(); ++g) {
      const ColumnGroup& group = groups_.groups[g];
      if (!IsListed(group)) continue;
      const ListedCodes listed = ListedCodes::At(at, group.codes.bits());
      const bool are_runs = group.encoding == Encoding::kRuns;
      JoinedCodes& all = (*joined)[g];
      for (int64_t i = 0; i < listed.count; ++i) {
        // A run may begin before the wanted rows and reach into them.
        const int64_t row = listed.RowAt(i);
        const int64_t end = !are_runs ? row + 1 : i + 1 < listed.count ? listed.RowAt(i + 1) : range.to;
        if (end <= range.from || row >= range.to) continue;
        const auto code = static_cast<uint16_t>(listed.codes.At(i));
        if (are_runs && !all.codes.empty() && all.codes.back() == code) continue;
        all.rows.push_back(std::max(row, range.from) - range.from + range.first);
        all.codes.push_back(code);
      }
      at += ListedCodes::BytesBefore(static_cast<uint64_t>(listed.count)) +
            RoundUpTo8(CodeBytes(listed.count, group.codes.bits()));
    }
  }

  Status Store(const JoinedCodes& joined, ColumnGroup* group) const {
    const std::vector<int64_t>& rows = joined.rows;
    const auto count = static_cast<int64_t>(rows.size());
    HEDDLE_ASSIGN_OR_RETURN(group->codes, Codes::Make(count, group->codes.bits()));
    for (int64_t i = 0; i < count; ++i) group->codes.Set(i, joined.codes[static_cast<size_t>(i)]);
    if (group->encoding == Encoding::kRuns) {
      group->starts = rows;
      return OkStatus();
    }
    HEDDLE_ASSIGN_OR_RETURN(group->positions, Buffer::Allocate(std::max<int64_t>(
                                                  1, count * static_cast<int64_t>(sizeof(uint16_t)))));
    auto* const positions = static_cast<uint16_t*>(group->positions->data());
    group->segments.assign(static_cast<size_t>((groups_.rows + kSegmentRows - 1) / kSegmentRows) + 1, 0);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = rows[static_cast<size_t>(i)];
      positions[i] = static_cast<uint16_t>(row % kSegmentRows);
      ++group->segments[static_cast<size_t>(row / kSegmentRows) + 1];
    }
    for (size_t i = 1; i < group->segments.size(); ++i) group->segments[i] += group->segments[i - 1];
    return OkStatus();
  }

  const BinaryFile& file_;
  const int64_t begin_;
  const int64_t end_;
  const int64_t first_block_;
  ColumnGroups groups_;
  std::vector<std::string> listed_;  // By block, as they lie in it: ListedCodes of each group that has them.
};

}  // namespace

Result<Matrix> CodedRowsOf(const BinaryFile& file, int64_t row_begin, int64_t row_end,
                           const std::atomic<bool>* cancelled) {
  HEDDLE_ASSIGN_OR_RETURN(CodedRows target, CodedRows::Make(file, row_begin, row_end));
  HEDDLE_RETURN_IF_ERROR(file.Visit(
      row_begin, row_end, cancelled, [](int64_t) { return nullptr; },
      [&](int64_t block, const char* bytes) { return target.Take(block, bytes); }));
  return std::move(target).Finish(row_begin);
}

}  // namespace heddle::ops
