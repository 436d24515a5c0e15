// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/code_units.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace heddle::ops {

void FetchCodes(const uint8_t* codes, int64_t bytes) {
  constexpr int64_t kAhead = 128, kLine = 64;
  for (int64_t at = 0; at < bytes; at += kLine)
    _mm_prefetch(reinterpret_cast<const char*>(codes + kAhead + at), _MM_HINT_T0);
}

void CodeUnit::Join(const ColumnGroup& group) {
  const auto factor = static_cast<uint8_t>(tuples);
  if (group.codes.bits() == 4) {
    four_bits.push_back({group.codes.data(), {}});
    for (size_t code = 0; code < 16; ++code)
      four_bits.back().bytes[code] = static_cast<uint8_t>(code * factor);
  } else if (group.codes.bits() == 8) {
    bytes.push_back({group.codes.data(), factor});
  }
  groups.push_back(&group);
  tuples *= group.tuples();
  width += group.width();
}

const uint8_t* ByteCodes(const CodeUnit& unit, int64_t begin, int64_t end, CodeRoom* room) {
  for (const CodeUnit::Bytes& part : unit.bytes) FetchCodes(part.codes + end, end - begin);
  if (unit.four_bits.empty() && unit.bytes.size() == 1) return unit.bytes[0].codes + begin;
  // Two codes of 4 bits are in a byte.
  const int64_t before = unit.four_bits.empty() ? 0 : begin & 1, count = end - begin;
  uint8_t* const codes = room->data() + before;
  if (unit.four_bits.empty()) {
    std::memset(codes, 0, static_cast<size_t>(count));
  } else {
    for (const simd::FourBits& part : unit.four_bits) FetchCodes(part.codes + end / 2, count / 2);
    simd::AddFourBits(unit.four_bits, begin - before, count + before, room->data());
  }
  for (const CodeUnit::Bytes& part : unit.bytes)
    simd::AddScaledBytes(part.codes + begin, count, part.factor, codes);
  return codes;
}

GroupPlace PlaceOfRow(const ColumnGroup& group, int64_t row) {
  if (group.encoding == Encoding::kRuns)
    return {std::upper_bound(group.starts.begin(), group.starts.end(), row) - group.starts.begin() - 1};
  const auto segment = static_cast<size_t>(row / kSegmentRows);
  if (group.codes.count() == 0 || segment + 1 >= group.segments.size()) return {group.codes.count()};
  const uint16_t* const rows = group.exception_rows();
  return {std::lower_bound(rows + group.segments[segment], rows + group.segments[segment + 1],
                           row % kSegmentRows) -
          rows};
}

}  // namespace heddle::ops
