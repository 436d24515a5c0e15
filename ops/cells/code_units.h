// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/simd/codes/codes.h"

namespace heddle::ops {

/// DDC groups whose codes are read as one code, so that one look-up serves the columns of all of them. The
/// code of a row is c0 + t0 * (c1 + t1 * (c2 + ...)), ck its code in group k, which has tk tuples.
struct CodeUnit {
  /// Codes of joined groups fit into a byte.
  static constexpr int64_t kMostJoined = 256;

  std::vector<const ColumnGroup*> groups;  ///< At least one.
  int64_t tuples = 1;                      ///< The product of theirs.
  int64_t width = 0;                       ///< Columns of all groups.
  /// Of the groups whose codes have 4 and 8 bits: what their codes add to the unit's.
  std::vector<simd::FourBits> four_bits;
  struct Bytes {
    const uint8_t* codes;
    uint8_t factor;
  };
  std::vector<Bytes> bytes;

  bool HasWideCodes() const { return four_bits.empty() && bytes.empty(); }  ///< Of 16 bits.

  /// Whether the tuples would be at most `most`, which is at most kMostJoined, or those of `group` alone.
  bool CanJoin(const ColumnGroup& group, int64_t most = kMostJoined) const {
    return groups.empty() ||
           (tuples * group.tuples() <= most && group.codes.bits() <= 8 && groups[0]->codes.bits() <= 8);
  }
  void Join(const ColumnGroup& group);
  /// Calls visit(k, code) for the code of each group k that code `unit_code` stands for.
  template <typename Visit>
  void ForCodes(int64_t unit_code, const Visit& visit) const {
    for (size_t k = 0; k < groups.size(); ++k) {
      visit(k, unit_code % groups[k]->tuples());
      unit_code /= groups[k]->tuples();
    }
  }
};

/// Rows whose codes are read at once.
constexpr int64_t kCodesAtOnce = 512;
/// Matrices with fewer rows are done before tuples of joined groups are.
constexpr int64_t kLeastJoinedRows = 4096;

/// Fetches `bytes` behind the next two lines: codes of many groups are more streams than the processor's own
/// prefetcher follows.
void FetchCodes(const uint8_t* codes, int64_t bytes);

/// Room for so many codes, and one in front of them.
using CodeRoom = std::array<uint8_t, kCodesAtOnce + 16>;

/// The codes of a unit of at most 8 bits, of rows [begin, end) of its groups, at most kCodesAtOnce: where
/// they are, or in `room`. Fetches those of the next rows.
const uint8_t* ByteCodes(const CodeUnit& unit, int64_t begin, int64_t end, CodeRoom* room);

/// Calls visit(codes) with the codes of rows [begin, end), at most kCodesAtOnce: const uint8_t* or const
/// uint16_t*.
template <typename Visit>
void WithCodes(const CodeUnit& unit, int64_t begin, int64_t end, const Visit& visit) {
  if (unit.HasWideCodes())
    return visit(reinterpret_cast<const uint16_t*>(unit.groups[0]->codes.data()) + begin);
  CodeRoom room;
  visit(ByteCodes(unit, begin, end, &room));
}

/// Where an SDC or an RLE group is read on: the number of an exception or a run.
struct GroupPlace {
  int64_t at = 0;
};
/// The first exception of a kDefault group in row `row` or behind it; the run of a kRuns group that row `row`
/// is in.
GroupPlace PlaceOfRow(const ColumnGroup& group, int64_t row);

/// Calls visit(row, code) for the exceptions of rows [begin, end), in their order. `place` is that of
/// `begin`, and becomes that of `end`.
template <typename Visit>
void VisitExceptions(const ColumnGroup& group, int64_t begin, int64_t end, GroupPlace* place,
                     const Visit& visit) {
  if (group.codes.count() == 0) return;
  const uint16_t* const rows = group.exception_rows();
  int64_t at = place->at;
  for (int64_t row = begin; row < end;) {
    const int64_t segment = row / kSegmentRows, first = segment * kSegmentRows;
    const int64_t last = group.segments[static_cast<size_t>(segment) + 1];
    const int64_t stop = end - first < kSegmentRows ? end : first + kSegmentRows;
    for (; at < last && first + rows[at] < stop; ++at) visit(first + rows[at], group.codes.At(at));
    row = stop;
  }
  place->at = at;
}

/// Calls visit(first, last, code) for the parts of runs in rows [begin, end), in their order; `place` as
/// above.
template <typename Visit>
void VisitRuns(const ColumnGroup& group, int64_t begin, int64_t end, GroupPlace* place, const Visit& visit) {
  const auto runs = static_cast<int64_t>(group.starts.size());
  for (int64_t row = begin; row < end;) {
    const int64_t next = place->at + 1 < runs ? group.starts[static_cast<size_t>(place->at) + 1] : end;
    const int64_t stop = next < end ? next : end;
    visit(row, stop, group.codes.At(place->at));
    if (stop == next && place->at + 1 < runs) ++place->at;
    row = stop;
  }
}

/// Writes the code of each row of [begin, end) of a DDC, SDC or RLE group; `place` as above, of DDC unused.
template <typename Code>
void ExpandCodes(const ColumnGroup& group, int64_t begin, int64_t end, GroupPlace* place, Code* codes) {
  switch (group.encoding) {
    case Encoding::kDefault:
      std::fill_n(codes, end - begin, Code{0});
      return VisitExceptions(group, begin, end, place, [&](int64_t row, uint32_t code) {
        codes[row - begin] = static_cast<Code>(code);
      });
    case Encoding::kRuns:
      return VisitRuns(group, begin, end, place, [&](int64_t first, int64_t last, uint32_t code) {
        std::fill_n(codes + (first - begin), last - first, static_cast<Code>(code));
      });
    default:
      for (int64_t row = begin; row < end; ++row) codes[row - begin] = static_cast<Code>(group.codes.At(row));
  }
}

}  // namespace heddle::ops
