// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/narrow_column.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/cells/sort_keys.h"

namespace heddle::ops {
namespace {

// As many cells are drawn as are sorted in a millisecond or two.
constexpr int64_t kMostDrawn = 1 << 15, kRowsOfDrawn = 64, kLeastDrawn = 1 << 10;
// The standard deviation of the number of drawn cells below a value is at most half the root of their number.
// So many of them on both sides are exceeded once in 10^14 columns.
constexpr double kDeviations = 8;
// Ranges with more than this part of the column save little.
constexpr double kMostOfColumn = 0.4;
constexpr int64_t kCellsBetweenPolls = 1 << 16;

int64_t DrawnOf(int64_t total) {
  const int64_t count = std::min(kMostDrawn, total / kRowsOfDrawn);
  return count < kLeastDrawn ? 0 : count;
}

// A number from 0 to 1 for each i (Steele, Lea, Flood, Fast splittable pseudorandom number generators, 2014).
double Scattered(int64_t i) {
  uint64_t z = (static_cast<uint64_t>(i) + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

int64_t DrawnRow(int64_t i, int64_t count, int64_t total) {
  const double width = static_cast<double>(total) / static_cast<double>(count);
  return std::min(total - 1, static_cast<int64_t>((static_cast<double>(i) + Scattered(i)) * width));
}

}  // namespace

Result<Matrix> DrawCells(std::span<const double> cells, int64_t begin, int64_t total) {
  const int64_t count = DrawnOf(total);
  std::vector<double> drawn;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = DrawnRow(i, count, total) - begin;
    if (row >= 0 && row < std::ssize(cells)) drawn.push_back(cells[static_cast<size_t>(row)]);
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix column, Matrix::Dense(std::ssize(drawn), 1));
  std::copy(drawn.begin(), drawn.end(), column.mutable_data());
  return column;
}

std::vector<ValueRange> GuessRanges(const Matrix& drawn, int64_t total,
                                    std::span<const std::pair<double, double>> ranks) {
  std::vector<double> sorted(drawn.data(), drawn.data() + drawn.rows());
  const auto is_nan = [](double cell) { return std::isnan(cell); };
  if (sorted.empty() || std::any_of(sorted.begin(), sorted.end(), is_nan)) return {};
  std::sort(sorted.begin(), sorted.end(),
            [](double a, double b) { return ExactSortKey(a) < ExactSortKey(b); });
  const auto count = static_cast<double>(sorted.size()), infinity = std::numeric_limits<double>::infinity();
  const double room = kDeviations * 0.5 * std::sqrt(count) + 2;
  std::vector<std::pair<double, double>> places;  // Among the drawn cells.
  for (const auto& [low, high] : ranks)
    places.emplace_back(std::floor((low - 1) / static_cast<double>(total) * count - room),
                        std::ceil(high / static_cast<double>(total) * count + room));
  std::sort(places.begin(), places.end());
  std::vector<ValueRange> ranges;
  double held = 0, last = -infinity;
  for (const auto& [low, high] : places) {
    const double from = std::max(low, last);
    held += std::max(0.0, std::min(high, count) - std::max(from, 0.0));
    const ValueRange range{low < 0 ? -infinity : sorted[static_cast<size_t>(low)],
                           high >= count ? infinity : sorted[static_cast<size_t>(high)]};
    last = std::max(last, high);
    if (!ranges.empty() && ExactSortKey(range.low) <= ExactSortKey(ranges.back().high))
      ranges.back().high = std::max(ranges.back().high, range.high,
                                    [](double a, double b) { return ExactSortKey(a) < ExactSortKey(b); });
    else
      ranges.push_back(range);
  }
  return held > kMostOfColumn * count ? std::vector<ValueRange>() : ranges;
}

Result<NarrowColumn> NarrowColumn::Of(std::span<const double> cells, std::span<const ValueRange> ranges,
                                      const std::atomic<bool>* cancelled) {
  std::vector<uint64_t> ends;  // Of the ranges: an even number of them is at most a key in front of a range.
  for (const ValueRange& range : ranges) {
    ends.push_back(ExactSortKey(range.low));
    ends.push_back(ExactSortKey(range.high) + 1);
  }
  struct Piece {
    std::vector<int64_t> counts;             // By the number of ends at most the key.
    std::vector<std::vector<double>> cells;  // By range.
    bool has_nan = false;
  };
  const auto count = std::ssize(cells), pieces = std::ptrdiff_t{ParallelThreads()};
  std::vector<Piece> made(static_cast<size_t>(pieces));
  ParallelFor(pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      Piece& piece = made[static_cast<size_t>(p)];
      piece.counts.assign(ends.size() + 1, 0);
      piece.cells.resize(ranges.size());
      const int64_t begin = count * p / pieces;
      for (int64_t i = begin; i < count * (p + 1) / pieces; ++i) {
        if ((i - begin) % kCellsBetweenPolls == 0 && IsCancelled(cancelled)) return;
        const double cell = cells[static_cast<size_t>(i)];
        const uint64_t key = ExactSortKey(cell);
        size_t passed = 0;
        for (const uint64_t end : ends) passed += static_cast<size_t>(key >= end);
        ++piece.counts[passed];
        piece.has_nan |= std::isnan(cell);
        if (passed % 2 == 1) piece.cells[passed / 2].push_back(cell);
      }
    }
  });
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
  NarrowColumn column;
  int64_t skipped = 0;
  for (size_t range = 0; range < ranges.size(); ++range) {
    Part part{.range = ranges[range]};
    for (const Piece& piece : made) {
      skipped += piece.counts[2 * range];
      part.count += piece.counts[2 * range + 1];
      column.cells.insert(column.cells.end(), piece.cells[range].begin(), piece.cells[range].end());
    }
    part.skipped = skipped;
    column.parts.push_back(part);
  }
  for (const Piece& piece : made) column.has_nan |= piece.has_nan;
  return column;
}

Result<Matrix> NarrowColumn::ToRow() const {
  HEDDLE_ASSIGN_OR_RETURN(Matrix row, Matrix::Dense(1, 1 + 4 * std::ssize(parts)));
  double* out = row.mutable_data();
  *out++ = has_nan ? 1 : 0;
  for (const Part& part : parts)
    for (const double cell : {part.range.low, part.range.high, static_cast<double>(part.skipped),
                              static_cast<double>(part.count)})
      *out++ = cell;
  return row;
}

NarrowColumn NarrowColumn::OfRow(const double* row, int64_t columns) {
  NarrowColumn column;
  column.has_nan = row[0] != 0;
  for (int64_t at = 1; at < columns; at += 4)
    column.parts.push_back({.range = {row[at], row[at + 1]},
                            .skipped = static_cast<int64_t>(row[at + 2]),
                            .count = static_cast<int64_t>(row[at + 3])});
  return column;
}

}  // namespace heddle::ops
