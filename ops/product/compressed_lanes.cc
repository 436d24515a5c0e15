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

constexpr int64_t kRowsTogether = 256;
constexpr int64_t kTaskCells = 1 << 18;
// Copies of the columns of wider dictionaries take longer than a look-up saves.
constexpr int64_t kRowsOfTuple = 8;

class LanesOfColumns {
 public:
  LanesOfColumns(const Matrix& x, const Matrix& m)
      : x_(x), m_(m), columns_(static_cast<size_t>(x.columns())) {
    for (const ColumnGroup& group : x_.groups().groups)
      for (int64_t k = 0; k < group.width(); ++k) {
        Column& column = columns_[static_cast<size_t>(group.columns[static_cast<size_t>(k)])];
        column = {&group, k, nullptr, {}};
        if (group.encoding == Encoding::kEmpty || group.encoding == Encoding::kUncompressed) continue;
        const double* const tuples = group.dictionary.data();
        // Codes of 4 bits are looked up among 16 cells.
        const int64_t places = std::max<int64_t>(group.tuples(), 16);
        if (group.width() == 1 && places == group.tuples()) {
          column.cells = tuples;
          continue;
        }
        column.own.assign(static_cast<size_t>(places), 0.0);
        for (int64_t t = 0; t < group.tuples(); ++t)
          column.own[static_cast<size_t>(t)] = tuples[t * group.width() + k];
        column.cells = column.own.data();
      }
  }

  // Rows [begin, end), at most kRowsTogether, to out, row-major.
  void Multiply(int64_t begin, int64_t end, double* out) const {
    alignas(64) double lanes[8 * kRowsTogether];
    const int64_t k = m_.columns(), first = x_.first_row() + begin, last = x_.first_row() + end;
    for (int64_t c = 0; c < k; ++c) {
      std::fill_n(lanes, 8 * kRowsTogether, 0.0);
      for (size_t j = 0; j < columns_.size(); ++j)
        AddColumn(columns_[j], first, last, m_.data()[static_cast<int64_t>(j) * k + c],
                  lanes + (j & 7) * kRowsTogether);
      simd::CloseLanesAvx512(lanes, kRowsTogether, end - begin, out + c, k);
    }
  }

 private:
  struct Column {
    const ColumnGroup* group;
    int64_t place;        // In its tuples.
    const double* cells;  // By code.
    std::vector<double> own;
  };

  // Rows of the groups.
  static void AddColumn(const Column& column, int64_t begin, int64_t end, double factor, double* sums) {
    const ColumnGroup& group = *column.group;
    const int64_t count = end - begin;
    switch (group.encoding) {
      case Encoding::kEmpty: {
        const double zero = 0;
        return simd::MultiplyCellsAvx512(&zero, 0, count, factor, sums);
      }
      case Encoding::kConstant: return simd::MultiplyCellsAvx512(column.cells, 0, count, factor, sums);
      case Encoding::kDenseCodes: return AddCodes(group.codes, column.cells, begin, end, factor, sums);
      case Encoding::kUncompressed: {
        double cells[kRowsTogether];
        CopyCells(column, begin, end, cells);
        return simd::MultiplyCellsAvx512(cells, 1, count, factor, sums);
      }
      case Encoding::kRuns: {
        GroupPlace place = PlaceOfRow(group, begin);
        return VisitRuns(group, begin, end, &place, [&](int64_t first, int64_t last, uint32_t code) {
          simd::MultiplyCellsAvx512(column.cells + code, 0, last - first, factor, sums + (first - begin));
        });
      }
      case Encoding::kDefault: {
        // Each row has one cell: that of an exception does not come on top of the default's.
        double cells[kRowsTogether];
        GroupPlace place = PlaceOfRow(group, begin);
        if (column.cells[0] == 0 && std::isfinite(factor))
          return VisitExceptions(group, begin, end, &place, [&](int64_t row, uint32_t code) {
            sums[row - begin] = std::fma(column.cells[code], factor, sums[row - begin]);
          });
        std::fill_n(cells, count, column.cells[0]);
        VisitExceptions(group, begin, end, &place,
                        [&](int64_t row, uint32_t code) { cells[row - begin] = column.cells[code]; });
        return simd::MultiplyCellsAvx512(cells, 1, count, factor, sums);
      }
    }
  }

  static void AddCodes(const Codes& codes, const double* cells, int64_t begin, int64_t end, double factor,
                       double* sums) {
    const int64_t count = end - begin;
    FetchCodes(codes.data() + CodeBytes(end, codes.bits()), CodeBytes(count, codes.bits()));
    switch (codes.bits()) {
      case 4: return simd::MultiplyFourBitsAvx512(codes.data(), begin, count, cells, factor, sums);
      case 8: return simd::MultiplyCodesAvx512(codes.data() + begin, count, cells, factor, sums);
      default:
        return simd::MultiplyCodesAvx512(reinterpret_cast<const uint16_t*>(codes.data()) + begin, count,
                                         cells, factor, sums);
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
};

}  // namespace

bool MultipliesByColumns(const Matrix& x, int64_t k) {
  if (k > 2 || HoldsSingles(x) || SelectedCpu() != Cpu::kAvx512 || x.first_row() % 2 != 0) return false;
  for (const ColumnGroup& group : x.groups().groups) {
    // A column of cells that lie row by row is read with all others beside it.
    if (group.encoding == Encoding::kUncompressed && group.width() > 1) return false;
    if (group.encoding == Encoding::kUncompressed && group.dictionary.IsSparse()) return false;
    if (group.width() > 1 && kRowsOfTuple * group.tuples() > x.rows()) return false;
  }
  return true;
}

void MultiplyByColumns(const Matrix& x, const Matrix& m, const KernelContext& context, double* out) {
  const LanesOfColumns lanes(x, m);
  const int64_t k = m.columns();
  const int64_t grain = std::max<int64_t>(1, kTaskCells / x.columns() / kRowsTogether) * kRowsTogether;
  ParallelFor(x.rows(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end && !IsCancelled(context.cancelled); row += kRowsTogether)
      lanes.Multiply(row, std::min(end, row + kRowsTogether), out + row * k);
  });
}

}  // namespace heddle::ops
