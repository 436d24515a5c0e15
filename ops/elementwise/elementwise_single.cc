// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise_single.h"

#include <algorithm>
#include <array>

#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/cells/move_cells.h"
#include "ops/elementwise/single_precision.h"
#include "ops/simd/cellwise/single_functions.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainCells = int64_t{1} << 15;

Access AccessOf(Pattern pattern) {
  switch (pattern) {
    case Pattern::kCells: return Access::kCells;
    case Pattern::kColumn: return Access::kPerRow;
    case Pattern::kRow: return Access::kPerColumn;
    case Pattern::kScalar: break;
  }
  return Access::kScalar;
}

// An operand as the code of a region reads it. Only repeated row vectors are widened beforehand.
struct Source {
  Access access = Access::kScalar;
  Matrix matrix;
  double scalar = 0;

  bool IsSingle() const { return access == Access::kCells || access == Access::kPerRow; }
  int64_t stride() const { return matrix.columns(); }
  // What a call that begins at this row (or, of a flat walk, cell) reads.
  const double* From(int64_t row, int64_t row_cells) const {
    if (access == Access::kScalar) return &scalar;
    if (access == Access::kPerColumn) return matrix.data();
    return reinterpret_cast<const double*>(matrix.data<float>() + row * row_cells);
  }
};

// A function of floats, which nothing needs to be widened for.
Result<Matrix> SingleFunctionOf(SingleFunction function, const Matrix& x, int64_t rows, int64_t columns,
                                const std::atomic<bool>* cancelled) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(rows, columns, ElementType::kFloat32));
  const float* const from = x.data<float>();
  float* const to = result.mutable_data<float>();
  ParallelFor(rows * columns, kGrainCells, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end && !IsCancelled(cancelled); at += kGrainCells)
      function(from + at, to + at, std::min(kGrainCells, end - at));
  });
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
  return result;
}

}  // namespace

Result<Matrix> SingleCells(RegionNode op, std::span<const Operand> operands, int64_t rows, int64_t columns,
                           const std::atomic<bool>* cancelled) {
  if (op.op == RegionOp::kUnary && operands[0].pattern == Pattern::kCells)
    if (const SingleFunction function = SelectedSingleFunctions().Of(op.unary))
      return SingleFunctionOf(function, operands[0].matrix, rows, columns, cancelled);
  Region region;
  std::array<Source, 3> sources;
  bool flat = true;
  for (size_t i = 0; i < operands.size(); ++i) {
    sources[i] = {
        .access = AccessOf(operands[i].pattern), .matrix = operands[i].matrix, .scalar = operands[i].scalar};
    flat = flat && (sources[i].access == Access::kCells || sources[i].access == Access::kScalar);
    if (sources[i].access == Access::kPerColumn) {
      HEDDLE_ASSIGN_OR_RETURN(sources[i].matrix, Widen(operands[i].matrix));
    }
    region.nodes.push_back(
        {.access = sources[i].access, .input = static_cast<int>(i), .single = sources[i].IsSingle()});
  }
  region.inputs = static_cast<int>(operands.size());
  op.a = 0;
  op.b = operands.size() > 1 ? 1 : -1;
  op.c = operands.size() > 2 ? 2 : -1;
  region.nodes.push_back(op);
  region.outputs.push_back({.node = region.inputs, .single = true});
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const RegionCode> code, InterpretedRegions().Compile(region));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(rows, columns, ElementType::kFloat32));
  const int64_t count = flat ? rows * columns : rows, grain = flat ? kGrainCells : RowGrain(columns);
  ParallelFor(columns == 0 ? 0 : count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end && !IsCancelled(cancelled); at += grain) {
      const int64_t steps = std::min(grain, end - at);
      std::array<const double*, 3> inputs;
      std::array<int64_t, 3> strides;
      for (size_t i = 0; i < operands.size(); ++i) {
        inputs[i] = sources[i].From(at, flat ? 1 : sources[i].stride());
        strides[i] = sources[i].stride();
      }
      double* const output =
          reinterpret_cast<double*>(result.mutable_data<float>() + at * (flat ? 1 : columns));
      code->Run({.rows = flat ? 1 : steps,
                 .columns = flat ? steps : columns,
                 .inputs = inputs.data(),
                 .input_strides = strides.data(),
                 .outputs = &output,
                 .output_strides = &columns});
    }
  });
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
  return result;
}

}  // namespace heddle::ops
