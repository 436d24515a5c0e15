// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/packed_weights.h"

#include <algorithm>
#include <utility>

#include "ops/parallel.h"
#include "ops/product/matmul_gemm.h"

namespace heddle::ops {
namespace {

constexpr int64_t kNarrow = 8;           // Columns up to which products have eight lanes a cell.
constexpr int64_t kChainTerms = 65536;   // Terms from which chains may be cut.
constexpr size_t kMostKept = 16;
constexpr int64_t kTaskOperations = 1 << 17;  // Multiply-adds that are worth a second thread.

template <typename To, typename From>
Result<Matrix> Converted(const Matrix& from, ElementType type) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix to, Matrix::Dense(from.rows(), from.columns(), type));
  const From* const in = from.data<From>();
  To* const out = to.mutable_data<To>();
  for (int64_t i = 0; i < from.cells(); ++i) out[i] = static_cast<To>(in[i]);
  return to;
}

}  // namespace

PackedWeights::PackedWeights(Matrix b) : given_(std::move(b)) {
  Matrix wide = given_;
  if (given_.element_type() == ElementType::kFloat32) {
    Result<Matrix> doubles = Converted<double, float>(given_, ElementType::kFloat64);
    if (!doubles.ok()) return;  // Multiply says so.
    wide = *std::move(doubles);
  }
  packed_ = std::make_unique<PackedRight>(wide.data(), wide.rows(), wide.columns());
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
  if (packed_ == nullptr) return ResourceExhausted("out of memory: no room for a matrix in doubles");
  const bool is_single = a.element_type() == ElementType::kFloat32;
  Matrix left = a;
  if (is_single) {
    HEDDLE_ASSIGN_OR_RETURN(left, (Converted<double, float>(a, ElementType::kFloat64)));
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix c, Matrix::Dense(a.rows(), given_.columns()));
  Gemm gemm;
  gemm.m = a.rows();
  gemm.n = given_.columns();
  gemm.k = given_.rows();
  gemm.a = left.data();
  gemm.a_row = gemm.k;
  gemm.packed = packed_.get();
  gemm.b_row = gemm.n;
  gemm.c = c.mutable_data();
  gemm.c_row = gemm.n;
  gemm.canonical = true;
  gemm.parallel = gemm.m * gemm.n * gemm.k >= kTaskOperations;
  gemm.cancelled = cancelled;
  Run(gemm);
  return is_single ? Converted<float, double>(c, ElementType::kFloat32) : Result<Matrix>(std::move(c));
}

std::shared_ptr<const PackedWeights> WeightCache::Of(const Matrix& b) {
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) { return kept->IsOf(b); });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
  } else {
    kept_.push_front(std::make_shared<const PackedWeights>(b));
    if (kept_.size() > kMostKept) kept_.pop_back();
  }
  return kept_.front();
}

}  // namespace heddle::ops
