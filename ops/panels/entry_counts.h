// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/programs/graph.h"
#include "core/values/device_cells.h"
#include "core/values/matrix.h"
#include "core/values/row_panels.h"

namespace heddle::ops {

/// Counts the entries of a CSR matrix by granules of its rows (core/values/panels.h), so that a plan knows
/// how many a panel has at most.
class EntryCounts {
 public:
  /// Of a matrix with that many rows, not kUnknown.
  explicit EntryCounts(int64_t rows);
  /// The next rows.
  void Add(const Matrix& rows);
  /// Element i: the entries before granule i; the last one: all of them. Empty unless all rows were added.
  std::vector<int64_t> Finish();

 private:
  int64_t rows_, granule_;
  int64_t added_ = 0;
  int64_t entries_ = 0;
  std::vector<int64_t> before_;
};

/// Of such numbers, element l: the most entries of 2^l granules that begin at a multiple of 2^l; of the last
/// one, all granules. Rounded up by at most a 32nd, so that values that differ little have the same plan.
std::vector<int64_t> MostEntries(std::span<const int64_t> before);

/// The same of CSR cells on a device, of which the host knows only how many entries all rows have.
std::vector<int64_t> MostEntries(const DeviceCells& cells);

/// Bytes of all rows of a value in memory; kUnknown where only the rows tell.
int64_t BytesOfRows(const RowPanels& panels, const ValueInfo& info);

}  // namespace heddle::ops
