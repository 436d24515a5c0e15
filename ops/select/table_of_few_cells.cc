// SPDX-License-Identifier: Apache-2.0
#include "ops/select/table_of_few_cells.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/base/whole_number.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::ops {
namespace {

constexpr int64_t kChunk = 16384;  // entries that a thread looks for the largest keys in
constexpr double kMostCells = 1 << 20;
constexpr double kLargestKey = 1 << 20;

bool Counts(double a, double b, double weight) {
  return !(std::isnan(a) || std::isnan(b) || std::isnan(weight));
}

// The largest keys of entries that count; unknown where one is too small or large.
Shape LargestKeys(const Matrix& a, const TableOperand& b, const TableOperand& weights) {
  const int64_t count = a.cells();
  std::vector<Shape> largest(static_cast<size_t>(CeilDivide(count, kChunk)), Shape{0, 0});
  ParallelFor(count, kChunk, [&](int64_t first, int64_t last) {
    for (int64_t begin = first; begin < last; begin += kChunk) {
      double row = 0, column = 0;
      bool are_keys = true;
      for (int64_t k = begin; k < std::min(begin + kChunk, last); ++k) {
        const double x = a.data()[k], y = b[k];
        if (!Counts(x, y, weights[k])) continue;
        are_keys &= IsKey(x) && IsKey(y);
        row = std::max(row, x);
        column = std::max(column, y);
      }
      are_keys &= row <= kLargestKey && column <= kLargestKey;
      largest[static_cast<size_t>(begin / kChunk)] =
          are_keys ? Shape{PlaceOfKey(row) + 1, PlaceOfKey(column) + 1} : Shape();
    }
  });
  Shape all{0, 0};
  for (const Shape& one : largest) {
    if (!one.IsKnown()) return Shape();
    all.rows = std::max(all.rows, one.rows);
    all.columns = std::max(all.columns, one.columns);
  }
  return all;
}

}  // namespace

Result<std::optional<Matrix>> TableOfFewCells(const Matrix& a, const TableOperand& b,
                                              const TableOperand& weights, Shape shape, int64_t least_rows,
                                              const std::atomic<bool>* cancelled) {
  const int64_t height = Granule(a.rows()), panels = CeilDivide(a.rows(), height);
  if (least_rows * panels > 4 * a.cells()) return std::optional<Matrix>();
  if (!shape.IsKnown()) {
    shape = LargestKeys(a, b, weights);
    if (!shape.IsKnown()) return std::optional<Matrix>();
    shape.rows = std::max(shape.rows, least_rows);
  }
  const double cells = static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
  // Joining panels costs a step a cell, ordering the entries a few steps an entry.
  if (cells == 0 || cells > kMostCells ||
      static_cast<double>(panels) * cells > 4 * static_cast<double>(a.cells()))
    return std::optional<Matrix>();
  std::atomic<bool> are_keys = true;
  const Reduction reduction = {
      .width = shape.rows * shape.columns, .leaf_cells = height * a.columns(), .cancelled = cancelled};
  HEDDLE_ASSIGN_OR_RETURN(
      const Matrix nodes, ReduceLeaves(reduction, 0, panels, [&](int64_t panel, double* payload) {
        std::fill_n(payload, reduction.width, 0.0);
        const int64_t end = std::min((panel + 1) * height, a.rows()) * a.columns();
        bool fine = true;
        for (int64_t k = panel * height * a.columns(); k < end; ++k) {
          const double x = a.data()[k], y = b[k], weight = weights[k];
          if (!Counts(x, y, weight)) continue;
          fine &= IsKey(x) && IsKey(y);
          if (!(x < static_cast<double>(shape.rows) + 1 && y < static_cast<double>(shape.columns) + 1) ||
              !fine)
            continue;
          const int64_t row = PlaceOfKey(x), column = PlaceOfKey(y);
          if (row < shape.rows && column < shape.columns) payload[row * shape.columns + column] += weight;
        }
        if (!fine) are_keys = false;
        return true;
      }));
  if (!are_keys) return std::optional<Matrix>();
  HEDDLE_ASSIGN_OR_RETURN(const RootPayload root, JoinNodes(reduction, nodes));
  HEDDLE_ASSIGN_OR_RETURN(Matrix table, Matrix::Dense(shape.rows, shape.columns));
  std::copy_n(root.data(), reduction.width, table.mutable_data());
  return std::optional<Matrix>(std::move(table));
}

}  // namespace heddle::ops
