// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/entry_counts.h"

#include <algorithm>
#include <utility>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/panels/panel_store.h"

namespace heddle::ops {
namespace {

int64_t RoundedUp(int64_t entries) {
  constexpr int64_t kSteps = 32;
  const int64_t step = std::max<int64_t>(1, FloorPowerOfTwo(std::max<int64_t>(entries, 1)) / kSteps);
  return CeilDivide(entries, step) * step;
}

}  // namespace

EntryCounts::EntryCounts(int64_t rows) : rows_(rows), granule_(Granule(rows)) {}

void EntryCounts::Add(const Matrix& rows) {
  const int64_t* const offsets = rows.row_offsets();
  for (int64_t row = CeilDivide(added_, granule_) * granule_; row < added_ + rows.rows(); row += granule_)
    before_.push_back(entries_ + offsets[row - added_] - offsets[0]);
  added_ += rows.rows();
  entries_ += rows.stored();
}

std::vector<int64_t> EntryCounts::Finish() {
  if (added_ != rows_) before_.clear();
  if (!before_.empty()) before_.push_back(entries_);
  return std::move(before_);
}

std::vector<int64_t> MostEntries(std::span<const int64_t> before) {
  std::vector<int64_t> most;
  if (before.size() < 2) return most;
  const size_t granules = before.size() - 1;
  for (size_t run = 1;; run *= 2) {
    int64_t found = 0;
    for (size_t first = 0; first < granules; first += run)
      found = std::max(found, before[std::min(granules, first + run)] - before[first]);
    most.push_back(RoundedUp(found));
    if (run >= granules) return most;
  }
}

std::vector<int64_t> MostEntries(const DeviceCells& cells) {
  const int64_t of_offsets = (cells.rows() + 1) * 8, of_entry = BytesOf(cells.element_type()) + 4;
  const int64_t granules = CeilDivide(cells.rows(), Granule(cells.rows()));
  std::vector<int64_t> most = {RoundedUp((cells.bytes() - of_offsets) / of_entry)};
  for (int64_t run = 1; run < granules; run *= 2) most.push_back(most[0]);
  return most;
}

int64_t BytesOfRows(const RowPanels& panels, const ValueInfo& info) {
  constexpr int64_t kEntryBytes = 12;
  if (!info.IsMatrix() || !info.IsSized()) return kUnknown;
  if (info.format != Format::kSparse) return KnownBytes(info);
  const std::vector<int64_t> entries = EntriesOf(panels);
  if (entries.empty()) return kUnknown;
  return SaturatingSum(KnownBytes(info), SaturatingProduct(entries.back(), kEntryBytes));
}

}  // namespace heddle::ops
