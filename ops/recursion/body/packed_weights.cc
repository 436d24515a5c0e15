// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/body/packed_weights.h"

#include <utility>

#include "ops/base/parallel.h"
#include "ops/product/few_rows.h"
#include "ops/product/matmul.h"
#include "ops/product/matmul_gemm.h"
#include "ops/recursion/body/batch_time.h"

namespace heddle::ops {
namespace {

template <typename Cell>
void MultiplyRows(const PackedRightOf<Cell>& packed, Shape b, const void* a, int64_t a_row, int64_t rows,
                  void* c, int64_t c_row, const std::atomic<bool>* cancelled) {
  const bool parallel =
      ParallelThreads() > 1 && ProductMicroseconds(rows, b, sizeof(Cell)) >= kMicrosecondsWorthThreads;
  if (rows <= kMostFewRows)
    return Run(FewRowsOf<Cell>{.m = rows,
                               .n = b.columns,
                               .k = b.rows,
                               .a = static_cast<const Cell*>(a),
                               .a_row = a_row,
                               .packed = &packed,
                               .c = static_cast<Cell*>(c),
                               .c_row = c_row,
                               .parallel = parallel});
  GemmOf<Cell> gemm;
  gemm.m = rows;
  gemm.n = b.columns;
  gemm.k = b.rows;
  gemm.a = static_cast<const Cell*>(a);
  gemm.a_row = a_row;
  gemm.packed = &packed;
  gemm.b_row = gemm.n;
  gemm.c_row = c_row;
  gemm.parallel = parallel;
  gemm.cancelled = cancelled;
  WriteCells(static_cast<Cell*>(c), &gemm);
  Run(gemm);
}

}  // namespace

PackedWeights::PackedWeights(Matrix b) : given_(std::move(b)) {
  if (given_.element_type() == ElementType::kFloat32)
    singles_ = std::make_unique<SinglePackedRight>(given_.data<float>(), given_.rows(), given_.columns());
  else
    packed_ = std::make_unique<PackedRight>(given_.data(), given_.rows(), given_.columns());
}

PackedWeights::~PackedWeights() = default;

bool PackedWeights::Takes(Shape b) { return !IsNarrow(b.columns) && b.rows >= 1 && b.rows < kPanelTerms; }

bool PackedWeights::IsOf(const Matrix& b) const {
  return b.data<char>() == given_.data<char>() && b.shape() == given_.shape() &&
         b.element_type() == given_.element_type();
}

void PackedWeights::Multiply(const void* a, int64_t a_row, int64_t rows, void* c, int64_t c_row,
                             const std::atomic<bool>* cancelled) const {
  if (singles_ != nullptr)
    MultiplyRows(*singles_, given_.shape(), a, a_row, rows, c, c_row, cancelled);
  else
    MultiplyRows(*packed_, given_.shape(), a, a_row, rows, c, c_row, cancelled);
}

}  // namespace heddle::ops
