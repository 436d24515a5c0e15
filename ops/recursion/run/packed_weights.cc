// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/run/packed_weights.h"

#include <algorithm>
#include <utility>

#include "ops/base/parallel.h"
#include "ops/product/few_rows.h"
#include "ops/product/matmul_gemm.h"
#include "ops/recursion/body/body_program.h"
#include "ops/recursion/run/batch_time.h"

namespace heddle::ops {
namespace {

constexpr int64_t kNarrow = 8;          // Columns up to which products have eight lanes a cell.
constexpr int64_t kChainTerms = 65536;  // Terms from which chains may be cut.
constexpr size_t kMostKept = 16;
constexpr size_t kMostPrograms = 1024;

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

bool PackedWeights::Takes(Shape b) { return b.columns > kNarrow && b.rows >= 1 && b.rows < kChainTerms; }

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

WeightCache::WeightCache() : workspaces_(std::make_unique<ThreadSlots<BodyWorkspace>>()) {}
WeightCache::~WeightCache() = default;

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

std::unique_ptr<BodyWorkspace> WeightCache::TakeWorkspace() {
  std::unique_ptr<BodyWorkspace> workspace = workspaces_->Take();
  return workspace != nullptr ? std::move(workspace) : std::make_unique<BodyWorkspace>();
}
void WeightCache::GiveBack(std::unique_ptr<BodyWorkspace> workspace) {
  workspaces_->GiveBack(std::move(workspace));
}

std::shared_ptr<const BodyProgram> WeightCache::ProgramOf(const std::shared_ptr<const RecursiveBody>& body) {
  std::lock_guard lock(mutex_);
  if (programs_.size() >= kMostPrograms && !programs_.contains(body.get())) programs_.clear();
  Lowered& lowered = programs_[body.get()];
  if (lowered.program == nullptr) lowered = {body, std::make_shared<const BodyProgram>(body)};
  return lowered.program;
}

}  // namespace heddle::ops
