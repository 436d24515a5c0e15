// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/read_cost.h"

#include <algorithm>

#include "ops/base/cpu.h"

namespace heddle::ops {
namespace {

// Nanoseconds of a cell: the mean of X %*% v and t(X) %*% w, of which bench/compression has the rows.
struct CellTimes {
  double in_registers;                             // Of sixteen tuples,
  double in_two_steps;                             // of 32,
  double in_first_level, in_second_level, beyond;  // of columns of dictionaries in these caches.
  // Of an uncompressed group, which keeps aggregates and products from going by columns.
  double plain;
};
constexpr CellTimes kAvx512 = {0.12, 0.18, 0.32, 0.7, 3.5, 1};
// Cells are decoded in tiles.
constexpr CellTimes kAvx2 = {0.45, 0.5, 0.55, 0.9, 3.5, 1};
// Of dense rows in a cache, and of entries of CSR rows.
constexpr double kDenseCell = 0.12, kSparseEntry = 0.5;
// Of a row of codes that have to be written first, of an exception or a run there, and of an exception that
// is visited alone.
constexpr double kExpandedRow = 0.01, kExpandedException = 1, kVisitedException = 1.5;
// A nanosecond in which one thread reads from memory, the others idle. Where several share the memory
// bandwidth, compressed matrices gain more.
constexpr double kBytesOfNs = 24;

constexpr double kFirstLevelBytes = 32 << 10;

double CellTime(const GroupSize& group) {
  const CellTimes& times = SelectedCpu() == Cpu::kAvx512 ? kAvx512 : kAvx2;
  if (group.tuples <= 16) return times.in_registers;
  if (group.tuples <= 32) return times.in_two_steps;
  const double table = group.tuples * group.columns * sizeof(double);
  if (table <= kFirstLevelBytes) return times.in_first_level;
  return table <= static_cast<double>(SecondLevelCacheBytes()) / 2 ? times.in_second_level : times.beyond;
}

double TimeOf(const GroupSize& group) {
  const CellTimes& times = SelectedCpu() == Cpu::kAvx512 ? kAvx512 : kAvx2;
  const double cells = group.rows * group.columns;
  switch (group.encoding) {
    case Encoding::kEmpty: return 0;
    case Encoding::kConstant: return cells * kDenseCell;
    case Encoding::kUncompressed: return cells * times.plain;
    case Encoding::kDenseCodes: return cells * CellTime(group);
    case Encoding::kRuns: return cells * CellTime(group) + group.rows * kExpandedRow;
    case Encoding::kDefault:
      return std::min(
          group.exceptions * group.columns * kVisitedException,
          cells * CellTime(group) + group.rows * kExpandedRow + group.exceptions * kExpandedException);
  }
  return 0;
}

}  // namespace

double ReadCost(const GroupSize& group) { return group.bytes + kBytesOfNs * TimeOf(group); }

double ReadCost(const ColumnGroups& groups) {
  double cost = 0;
  for (const ColumnGroup& group : groups.groups)
    cost += ReadCost({.encoding = group.encoding,
                      .rows = static_cast<double>(groups.rows),
                      .columns = static_cast<double>(group.width()),
                      .tuples = static_cast<double>(group.tuples()),
                      .exceptions = static_cast<double>(group.codes.count()),
                      .bytes = static_cast<double>(group.bytes())});
  return cost;
}

double PlainReadCost(double bytes, double stored, bool is_sparse) {
  return bytes + kBytesOfNs * stored * (is_sparse ? kSparseEntry : kDenseCell);
}

}  // namespace heddle::ops
