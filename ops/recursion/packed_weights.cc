// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/packed_weights.h"

#include <algorithm>
#include <utility>

#include "ops/parallel.h"
#include "ops/product/matmul_gemm.h"

namespace heddle::ops {
namespace {

constexpr int64_t kNarrow = 8;          // Columns up to which products have eight lanes a cell.
constexpr int64_t kChainTerms = 65536;  // Terms from which chains may be cut.
constexpr size_t kMostKept = 16;
constexpr int64_t kTaskOperations = 1 << 17;  // Multiply-adds that are worth a second thread.

template <typename Cell>
GemmOf<Cell> ProductOf(const Matrix& a, Shape b, const PackedRightOf<Cell>& packed,
                       const std::atomic<bool>* cancelled) {
  GemmOf<Cell> gemm;
  gemm.m = a.rows();
  gemm.n = b.columns;
  gemm.k = b.rows;
  gemm.a = a.data<Cell>();
  gemm.a_row = gemm.k;
  gemm.packed = &packed;
  gemm.b_row = gemm.n;
  gemm.c_row = gemm.n;
  gemm.canonical = true;
  gemm.parallel = gemm.m * gemm.n * gemm.k >= kTaskOperations;
  gemm.cancelled = cancelled;
  return gemm;
}

}  // namespace

PackedWeights::PackedWeights(Matrix b) : given_(std::move(b)) {
  if (given_.element_type() == ElementType::kFloat32)
    singles_ = std::make_unique<SinglePackedRight>(given_.data<float>(), given_.rows(), given_.columns());
  else
    packed_ = std::make_unique<PackedRight>(given_.data(), given_.rows(), given_.columns());
}

PackedWeights::~PackedWeights() = default;

bool PackedWeights::Takes(const Matrix& b) {
  return !b.IsSparse() && b.columns() > kNarrow && b.rows() >= 1 && b.rows() < kChainTerms;
}

bool PackedWeights::IsOf(const Matrix& b) const {
  return b.data<char>() == given_.data<char>() && b.shape() == given_.shape() &&
         b.element_type() == given_.element_type();
}

Result<Matrix> PackedWeights::Multiply(const Matrix& a, const std::atomic<bool>* cancelled) const {
  HEDDLE_ASSIGN_OR_RETURN(Matrix c, Matrix::Dense(a.rows(), given_.columns(), a.element_type()));
  if (singles_ != nullptr) {
    SingleGemm gemm = ProductOf(a, given_.shape(), *singles_, cancelled);
    gemm.singles = c.mutable_data<float>();
    Run(gemm);
  } else {
    Gemm gemm = ProductOf(a, given_.shape(), *packed_, cancelled);
    gemm.c = c.mutable_data();
    Run(gemm);
  }
  return c;
}

std::shared_ptr<const PackedWeights> WeightCache::Of(const Matrix& b) {
  std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) { return kept->IsOf(b); });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
  } else {
    kept_.push_front(std::make_shared<const PackedWeights>(b));
    if (kept_.size() > kMostKept) kept_.pop_back();
  }
  return kept_.front();
}

}  // namespace heddle::ops
