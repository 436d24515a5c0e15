// SPDX-License-Identifier: Apache-2.0
// X %*% Y of operands that are split by rows (docs/distribution.md, "Products"), where a rank has the rows of
// Y that it holds and gets the columns of A that meet them: chains that ranks take over from each other, and
// leaves of the tree that each makes.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "ops/base/split.h"
#include "ops/cells/join_columns.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/single_precision.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/frame/row_pieces.h"
#include "ops/product/matmul_shares.h"
#include "ops/product/matmul_stages.h"

namespace heddle::ops {
namespace {

Status SendInnerColumns(const StageCall& call, std::span<Value> outputs) {
  const Split inner = call.RowsOf(kY);
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix columns,
                            SliceColumns(call.inputs[kA]->matrix(), inner.Begin(rank), inner.End(rank)));
    outputs[static_cast<size_t>(rank)] = Value(std::move(columns));
  }
  return OkStatus();
}

double OfOtherRanks(const RankGrid& grid) { return 1 - 1.0 / grid.ranks; }

// ---- In turns: the chains of a range of rows of the result go from rank to rank, ascending, and each adds
// its terms. There are several ranges, so that ranks work at the same time.
constexpr int kRanges = 16;

// The sums of rows [begin, end), continued.
Result<Matrix> Continue(const StageCall& call, const Matrix& a, const Matrix& y, int64_t begin, int64_t end) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix sums, Matrix::Dense(end - begin, y.columns()));
  double* const cells = sums.mutable_data();
  if (call.before != nullptr) std::copy_n(call.before->matrix().data(), sums.cells(), cells);
  const bool is_first = call.before == nullptr;
  AddProduct(a, y, begin, end, is_first, call.context, cells);
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return sums;
}

// Adds this rank's terms to the sums of one range; the last rank has them complete then, and puts them below
// those before.
Status TakeTurn(const StageCall& call, std::span<Value> outputs) {
  const bool is_first = call.stage == 1, is_last_rank = call.rank + 1 == call.ranks();
  HEDDLE_ASSIGN_OR_RETURN(const Value columns,
                          is_first ? JoinRows(call.Parts(0)) : Result<Value>(call.Received(0)));
  const Matrix& y = call.inputs[kY]->matrix();
  const int64_t rows = call.rows.Length();
  HEDDLE_ASSIGN_OR_RETURN(Matrix sums,
                          Continue(call, columns.matrix(), y, PartBegin(rows, call.stage - 1, kRanges),
                                   PartBegin(rows, call.stage, kRanges)));
  HEDDLE_ASSIGN_OR_RETURN(Matrix nothing, Matrix::Dense(0, y.columns()));
  outputs[0] = columns;
  outputs[1] = is_first ? Value(nothing) : call.Received(1);
  outputs[2] = Value(is_last_rank ? nothing : sums);
  if (!is_last_rank) return OkStatus();
  for (int64_t i = 0; i < sums.cells(); ++i) sums.mutable_data()[i] += 0.0;
  HEDDLE_ASSIGN_OR_RETURN(sums, AsElements(call.node, std::move(sums)));
  const Value complete(std::move(sums));
  if (is_first) {
    outputs[1] = complete;
    return OkStatus();
  }
  const Value* const both[] = {&call.Received(1), &complete};
  HEDDLE_ASSIGN_OR_RETURN(outputs[1], JoinRows(both));
  return OkStatus();
}

Status RunInTurns(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 0) return SendInnerColumns(call, outputs);
  if (call.stage <= kRanges) return TakeTurn(call, outputs);
  if (call.stage > kRanges + 1) {
    outputs[0] = call.Received(0);
    return OkStatus();
  }
  for (size_t rank = 0; rank < outputs.size(); ++rank) {
    const auto owner = static_cast<int32_t>(rank);
    HEDDLE_ASSIGN_OR_RETURN(outputs[rank], SliceRows(call.Received(1), call.result_rows.Begin(owner),
                                                     call.result_rows.End(owner)));
  }
  return OkStatus();
}

double MovedInTurns(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  return (BytesToMove(inputs[kA]) + BytesToMove(node.info)) * OfOtherRanks(grid) +
         BytesOfSums(inputs) * (grid.ranks - 1);
}

// Columns of A as they came and together, rows of both operands; the last rank the whole result, a second
// time while rows are added to it.
double HeldInTurns(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  return (3 * BytesToMove(inputs[kA]) + BytesToMove(inputs[kY])) / grid.ranks + 2 * BytesToMove(node.info) +
         2 * BytesOfSums(inputs) / kRanges;
}

constexpr Reach kInnerColumns[] = {Reach::kParts}, kTurn[] = {Reach::kHere, Reach::kHere, Reach::kNext},
                kOwners[] = {Reach::kFromLast};
constexpr auto kTurnStages = [] {
  std::array<Stage, kRanges + 3> stages;
  stages.fill({.outputs = kTurn, .reads_inputs = true});
  stages[0].outputs = kInnerColumns;
  stages[kRanges + 1] = {.outputs = kOwners};
  stages[kRanges + 2] = {};
  return stages;
}();

// ---- By panels: of a small result with a long inner dimension (SplitsInner) each rank makes the nodes of
// its panels. A share of the cells of the nodes of all ranks is joined on each rank, and all shares go to
// all.

// Cells [begin, end) of the payloads of nodes.
Result<Matrix> CellsOfNodes(const Matrix& nodes, int64_t begin, int64_t end) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix places, SliceColumns(nodes, 0, 2));
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells, SliceColumns(nodes, 2 + begin, 2 + end));
  std::vector<Matrix> parts = {std::move(places), std::move(cells)};
  return JoinColumns(std::move(parts), Format::kDense);
}

Status SendNodes(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(const Value columns, JoinRows(call.Parts(0)));
  Matrix a = columns.matrix(), y = call.inputs[kY]->matrix();
  if (!HoldsSingles(a) || !HoldsSingles(y)) {
    HEDDLE_ASSIGN_OR_RETURN(a, Widen(a));
    HEDDLE_ASSIGN_OR_RETURN(y, Widen(y));
  }
  const Split inner = call.RowsOf(kY);
  HEDDLE_ASSIGN_OR_RETURN(const Matrix nodes,
                          PanelNodes(a, y, inner.Begin(call.rank), inner.Length(), call.context));
  const int64_t cells = a.rows() * y.columns();
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix share, CellsOfNodes(nodes, PartBegin(cells, rank, call.ranks()),
                                                       PartBegin(cells, rank + 1, call.ranks())));
    outputs[static_cast<size_t>(rank)] = Value(std::move(share));
  }
  return OkStatus();
}

Status JoinShare(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(const Value nodes, JoinRows(call.Parts(0)));
  const int64_t cells = nodes.shape().columns - 2;
  HEDDLE_ASSIGN_OR_RETURN(Matrix share, Matrix::Dense(cells, 1));
  if (cells > 0) {
    HEDDLE_ASSIGN_OR_RETURN(const AlignedArray sums, JoinPanelNodes(nodes.matrix()));
    std::copy_n(sums.data(), cells, share.mutable_data());
  }
  outputs[0] = Value(std::move(share));
  return OkStatus();
}

Status RunByPanels(const StageCall& call, std::span<Value> outputs) {
  switch (call.stage) {
    case 0: return SendInnerColumns(call, outputs);
    case 1: return SendNodes(call, outputs);
    case 2: return JoinShare(call, outputs);
    default: break;
  }
  const ProductSizes sizes = SizesOf(call.input_infos);
  const Value cells(call.Received(0).matrix().Reshaped(sizes.rows, sizes.columns));
  HEDDLE_ASSIGN_OR_RETURN(
      const Value rows, SliceRows(cells, call.result_rows.Begin(call.rank), call.result_rows.End(call.rank)));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, AsElements(call.node, rows.matrix()));
  if (call.node.info.format == Format::kSparse) {
    HEDDLE_ASSIGN_OR_RETURN(result, AsSparse(result));
  }
  outputs[0] = Value(std::move(result));
  return OkStatus();
}

// A rank has some two nodes.
double MovedByPanels(const Node&, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  return BytesToMove(inputs[kA]) * OfOtherRanks(grid) + 3 * BytesOfSums(inputs) * (grid.ranks - 1);
}

double HeldByPanels(const Node&, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  return (3 * BytesToMove(inputs[kA]) + BytesToMove(inputs[kY])) / grid.ranks + 6 * BytesOfSums(inputs);
}

constexpr Reach kNodes[] = {Reach::kParts}, kShares[] = {Reach::kAll};
constexpr Stage kPanelStages[] = {{.outputs = kInnerColumns, .reads_inputs = true},
                                  {.outputs = kNodes, .reads_inputs = true},
                                  {.outputs = kShares},
                                  {}};

}  // namespace

constexpr StagedForm kProductByPanels = {.stages = kPanelStages,
                                         .result = StagedResult::kSameRows,
                                         .other = &kProductByColumns,
                                         .applies = HasPanels,
                                         .input_use = AllByRows,
                                         .moved_bytes = MovedByPanels,
                                         .held_bytes = HeldByPanels,
                                         .run = RunByPanels};
constexpr StagedForm kProductInTurns = {.stages = kTurnStages,
                                        .result = StagedResult::kSameRows,
                                        .other = &kProductOnGridInSteps,
                                        .applies = HasOpenChains,
                                        .input_use = AllByRows,
                                        .moved_bytes = MovedInTurns,
                                        .held_bytes = HeldInTurns,
                                        .run = RunInTurns};

}  // namespace heddle::ops
