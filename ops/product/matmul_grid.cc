// SPDX-License-Identifier: Apache-2.0
// X %*% Y where a rank makes whole chains of the cells that it has (docs/distribution.md, "Products"): on a
// grid of ranks, of operands that are split by rows; and of columns of Y that are there.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "ops/base/columns.h"
#include "ops/base/split.h"
#include "ops/cells/join_columns.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/single_precision.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/frame/row_pieces.h"
#include "ops/product/matmul_shares.h"
#include "ops/product/matmul_stages.h"
#include "ops/simd/product/gemm.h"

namespace heddle::ops {
namespace {

// MultiplyPart for any element types.
Result<Matrix> Multiply(const StageCall& call, Matrix a, Matrix b) {
  const ProductSizes whole = SizesOf(call.input_infos);
  const bool reads_singles = HoldsSingles(a) && HoldsSingles(b) &&
                             (!IsNarrow(whole.columns) || (!a.IsSparse() && whole.inner <= kColumnChunk));
  if (!reads_singles) {
    HEDDLE_ASSIGN_OR_RETURN(a, Widen(a));
    HEDDLE_ASSIGN_OR_RETURN(b, Widen(b));
  }
  if (a.rows() == 0 || b.columns() == 0) return Matrix::Dense(a.rows(), b.columns(), a.element_type());
  HEDDLE_ASSIGN_OR_RETURN(Matrix product, MultiplyPart(a, b, whole, call.context));
  return AsElements(call.node, std::move(product));
}

// ---- On a grid: a rank has the cells in the rows of its row of the grid and in a share of the columns.
// Every rank of a row gets the rows of A that the row has. Y is first cut into columns among the ranks of a
// row, and each of those parts goes down its column of the grid.

Status SendColumns(const Matrix& y, const RankGrid& grid, std::span<Value> outputs) {
  for (int32_t column = 0; column < grid.columns; ++column) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix part, SliceColumns(y, PartBegin(y.columns(), column, grid.columns),
                                                      PartBegin(y.columns(), column + 1, grid.columns)));
    outputs[static_cast<size_t>(column)] = Value(std::move(part));
  }
  return OkStatus();
}

// For each rank of the row its rows of the result in the columns of this one.
Status MultiplyTile(const StageCall& call, const RankGrid& grid, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(const Value columns, JoinRows(call.Parts(1)));
  const int32_t row = grid.RowOf(call.rank);
  const int64_t first = call.rows.Begin(grid.At(row, 0));
  for (int32_t column = 0; column < grid.columns; ++column) {
    const int32_t owner = grid.At(row, column);
    HEDDLE_ASSIGN_OR_RETURN(
        const Value rows,
        RowsOfPieces(call.Parts(0), first, call.result_rows.Begin(owner), call.result_rows.End(owner)));
    HEDDLE_ASSIGN_OR_RETURN(Matrix product, Multiply(call, rows.matrix(), columns.matrix()));
    outputs[static_cast<size_t>(column)] = Value(std::move(product));
  }
  return OkStatus();
}

Status JoinTiles(const StageCall& call, std::span<Value> outputs) {
  std::vector<Matrix> parts;
  for (const Value* const part : call.Parts(0)) parts.push_back(part->matrix());
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, JoinColumns(std::move(parts), call.node.info.format));
  outputs[0] = Value(std::move(rows));
  return OkStatus();
}

Status RunOnGrid(const StageCall& call, std::span<Value> outputs) {
  const RankGrid grid = call.grid();
  switch (call.stage) {
    case 0: return SendColumns(call.inputs[kY]->matrix(), grid, outputs);
    case 1: {
      outputs[0] = *call.inputs[kA];
      HEDDLE_ASSIGN_OR_RETURN(outputs[1], JoinRows(call.Parts(0)));
      return OkStatus();
    }
    case 2: return MultiplyTile(call, grid, outputs);
    default: return JoinTiles(call, outputs);
  }
}

double MovedOnGrid(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  const double columns = grid.columns, rows = grid.rows();
  return BytesToMove(inputs[kA]) * (columns - 1) + BytesToMove(inputs[kY]) * (rows - 1 / columns) +
         BytesToMove(node.info) * (1 - 1 / columns);
}

// The rows of A, the columns of Y as they came and together, the cells of the result before and after they
// have moved; and its own rows of A and Y.
double HeldOnGrid(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  const double columns = grid.columns, rows = grid.rows(), ranks = grid.ranks;
  return BytesToMove(inputs[kA]) / rows + BytesToMove(inputs[kY]) * (2 / columns + 1 / ranks) +
         2 * BytesToMove(node.info) / ranks;
}

constexpr Reach kColumnsOfY[] = {Reach::kRowParts}, kOperands[] = {Reach::kRowCopies, Reach::kColumnCopies},
                kTiles[] = {Reach::kRowParts};
constexpr Stage kGridStages[] = {{.outputs = kColumnsOfY, .reads_inputs = true},
                                 {.outputs = kOperands, .reads_inputs = true},
                                 {.outputs = kTiles},
                                 {}};

// ---- On a grid, in steps: A and Y travel a range of inner indexes at a time, whose terms are added to the
// sums of a rank's cells before the next range comes. So a rank holds a part of what the grid holds above.
constexpr int kSteps = 8;

// Ranges begin at whole blocks of chains of floats.
int64_t StepBegin(int64_t inner, int64_t step) {
  const int64_t begin = PartBegin(inner, step, kSteps);
  return step == kSteps ? inner : begin - begin % kSingleBlock;
}

// What is sent for range `step`: the columns of A in it, and those rows of the columns of Y.
Status SendStep(const StageCall& call, const RankGrid& grid, const Matrix& columns, int64_t step,
                std::span<Value> outputs) {
  const Split inner = call.RowsOf(kY);
  const int64_t begin = StepBegin(inner.Length(), step), end = StepBegin(inner.Length(), step + 1);
  HEDDLE_ASSIGN_OR_RETURN(Matrix a, SliceColumns(call.inputs[kA]->matrix(), begin, end));
  outputs[0] = Value(std::move(a));
  const int32_t row = grid.RowOf(call.rank);
  const int64_t first = inner.Begin(grid.At(row, 0)), last = inner.End(grid.At(row, grid.columns - 1));
  const int64_t from = std::clamp(begin, first, last), to = std::clamp(end, from, last);
  HEDDLE_ASSIGN_OR_RETURN(outputs[1], SliceRows(Value(columns), from - first, to - first));
  return OkStatus();
}

// The sums of this rank's cells with the terms of the range that has come.
Result<Matrix> AddStep(const StageCall& call, const RankGrid& grid) {
  const bool is_first = call.stage == 2;
  HEDDLE_ASSIGN_OR_RETURN(const Value y, JoinRows(call.Parts(1)));
  const int32_t row = grid.RowOf(call.rank);
  const int64_t rows = call.rows.End(grid.At(row, grid.columns - 1)) - call.rows.Begin(grid.At(row, 0));
  HEDDLE_ASSIGN_OR_RETURN(Matrix sums, Matrix::Dense(rows, y.shape().columns));
  double* cells = sums.mutable_data();
  if (!is_first) std::copy_n(call.Received(3).matrix().data(), sums.cells(), cells);
  for (const Value* const piece : call.Parts(0)) {
    const Matrix& a = piece->matrix();
    AddProduct(a, y.matrix(), 0, a.rows(), is_first, call.context, cells);
    cells += a.rows() * sums.columns();
  }
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return sums;
}

// The rows of complete sums that each rank of the row owns.
Status SendSums(const StageCall& call, const RankGrid& grid, Matrix sums, std::span<Value> outputs) {
  for (int64_t i = 0; i < sums.cells(); ++i) sums.mutable_data()[i] += 0.0;
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells, AsElements(call.node, std::move(sums)));
  const Value tile(std::move(cells));
  const Value* const pieces[] = {&tile};
  const int32_t row = grid.RowOf(call.rank);
  for (int32_t column = 0; column < grid.columns; ++column) {
    const int32_t owner = grid.At(row, column);
    HEDDLE_ASSIGN_OR_RETURN(outputs[static_cast<size_t>(column)],
                            RowsOfPieces(pieces, call.rows.Begin(grid.At(row, 0)),
                                         call.result_rows.Begin(owner), call.result_rows.End(owner)));
  }
  return OkStatus();
}

// Stages: 0 cuts Y into columns; 1 + s sends range s and adds range s - 1; then the cells go to the ranks
// that own them. The columns of Y that this row of the grid has, and the sums, stay on the rank.
Status RunOnGridInSteps(const StageCall& call, std::span<Value> outputs) {
  const RankGrid grid = call.grid();
  if (call.stage == 0) return SendColumns(call.inputs[kY]->matrix(), grid, outputs);
  if (call.stage == kSteps + 2) return JoinTiles(call, outputs);
  HEDDLE_ASSIGN_OR_RETURN(Matrix sums, Matrix::Dense(0, 0));
  if (call.stage > 1) {
    HEDDLE_ASSIGN_OR_RETURN(sums, AddStep(call, grid));
  }
  if (call.stage == kSteps + 1) return SendSums(call, grid, std::move(sums), outputs);
  HEDDLE_ASSIGN_OR_RETURN(outputs[2],
                          call.stage == 1 ? JoinRows(call.Parts(0)) : Result<Value>(call.Received(2)));
  outputs[3] = Value(std::move(sums));
  return SendStep(call, grid, outputs[2].matrix(), call.stage - 1, outputs);
}

double HeldOnGridInSteps(const Node&, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  const double columns = grid.columns, rows = grid.rows(), ranks = grid.ranks;
  return BytesToMove(inputs[kA]) * (1 / ranks + 1 / (rows * kSteps)) +
         BytesToMove(inputs[kY]) * (2 / ranks + 2 / (columns * kSteps)) + 2 * BytesOfSums(inputs) / ranks;
}

constexpr Reach kStep[] = {Reach::kRowCopies, Reach::kColumnCopies, Reach::kHere, Reach::kHere};
constexpr auto kGridStepStages = [] {
  std::array<Stage, kSteps + 3> stages;
  stages.fill({.outputs = kStep, .reads_inputs = true});
  stages[0].outputs = kColumnsOfY;
  stages[kSteps + 1] = {.outputs = kTiles};
  stages[kSteps + 2] = {};
  return stages;
}();

// ---- By columns of the right operand, beside all of the left one: the number of all columns says in which
// order a cell is added up.

Status RunProductColumns(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result,
                          Multiply(call, call.inputs[kA]->matrix(), call.inputs[kY]->matrix()));
  HEDDLE_ASSIGN_OR_RETURN(result,
                          call.node.info.format == Format::kSparse ? AsSparse(result) : AsDense(result));
  outputs[0] = Value(std::move(result));
  return OkStatus();
}

}  // namespace

constexpr StagedForm kProductByColumns = [] {
  StagedForm form =
      ByColumns([](const Node&, std::span<const ValueInfo>,
                   int i) { return i == static_cast<int>(kY) ? InputUse::kRows : InputUse::kWhole; },
                IsSizedProduct, RunProductColumns);
  form.other = &kProductByLeftColumns;
  return form;
}();
constexpr StagedForm kProductOnGridInSteps = {.stages = kGridStepStages,
                                              .result = StagedResult::kSameRows,
                                              .on_grid = true,
                                              .other = &kProductByPanels,
                                              .applies = HasOpenChains,
                                              .input_use = AllByRows,
                                              .moved_bytes = MovedOnGrid,
                                              .held_bytes = HeldOnGridInSteps,
                                              .run = RunOnGridInSteps};
// With one column it would be the row rule in more stages.
constexpr StagedForm kProductStaged = {.stages = kGridStages,
                                       .result = StagedResult::kSameRows,
                                       .on_grid = true,
                                       .least_columns = 2,
                                       .other = &kProductInTurns,
                                       .applies = IsSizedProduct,
                                       .input_use = AllByRows,
                                       .moved_bytes = MovedOnGrid,
                                       .held_bytes = HeldOnGrid,
                                       .run = RunOnGrid};

}  // namespace heddle::ops
