// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/write_codes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "ops/base/parallel.h"

namespace heddle::ops {
namespace {

// Rows whose codes are read and written together; even, so that two threads share no byte of codes.
constexpr int64_t kRowsAtOnce = 1024;

Status WriteDenseCodes(int64_t rows, const CodeReader& read, ColumnGroup* group) {
  HEDDLE_ASSIGN_OR_RETURN(group->codes, Codes::Make(rows, group->codes.bits()));
  ParallelFor(rows, 64 * kRowsAtOnce, [&](int64_t begin, int64_t end) {
    std::array<uint16_t, kRowsAtOnce> codes;
    for (int64_t row = begin; row < end; row += kRowsAtOnce) {
      const int64_t last = std::min(end, row + kRowsAtOnce);
      read(row, last, codes.data());
      for (int64_t i = row; i < last; ++i) group->codes.Set(i, codes[static_cast<size_t>(i - row)]);
    }
  });
  return OkStatus();
}

// visit(row, code) for all rows, in their order.
template <typename Visit>
void ForRows(int64_t rows, const CodeReader& read, const Visit& visit) {
  std::array<uint16_t, kRowsAtOnce> codes;
  for (int64_t row = 0; row < rows; row += kRowsAtOnce) {
    const int64_t last = std::min(rows, row + kRowsAtOnce);
    read(row, last, codes.data());
    for (int64_t i = row; i < last; ++i) visit(i, codes[static_cast<size_t>(i - row)]);
  }
}

Status WriteCodes(std::span<const uint16_t> from, ColumnGroup* group) {
  const auto count = static_cast<int64_t>(from.size());
  HEDDLE_ASSIGN_OR_RETURN(group->codes, Codes::Make(count, group->codes.bits()));
  for (int64_t i = 0; i < count; ++i) group->codes.Set(i, from[static_cast<size_t>(i)]);
  return OkStatus();
}

}  // namespace

Result<ColumnGroup> WithCodes(const ColumnGroup& other, int64_t rows, const CodeReader& read) {
  ColumnGroup group = other;
  if (group.encoding == Encoding::kDenseCodes) {
    HEDDLE_RETURN_IF_ERROR(WriteDenseCodes(rows, read, &group));
    return group;
  }
  std::vector<uint16_t> codes, exceptions;
  if (group.encoding == Encoding::kRuns) {
    group.starts.clear();
    ForRows(rows, read, [&](int64_t row, uint16_t code) {
      if (row > 0 && codes.back() == code) return;
      codes.push_back(code);
      group.starts.push_back(row);
    });
    HEDDLE_RETURN_IF_ERROR(WriteCodes(codes, &group));
  } else if (group.encoding == Encoding::kDefault) {
    group.segments.clear();
    ForRows(rows, read, [&](int64_t row, uint16_t code) {
      if (row % kSegmentRows == 0) group.segments.push_back(static_cast<int64_t>(codes.size()));
      if (code == 0) return;
      codes.push_back(code);
      exceptions.push_back(static_cast<uint16_t>(row % kSegmentRows));
    });
    group.segments.push_back(static_cast<int64_t>(codes.size()));
    HEDDLE_RETURN_IF_ERROR(WriteCodes(codes, &group));
    const size_t bytes = exceptions.size() * sizeof(uint16_t);
    HEDDLE_ASSIGN_OR_RETURN(group.positions,
                            Buffer::Allocate(std::max<int64_t>(static_cast<int64_t>(bytes), 1)));
    if (bytes > 0) std::memcpy(group.positions->data(), exceptions.data(), bytes);
  }
  return group;
}

}  // namespace heddle::ops
