// SPDX-License-Identifier: Apache-2.0
// A %*% B with at most 8 columns of B: eight lanes over the inner dimension (docs/numerics.md, section 3).
#include <algorithm>
#include <cmath>

#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/single_precision.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/matmul.h"
#include "ops/product/narrow_parts.h"
#include "ops/simd/aggregate.h"
#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/product/matmul.h"
#include "ops/simd/product/sparse_rows.h"
#include "ops/sparse/sparse_vectors.h"

namespace heddle::ops {
namespace {

constexpr int64_t kTaskCells = 1 << 17;
// With fewer rows than this, chunks of long rows are the tasks, not rows.
constexpr int64_t kFewLongRows = 16;

// Doubles of the lanes of a chunk.
int64_t ChunkWidth(Format left, int64_t k) {
  return left == Format::kSparse && k > 1 ? 8 * simd::LaneStride(k) : 8 * k;
}
int64_t ChunkWidth(const Matrix& a, int64_t k) { return ChunkWidth(FormatOf(a.storage()), k); }

// Lanes of one chunk of one row for every column of B: place c * 8 + lane, or as of simd::MultiplyByLanes for
// several columns times CSR, whose entries in that chunk are given.
void MultiplyChunk(const Matrix& a, const NarrowRight& b, int64_t row, int64_t chunk, int64_t first,
                   int64_t last, double* payload) {
  const int64_t begin = chunk * kColumnChunk, end = std::min(a.columns(), begin + kColumnChunk);
  if (!a.IsSparse()) {
    std::fill_n(payload, 8 * b.count, 0.0);
    for (int64_t c = 0; c < b.count; ++c)
      simd::MultiplyFlat(a.data() + row * a.columns() + begin, b.Column(c) + begin, end - begin,
                         payload + 8 * c);
    return;
  }
  const int32_t* columns = a.column_indexes();
  if (b.count > 1)
    return simd::MultiplyByLanes(a.values() + first, columns + first, last - first, b.dense.data(), b.count,
                                 payload);
  std::fill_n(payload, 8, 0.0);
  for (int64_t e = first; e < last; ++e) {
    double& lane = payload[columns[e] & 7];
    lane = std::fma(a.values()[e], b.dense.data()[columns[e]], lane);
  }
}

// Of the entries [first, last) of a CSR row, where those before a column end.
int64_t EndBefore(const Matrix& a, int64_t first, int64_t last, int64_t column) {
  const int32_t* columns = a.column_indexes();
  return std::lower_bound(columns + first, columns + last, column) - columns;
}

// A row of the result, from its lanes.
void CloseRow(Format left, const double* lanes, int64_t k, double* out) {
  if (left == Format::kSparse && k > 1) return simd::CloseLanes(lanes, k, out);
  for (int64_t c = 0; c < k; ++c) out[c] = simd::FoldLanes(simd::Fold::kAdd, lanes + 8 * c) + 0.0;
}

void MultiplyLongRows(const Matrix& a, const NarrowRight& b, int64_t begin, int64_t end, double* out) {
  const int64_t chunks = CeilDivide(a.columns(), kColumnChunk);
  PayloadStack stack(Join::kSum, ChunkWidth(a, b.count), 48);
  for (int64_t i = begin; i < end; ++i) {
    const auto add = [&](int64_t chunk, int64_t first, int64_t last) {
      MultiplyChunk(a, b, i, chunk, first, last, stack.Next(chunk));
      stack.Push();
    };
    if (!a.IsSparse()) {
      for (int64_t chunk = 0; chunk < chunks; ++chunk) add(chunk, 0, 0);
    } else {
      for (int64_t first = a.row_offsets()[i], end = a.row_offsets()[i + 1], last; first < end;
           first = last) {
        const int64_t chunk = a.column_indexes()[first] / kColumnChunk;
        last = EndBefore(a, first, end, (chunk + 1) * kColumnChunk);
        add(chunk, first, last);
      }
    }
    if (const double* root = stack.Finish())
      CloseRow(FormatOf(a.storage()), root, b.count, out + i * b.count);
    else
      std::fill_n(out + i * b.count, b.count, 0.0);
  }
}

}  // namespace

NarrowRight::NarrowRight(Matrix right, bool by_entries)
    : dense(std::move(right)), count(dense.columns()), stride((dense.rows() + 7) / 8 * 8) {
  if (by_entries) return;
  cells = AlignedArray(count * stride);
  for (int64_t c = 0; c < count; ++c) {
    double* column = cells.data() + c * stride;
    for (int64_t i = 0; i < dense.rows(); ++i) column[i] = dense.data()[i * count + c];
    std::fill(column + dense.rows(), column + stride, 0.0);
  }
}

void MultiplyNarrowRows(const Matrix& a, const NarrowRight& b, int64_t begin, int64_t end, double* out) {
  const int64_t n = a.columns(), k = b.count;
  if (a.IsSparse() && k == 1)
    simd::MultiplySparseRows({a.row_offsets() + begin, a.column_indexes(), a.values(), end - begin},
                             b.dense.data(), n, out + begin);
  else if (n > kColumnChunk)
    MultiplyLongRows(a, b, begin, end, out);
  else if (a.IsSparse())
    simd::MultiplyRowsByLanes(a.values(), a.column_indexes(), a.row_offsets() + begin, end - begin,
                              b.dense.data(), k, out + begin * k);
  else
    WithCells(a, [&](const auto* cells) {
      simd::MultiplyRows(cells + begin * n, end - begin, n, n, b.cells.data(), b.stride, k, out + begin * k,
                         k, simd::Prefetch::OfProduct(k));
    });
}

// The same, rounded, a few rows at a time: their sums stay in the first-level cache.
void MultiplyNarrowRows(const Matrix& a, const NarrowRight& b, int64_t begin, int64_t end, float* out) {
  constexpr int64_t kSums = 1024;
  alignas(64) double sums[kSums];
  const int64_t k = b.count, together = kSums / k;
  for (int64_t i = begin; i < end; i += together) {
    const int64_t rows = std::min(together, end - i);
    MultiplyNarrowRows(a, b, i, i + rows, sums - i * k);
    SelectedElementwiseKernels().narrow(sums, out + i * k, rows * k);
  }
}

Result<Matrix> NarrowNodes(const Matrix& a, const Matrix& b, int64_t first, const KernelContext& context) {
  HEDDLE_CHECK(a.columns() == 0 || first % kColumnChunk == 0, "leaves are chunks of columns");
  HEDDLE_ASSIGN_OR_RETURN(Matrix dense, AsDense(b));
  const NarrowRight right(std::move(dense), a.IsSparse());
  const int64_t m = a.rows(), width = ChunkWidth(a, right.count), begin = first / kColumnChunk;
  const Reduction reduction{.width = m * width,
                            .leaf_cells = std::max<int64_t>(m, 1) * kColumnChunk,
                            .cancelled = context.cancelled};
  const int64_t chunks = CeilDivide(a.columns(), kColumnChunk);
  return ReduceLeaves(reduction, begin, begin + chunks, [&](int64_t leaf, double* payload) {
    const int64_t chunk = leaf - begin;
    for (int64_t i = 0; i < m; ++i) {
      int64_t from = 0, to = 0;
      if (a.IsSparse()) {
        from = EndBefore(a, a.row_offsets()[i], a.row_offsets()[i + 1], chunk * kColumnChunk);
        to = EndBefore(a, from, a.row_offsets()[i + 1], (chunk + 1) * kColumnChunk);
      }
      MultiplyChunk(a, right, i, chunk, from, to, payload + i * width);
    }
    return true;
  });
}

Status ContinueLanes(const Matrix& a, const Matrix& b, int64_t first, int64_t begin, int64_t end,
                     const KernelContext& context, double* lanes) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix dense, AsDense(b));
  const NarrowRight right(std::move(dense), a.IsSparse());
  const int64_t n = a.columns(), k = right.count, width = 8 * k;
  const auto add_entries = [&](int64_t i, double* of_row) {
    for (int64_t e = a.row_offsets()[i]; e < a.row_offsets()[i + 1]; ++e) {
      const int64_t j = a.column_indexes()[e];
      for (int64_t c = 0; c < k; ++c) {
        double& lane = of_row[8 * c + ((first + j) & 7)];
        lane = std::fma(a.values()[e], right.dense.data()[j * k + c], lane);
      }
    }
  };
  // The first of these columns is in lane 0 of its own.
  const auto add_cells = [&](int64_t i, double* of_row) {
    for (int64_t c = 0; c < k; ++c) {
      double turned[8];
      for (int64_t lane = 0; lane < 8; ++lane) turned[lane] = of_row[8 * c + ((first + lane) & 7)];
      simd::MultiplyFlat(a.data() + i * n, right.Column(c), n, turned);
      for (int64_t lane = 0; lane < 8; ++lane) of_row[8 * c + ((first + lane) & 7)] = turned[lane];
    }
  };
  ParallelFor(end - begin, std::max<int64_t>(1, kTaskCells / std::max<int64_t>(n * k, 8)),
              [&](int64_t from, int64_t to) {
                for (int64_t i = from; i < to && !IsCancelled(context.cancelled); ++i)
                  a.IsSparse() ? add_entries(begin + i, lanes + i * width)
                               : add_cells(begin + i, lanes + i * width);
              });
  return IsCancelled(context.cancelled) ? Cancelled("cancelled") : OkStatus();
}

Result<Matrix> CloseLanesOfCells(const Matrix& lanes, int64_t columns) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(lanes.rows(), columns));
  for (int64_t i = 0; i < lanes.rows(); ++i)
    CloseRow(Format::kDense, lanes.data() + i * lanes.columns(), columns,
             result.mutable_data() + i * columns);
  return result;
}

Result<Matrix> JoinNarrowNodes(const Matrix& nodes, Format left, int64_t rows, int64_t columns,
                               const KernelContext& context) {
  const Reduction reduction{.width = nodes.columns() - 2, .cancelled = context.cancelled};
  HEDDLE_ASSIGN_OR_RETURN(const RootPayload root, JoinNodes(reduction, nodes));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(rows, columns));
  const int64_t width = ChunkWidth(left, columns);
  for (int64_t i = 0; i < rows; ++i)
    CloseRow(left, root.data() + i * width, columns, result.mutable_data() + i * columns);
  return result;
}

Result<Matrix> MultiplyNarrow(const Matrix& a, const Matrix& b, const KernelContext& context) {
  const int64_t m = a.rows(), n = a.columns(), k = b.columns();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(m, k, a.element_type()));
  HEDDLE_ASSIGN_OR_RETURN(Matrix dense, AsDense(b));
  HEDDLE_ASSIGN_OR_RETURN(dense, Widen(dense));
  const NarrowRight right(std::move(dense), a.IsSparse());
  if (m == 0 || k == 0) return result;
  if (n > kColumnChunk && m < kFewLongRows) {
    const Reduction reduction{.join = Join::kSum,
                              .width = ChunkWidth(a, k),
                              .leaf_cells = kColumnChunk,
                              .cancelled = context.cancelled};
    for (int64_t i = 0; i < m; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(
          const Matrix nodes,
          ReduceLeaves(reduction, 0, CeilDivide(n, kColumnChunk), [&](int64_t chunk, double* payload) {
            int64_t first = 0, last = 0;
            if (a.IsSparse()) {
              first = EndBefore(a, a.row_offsets()[i], a.row_offsets()[i + 1], chunk * kColumnChunk);
              last = EndBefore(a, first, a.row_offsets()[i + 1], (chunk + 1) * kColumnChunk);
              if (first == last) return false;
            }
            MultiplyChunk(a, right, i, chunk, first, last, payload);
            return true;
          }));
      HEDDLE_ASSIGN_OR_RETURN(const RootPayload root, JoinNodes(reduction, nodes));
      CloseRow(FormatOf(a.storage()), root.data(), k, result.mutable_data() + i * k);
    }
    return result;
  }
  const int64_t row_cells = a.IsSparse() ? a.stored() / m + 1 : n;
  ParallelFor(m, std::max<int64_t>(4, kTaskCells / std::max<int64_t>(row_cells, 8)),
              [&](int64_t begin, int64_t end) {
                if (IsCancelled(context.cancelled)) return;
                if (HoldsSingles(a))
                  MultiplyNarrowRows(a, right, begin, end, result.mutable_data<float>());
                else
                  MultiplyNarrowRows(a, right, begin, end, result.mutable_data());
              });
  return result;
}

}  // namespace heddle::ops
