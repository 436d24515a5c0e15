// SPDX-License-Identifier: Apache-2.0
// X %*% M with a compressed X and one or two columns of M, column by column of X: the eight lanes of some
// rows stay in the first-level cache, and no cell of X is written anywhere.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ops/base/cpu.h"
#include "ops/base/parallel.h"
#include "ops/cells/code_units.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/compressed_products.h"
#include "ops/simd/codes/column_products.h"

namespace heddle::ops {
namespace {

constexpr int64_t kTaskCells = 1 << 18;
// Copies of the columns of wider dictionaries take longer than a look-up saves.
constexpr int64_t kRowsOfTuple = 8;
// To visit an exception takes as long as so many cells of a column that has been filled with its default.
constexpr int64_t kCellsOfException = 10;

// Rows whose lanes, of k columns of M, stay in the first-level cache.
constexpr int64_t RowsTogether(int64_t k) { return k == 1 ? 512 : 256; }
constexpr int64_t kMostLanes = 8 * RowsTogether(1);

class LanesOfColumns {
 public:
  // Where one thread reads on.
  struct Cursor {
    int64_t row = -1;  // Of the groups.
    std::vector<GroupPlace> places, next;
  };

  LanesOfColumns(const Matrix& x, const Matrix& m)
      : x_(x), m_(m), columns_(static_cast<size_t>(x.columns())) {
    for (const ColumnGroup& group : x_.groups().groups) {
      const size_t moving = moving_.size();
      if (group.encoding == Encoding::kDefault || group.encoding == Encoding::kRuns)
        moving_.push_back(&group);
      for (int64_t k = 0; k < group.width(); ++k) {
        Column& column = columns_[static_cast<size_t>(group.columns[static_cast<size_t>(k)])];
        column = {&group, k, moving, nullptr, {}};
        if (group.encoding == Encoding::kEmpty || group.encoding == Encoding::kUncompressed) continue;
        const double* const tuples = group.dictionary.data();
        if (group.width() == 1 && group.tuples() > simd::kRegisterCells) {
          column.cells = tuples;
          continue;
        }
        column.own.assign(static_cast<size_t>(std::max(group.tuples(), simd::kRegisterCells)), 0.0);
        for (int64_t t = 0; t < group.tuples(); ++t)
          column.own[static_cast<size_t>(t)] = tuples[t * group.width() + k];
        column.cells = column.own.data();
      }
    }
  }

  // Rows [begin, end), at most RowsTogether(k), to out, row-major.
  void Multiply(int64_t begin, int64_t end, Cursor* cursor, double* out) const {
    alignas(64) double lanes[kMostLanes];
    const int64_t k = m_.columns(), height = RowsTogether(k);
    const int64_t first = x_.first_row() + begin, last = x_.first_row() + end;
    Move(first, last, cursor);
    std::fill_n(lanes, 8 * k * height, 0.0);
    for (size_t j = 0; j < columns_.size(); ++j)
      AddColumn(columns_[j], first, last, cursor,
                {.factors = m_.data() + static_cast<int64_t>(j) * k,
                 .k = k,
                 .sums = lanes + static_cast<int64_t>(j & 7) * height,
                 .stride = 8 * height});
    for (int64_t c = 0; c < k; ++c)
      simd::CloseLanesAvx512(lanes + c * 8 * height, height, end - begin, out + c, k);
    cursor->places.swap(cursor->next);
  }

 private:
  struct Column {
    const ColumnGroup* group;
    int64_t place;        // In its tuples.
    size_t moving;        // SDC and RLE: its place in a cursor.
    const double* cells;  // By code.
    std::vector<double> own;
  };

  void Move(int64_t first, int64_t last, Cursor* cursor) const {
    if (cursor->row != first) {
      cursor->places.clear();
      for (const ColumnGroup* group : moving_) cursor->places.push_back(PlaceOfRow(*group, first));
      cursor->next = cursor->places;
    }
    cursor->row = last;
  }

  // Rows of the groups.
  void AddColumn(const Column& column, int64_t begin, int64_t end, Cursor* cursor,
                 const simd::ColumnChains& chains) const {
    const ColumnGroup& group = *column.group;
    const int64_t count = end - begin;
    const auto is_finite = [&] {
      return std::all_of(chains.factors, chains.factors + chains.k,
                         [](double x) { return std::isfinite(x); });
    };
    switch (group.encoding) {
      case Encoding::kEmpty: {
        const double zero = 0;
        if (!is_finite()) simd::MultiplyCellsAvx512(&zero, 0, count, chains);
        return;
      }
      case Encoding::kConstant: return simd::MultiplyCellsAvx512(column.cells, 0, count, chains);
      case Encoding::kDenseCodes: return AddCodes(group, column.cells, begin, end, chains);
      case Encoding::kUncompressed: {
        double cells[RowsTogether(1)];
        CopyCells(column, begin, end, cells);
        return simd::MultiplyCellsAvx512(cells, 1, count, chains);
      }
      case Encoding::kRuns: {
        GroupPlace& place = cursor->next[column.moving] = cursor->places[column.moving];
        return VisitRuns(group, begin, end, &place, [&](int64_t first, int64_t last, uint32_t code) {
          simd::ColumnChains part = chains;
          part.sums += first - begin;
          simd::MultiplyCellsAvx512(column.cells + code, 0, last - first, part);
        });
      }
      case Encoding::kDefault: {
        // Each row has one cell: that of an exception does not come on top of the default's.
        double cells[RowsTogether(1)];
        GroupPlace& place = cursor->next[column.moving] = cursor->places[column.moving];
        if (column.cells[0] == 0 && kCellsOfException * group.codes.count() < x_.groups().rows && is_finite())
          return VisitExceptions(group, begin, end, &place, [&](int64_t row, uint32_t code) {
            for (int64_t c = 0; c < chains.k; ++c) {
              double& sum = chains.sums[c * chains.stride + row - begin];
              sum = __builtin_fma(column.cells[code], chains.factors[c], sum);
            }
          });
        std::fill_n(cells, count, column.cells[0]);
        VisitExceptions(group, begin, end, &place,
                        [&](int64_t row, uint32_t code) { cells[row - begin] = column.cells[code]; });
        return simd::MultiplyCellsAvx512(cells, 1, count, chains);
      }
    }
  }

  static void AddCodes(const ColumnGroup& group, const double* cells, int64_t begin, int64_t end,
                       const simd::ColumnChains& chains) {
    const Codes& codes = group.codes;
    const int64_t count = end - begin;
    FetchCodes(codes.data() + CodeBytes(end, codes.bits()), CodeBytes(count, codes.bits()));
    switch (codes.bits()) {
      case 4: return simd::MultiplyFourBitsAvx512(codes.data(), begin, count, cells, chains);
      case 8: return simd::MultiplyCodesAvx512(codes.data() + begin, count, cells, group.tuples(), chains);
      default:
        return simd::MultiplyCodesAvx512(reinterpret_cast<const uint16_t*>(codes.data()) + begin, count,
                                         cells, chains);
    }
  }

  static void CopyCells(const Column& column, int64_t begin, int64_t end, double* cells) {
    const Matrix& matrix = column.group->dictionary;
    const int64_t width = matrix.columns();
    for (int64_t i = begin; i < end; ++i) cells[i - begin] = matrix.data()[i * width + column.place];
  }

  const Matrix& x_;
  const Matrix& m_;
  std::vector<Column> columns_;
  std::vector<const ColumnGroup*> moving_;
};

}  // namespace

bool MultipliesByColumns(const Matrix& x, int64_t k) {
  if (k > kFewColumns || HoldsSingles(x) || SelectedCpu() != Cpu::kAvx512 || x.first_row() % 2 != 0)
    return false;
  for (const ColumnGroup& group : x.groups().groups) {
    // A column of cells that lie row by row is read with all others beside it.
    if (group.encoding == Encoding::kUncompressed && group.width() > 1) return false;
    if (group.encoding == Encoding::kUncompressed && group.dictionary.IsSparse()) return false;
    if (group.width() > 1 && kRowsOfTuple * group.tuples() > x.rows()) return false;
  }
  return true;
}

void MultiplyByColumns(const Matrix& x, const Matrix& m, const KernelContext& context, double* out) {
  if (m.columns() > 2) return MultiplyByBuffers(x, m, context, out);
  const LanesOfColumns lanes(x, m);
  const int64_t k = m.columns(), height = RowsTogether(k);
  const int64_t grain = std::max<int64_t>(1, kTaskCells / x.columns() / RowsTogether(1)) * RowsTogether(1);
  ParallelFor(x.rows(), grain, [&](int64_t begin, int64_t end) {
    LanesOfColumns::Cursor cursor;
    for (int64_t row = begin; row < end && !IsCancelled(context.cancelled); row += height)
      lanes.Multiply(row, std::min(end, row + height), &cursor, out + row * k);
  });
}

}  // namespace heddle::ops
