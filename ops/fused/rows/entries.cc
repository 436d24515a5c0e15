// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/rows/entries.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/simd/product/sparse_rows.h"
#include "ops/sparse/gather_cells.h"
#include "ops/sparse/sparse_vectors.h"

namespace heddle::ops {
namespace {

// The first entry of [first, last) that is zero, or last.
int64_t FindZero(const double* values, int64_t first, int64_t last) {
  for (; first + 4 <= last; first += 4) {
    const __m256d zeros = _mm256_cmp_pd(_mm256_loadu_pd(values + first), _mm256_setzero_pd(), _CMP_EQ_OQ);
    if (const auto mask = static_cast<unsigned>(_mm256_movemask_pd(zeros)); mask != 0)
      return first + std::countr_zero(mask);
  }
  while (first < last && values[first] != 0.0) ++first;
  return first;
}

// Calls visit(first, last) for the runs of entries of [first, last) that are not zero.
template <typename Visit>
void ForNonzeroRuns(const double* values, int64_t first, int64_t last, Visit visit) {
  while (first < last) {
    const int64_t end = FindZero(values, first, last);
    if (end > first) visit(first, end);
    first = end + 1;
  }
}

// What is computed at the entries of a pattern may be zero.
simd::SparseRows RowsOf(const Entries& x, int64_t rows) {
  return {x.offsets, x.columns, x.values, rows, true};
}

void AddByColumn(const Entries& x, int64_t first, int64_t last, double* lanes) {
  for (int64_t e = first; e < last; ++e) lanes[x.columns[e] & 7] += x.values[e];
}

}  // namespace

bool HoldsSeveralLeaves(const TileProgram& program) {
  if (!program.by_pattern || program.has_background || !program.buffers.empty()) return false;
  for (const Step& step : program.steps) {
    for (int root : step.output_roots)
      if (root >= 0) return false;
    if (step.kind != Step::Kind::kRoot) continue;
    const TileRoot::Kind kind = program.roots[static_cast<size_t>(step.index)].kind;
    if (!IsByEntry(step.from) || (kind != TileRoot::Kind::kFull && kind != TileRoot::Kind::kColumns))
      return false;
  }
  return true;
}

void AddSparseProduct(const TileRoot& root, const Entries& x, int64_t rows, const double* y, int64_t y_stride,
                      int64_t lane, double* payload) {
  if (root.kind == TileRoot::Kind::kVectors && root.k == 1)
    return simd::AddScaledSparseRows(RowsOf(x, rows), y, y_stride, payload);
  const int32_t* columns = x.columns;
  const double* values = x.values;
  for (int64_t i = 0; i < rows; ++i, y += y_stride) {
    ForNonzeroRuns(values, x.offsets[i], x.offsets[i + 1], [&](int64_t first, int64_t last) {
      if (root.kind == TileRoot::Kind::kVectors) {
        simd::AddScaledRow(values + first, columns + first, last - first, y, root.k, payload);
      } else if (root.kind == TileRoot::Kind::kLanes) {
        double* cells = payload + ((lane + i) & 7) * root.n * root.k;
        for (int64_t e = first; e < last; ++e)
          for (int64_t c = 0; c < root.k; ++c) {
            double& cell = cells[columns[e] * root.k + c];
            cell = std::fma(values[e], y[c], cell);
          }
      } else {
        for (int64_t e = first; e < last; ++e)
          simd::AddScaled(values[e], y, root.k, payload + columns[e] * root.k);
      }
    });
  }
}

void MultiplyAndAddRows(const Matrix& x, const double* v, int64_t begin, int64_t end, double* out,
                        double* payload) {
  simd::MultiplyAndAddSparseRows({x.row_offsets() + begin, x.column_indexes(), x.values(), end - begin}, v,
                                 out, payload);
}

void AddTerms(const TileRoot& root, const Entries& x, int64_t rows, const double* y, int64_t y_stride,
              SparseLeaf& terms) {
  if (root.kind == TileRoot::Kind::kColumns) {
    const double one = 1.0;
    terms.Weigh(&one);
    return terms.AddEntries(x.columns, x.values, x.offsets[0], x.offsets[rows]);
  }
  for (int64_t i = 0; i < rows; ++i, y += y_stride) {
    if (x.offsets[i] == x.offsets[i + 1]) continue;
    terms.Weigh(y);
    ForNonzeroRuns(x.values, x.offsets[i], x.offsets[i + 1],
                   [&](int64_t first, int64_t last) { terms.AddEntries(x.columns, x.values, first, last); });
  }
}

void SumRows(const Entries& x, int64_t rows, int64_t n, double* out) {
  simd::SumSparseRows(RowsOf(x, rows), n, out);
}

// Eight lanes for few columns of B, else one chain a cell; + 0.0 at the end.
void MultiplyEntries(const Entries& x, int64_t rows, const Matrix& b, const NarrowRight& narrow, double* out,
                     int64_t prefetch_distance) {
  const int64_t k = b.columns();
  if (k > 1 && k <= kFewColumns)
    return simd::MultiplyRowsByLanes(x.values, x.columns, x.offsets, rows, b.data(), k, out);
  if (k == 1) return simd::MultiplySparseRows(RowsOf(x, rows), narrow.dense.data(), b.rows(), out);
  for (int64_t i = 0; i < rows; ++i, out += k) {
    const int64_t begin = x.offsets[i];
    simd::MultiplySparseRow(x.values + begin, x.columns + begin, x.offsets[i + 1] - begin, b.data(), k, k,
                            out, prefetch_distance);
  }
}

void AddEntries(const TileRoot& root, const Entries& x, int64_t rows, int64_t row_in_panel, double* payload) {
  if (SumsByColumn(root)) return AddByColumn(x, x.offsets[0], x.offsets[rows], payload);
  if (root.kind == TileRoot::Kind::kFull)
    return AddByFlatLanes(x.offsets, x.columns, x.values, rows, root.n, row_in_panel * root.n, payload);
  if (root.n > 8) {
    for (int64_t e = x.offsets[0]; e < x.offsets[rows]; ++e) payload[x.columns[e]] += x.values[e];
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    double* lane = payload + ((row_in_panel + i) & 7) * root.n;
    for (int64_t e = x.offsets[i]; e < x.offsets[i + 1]; ++e) lane[x.columns[e]] += x.values[e];
  }
}

void AddEntriesOfLeaves(const Entries& x, int64_t rows, int64_t height, double* payloads) {
  for (int64_t row = 0; row < rows; row += 2 * height, payloads += 16) {
    const int64_t middle = std::min(rows, row + height), end = std::min(rows, row + 2 * height);
    int64_t e = x.offsets[row], f = x.offsets[middle];
    const int64_t e_end = f, f_end = x.offsets[end];
    for (; e < e_end && f < f_end; ++e, ++f) {
      payloads[x.columns[e] & 7] += x.values[e];
      payloads[8 + (x.columns[f] & 7)] += x.values[f];
    }
    AddByColumn(x, e, e_end, payloads);
    AddByColumn(x, f, f_end, payloads + 8);
  }
}

}  // namespace heddle::ops
