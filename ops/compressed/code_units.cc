// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/code_units.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace heddle::ops {

namespace {

// Codes of many groups are more streams than the processor's prefetcher follows.
void Fetch(const uint8_t* codes) { _mm_prefetch(reinterpret_cast<const char*>(codes), _MM_HINT_T0); }
constexpr int64_t kBytesAhead = 128;

}  // namespace

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
  for (const CodeUnit::Bytes& part : unit.bytes) Fetch(part.codes + end + kBytesAhead);
  if (unit.four_bits.empty() && unit.bytes.size() == 1) return unit.bytes[0].codes + begin;
  // Two codes of 4 bits are in a byte.
  const int64_t before = unit.four_bits.empty() ? 0 : begin & 1, count = end - begin;
  uint8_t* const codes = room->data() + before;
  if (unit.four_bits.empty()) {
    std::memset(codes, 0, static_cast<size_t>(count));
  } else {
    for (const simd::FourBits& part : unit.four_bits) Fetch(part.codes + end / 2 + kBytesAhead);
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
