// SPDX-License-Identifier: Apache-2.0
// A %*% B with more than 8 columns of B: one chain a cell, or, for a small result of a long inner dimension,
// panels of the inner dimension that the tree joins (docs/numerics.md, sections 3 and 9).
#include <algorithm>
#include <cmath>

#include "ops/base/parallel.h"
#include "ops/elementwise/single_precision.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/matmul.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/product/matmul.h"
#include "ops/simd/product/single_rows.h"

namespace heddle::ops {
namespace {

// Multiply-adds of a task.
constexpr int64_t kTaskTerms = 1 << 17;
// With fewer rows than this a product streams B row by row instead of packing it.
constexpr int64_t kFewRows = 4;

// Columns of one row of A %*% B. `sums` has room for them, 64-byte aligned, in whole lines.
void MultiplyRow(const double* row, int64_t inner, const double* b, int64_t b_stride, int64_t columns,
                 double* sums, double* out) {
  simd::MultiplyColumns(b, inner, b_stride, columns, row, 1, 1, sums, 0);
  for (int64_t j = 0; j < columns; ++j) out[j] = sums[j] + 0.0;
}
void MultiplyRow(const float* row, int64_t inner, const float* b, int64_t b_stride, int64_t columns,
                 double* sums, float* out) {
  simd::AddRowOfSingles(row, inner, b, b_stride, columns, sums);
  SelectedElementwiseKernels().narrow(sums, out, columns);
}

// Tasks are runs of columns; B is read once for each row of A.
template <typename Cell>
void MultiplyFewRows(const Matrix& a, const Matrix& b, const KernelContext& context, Cell* out) {
  constexpr int64_t kLine = 64 / sizeof(Cell), kLeast = sizeof(Cell) == 8 ? 64 : 96;
  const int64_t n = b.columns(), inner = a.columns();
  const int64_t together =
      std::clamp<int64_t>(kTaskTerms / std::max<int64_t>(inner, 1) / kLine * kLine, kLeast, 4096);
  ParallelFor(n, together, [&](int64_t begin, int64_t end) {
    if (IsCancelled(context.cancelled)) return;
    AlignedArray sums(end - begin);
    for (int64_t i = 0; i < a.rows(); ++i) {
      std::fill_n(sums.data(), (end - begin + 7) / 8 * 8, 0.0);
      MultiplyRow(a.data<Cell>() + i * inner, inner, b.data<Cell>() + begin, n, end - begin, sums.data(),
                  out + i * n + begin);
    }
  });
}

template <typename Cell>
GemmOf<Cell> WholeProduct(const Matrix& a, const Matrix& b) {
  return {.m = a.rows(),
          .n = b.columns(),
          .k = a.columns(),
          .a = a.data<Cell>(),
          .a_row = a.columns(),
          .b = b.data<Cell>(),
          .b_row = b.columns(),
          .c_row = b.columns()};
}

template <typename Cell>
Result<Matrix> MultiplyDense(const Matrix& a, const Matrix& b, const KernelContext& context) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(a.rows(), b.columns(), a.element_type()));
  Cell* const out = result.mutable_data<Cell>();
  if (a.rows() < kFewRows) {
    MultiplyFewRows(a, b, context, out);
    return result;
  }
  GemmOf<Cell> product = WholeProduct<Cell>(a, b);
  product.parallel = true;
  product.cancelled = context.cancelled;
  WriteCells(out, &product);
  Run(product);
  return result;
}

// The sums over inner indexes [begin, end). Granules of so long an inner dimension are whole blocks of the
// chains of floats.
template <typename Cell>
void MultiplyPanel(const Matrix& a, const Matrix& b, int64_t begin, int64_t end, double* sums) {
  if (a.IsSparse() || b.IsSparse()) return MultiplySparseRows(a, b, 0, a.rows(), begin, end, sums);
  GemmOf<Cell> panel = WholeProduct<Cell>(a, b);
  panel.k = end - begin;
  panel.a += begin;
  panel.b += begin * b.columns();
  panel.c = sums;
  Run(panel);
}

}  // namespace

namespace {

Reduction OfPanels(int64_t cells, int64_t leaf_cells, const KernelContext* context) {
  return {.join = Join::kSum,
          .width = cells,
          .leaf_cells = leaf_cells,
          .cancelled = context == nullptr ? nullptr : context->cancelled};
}

}  // namespace

Result<Matrix> PanelNodes(const Matrix& a, const Matrix& b, int64_t first, int64_t inner,
                          const KernelContext& context) {
  const int64_t m = a.rows(), n = b.columns(), here = a.columns(), height = Granule(inner);
  const auto multiply = HoldsSingles(a) ? MultiplyPanel<float> : MultiplyPanel<double>;
  HEDDLE_CHECK(here == 0 || first % height == 0, "the inner dimension is cut at granules");
  const int64_t begin = here == 0 ? 0 : first / height;
  return ReduceLeaves(OfPanels(m * n, height * (m + n), &context), begin, begin + CeilDivide(here, height),
                      [&](int64_t leaf, double* payload) {
                        const int64_t row = leaf * height - first;
                        multiply(a, b, row, std::min(here, row + height), payload);
                        return true;
                      });
}

Result<AlignedArray> JoinPanelNodes(const Matrix& nodes) {
  const int64_t cells = nodes.columns() - 2;
  HEDDLE_ASSIGN_OR_RETURN(const RootPayload root, JoinNodes(OfPanels(cells, 1, nullptr), nodes));
  AlignedArray sums(cells);
  for (int64_t i = 0; i < cells; ++i) sums[i] = root[i] + 0.0;
  return sums;
}

Result<Matrix> MultiplySplit(const Matrix& a, const Matrix& b, const KernelContext& context) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix nodes, PanelNodes(a, b, 0, a.columns(), context));
  HEDDLE_ASSIGN_OR_RETURN(const AlignedArray sums, JoinPanelNodes(nodes));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(a.rows(), b.columns()));
  std::copy_n(sums.data(), result.cells(), result.mutable_data());
  return HoldsSingles(a) ? Narrow(result) : result;
}

Result<Matrix> MultiplyWide(const Matrix& a, const Matrix& b, const KernelContext& context) {
  if (a.IsSparse() || b.IsSparse()) return MultiplyWithSparse(a, b, context);
  return HoldsSingles(a) ? MultiplyDense<float>(a, b, context) : MultiplyDense<double>(a, b, context);
}

}  // namespace heddle::ops
