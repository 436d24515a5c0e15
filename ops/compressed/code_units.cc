// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/code_units.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/simd/codes.h"

namespace heddle::ops {

const uint8_t* ByteCodes(const CodeUnit& unit, int64_t begin, int64_t end, uint8_t* room) {
  const int64_t count = end - begin;
  int64_t factor = 1;
  for (size_t k = 0; k < unit.groups.size(); ++k) {
    const Codes& codes = unit.groups[k]->codes;
    if (codes.bits() == 4) {
      std::array<uint8_t, 16> scaled;
      for (size_t code = 0; code < scaled.size(); ++code)
        scaled[code] = static_cast<uint8_t>(code * static_cast<size_t>(factor));
      (k == 0 ? simd::LookUpFourBits : simd::AddFourBits)(codes.data(), begin, count, scaled.data(), room);
    } else if (unit.groups.size() == 1) {
      return codes.data() + begin;
    } else if (k == 0) {
      std::memcpy(room, codes.data() + begin, static_cast<size_t>(count));
    } else {
      simd::AddScaledBytes(codes.data() + begin, count, static_cast<uint8_t>(factor), room);
    }
    factor *= unit.groups[k]->tuples();
  }
  return room;
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
