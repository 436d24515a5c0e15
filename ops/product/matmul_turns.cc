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
#include "ops/product/narrow_parts.h"

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

// Of chains of doubles, where columns need not be cut at the blocks in which floats end theirs.
bool HasOpenChainsOfDoubles(const Node& node, std::span<const ValueInfo> inputs) {
  return HasOpenChains(node, inputs) && inputs[kA].element_type == ElementType::kFloat64;
}

// Of at most 8 columns of Y, whose cells have eight chains each, the lanes, over no more than a chunk.
bool HasOpenLanes(const Node& node, std::span<const ValueInfo> inputs) {
  return IsSizedProduct(node, inputs) && IsNarrow(inputs[kY].shape.columns) &&
         inputs[kA].shape.columns <= kColumnChunk && node.info.format == Format::kDense &&
         inputs[kA].element_type == ElementType::kFloat64 && inputs[kY].element_type == ElementType::kFloat64;
}

// The lanes of the cells of rows [begin, end), continued.
Result<Matrix> ContinueWithLanes(const StageCall& call, int64_t begin, int64_t end) {
  const Matrix& y = call.inputs[kY]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix lanes, Matrix::Dense(end - begin, 8 * y.columns()));
  double* const cells = lanes.mutable_data();
  if (call.before == nullptr)
    std::fill_n(cells, lanes.cells(), 0.0);
  else
    std::copy_n(call.before->matrix().data(), lanes.cells(), cells);
  HEDDLE_RETURN_IF_ERROR(ContinueLanes(call.inputs[kA]->matrix(), y, call.rows.Begin(call.rank), begin, end,
                                       call.context, cells));
  return lanes;
}

// Adds this rank's terms to the sums of one range; the last rank has them complete then. It keeps the ranges
// apart until all are there.
Status TakeTurn(const StageCall& call, size_t range, const Value& columns, std::span<Value> outputs) {
  const bool is_last_rank = call.rank + 1 == call.ranks();
  outputs[0] = columns;
  for (size_t done = 1; done <= range; ++done) outputs[done] = call.Received(done);
  const Matrix& y = call.inputs[kY]->matrix();
  const int64_t rows = call.input_infos[kA].shape.rows, turn = static_cast<int64_t>(range);
  const int64_t begin = PartBegin(rows, turn, kRanges), end = PartBegin(rows, turn + 1, kRanges);
  const bool has_lanes = HasOpenLanes(call.node, call.input_infos);
  HEDDLE_ASSIGN_OR_RETURN(Matrix sums, has_lanes ? ContinueWithLanes(call, begin, end)
                                                 : Continue(call, columns.matrix(), y, begin, end));
  HEDDLE_ASSIGN_OR_RETURN(Matrix nothing, Matrix::Dense(0, y.columns()));
  if (!is_last_rank) {
    outputs[range + 1] = Value(std::move(nothing));
    outputs[range + 2] = Value(std::move(sums));
    return OkStatus();
  }
  if (has_lanes) {
    HEDDLE_ASSIGN_OR_RETURN(sums, CloseLanesOfCells(sums, y.columns()));
  }
  for (int64_t i = 0; i < sums.cells(); ++i) sums.mutable_data()[i] += 0.0;
  HEDDLE_ASSIGN_OR_RETURN(sums, AsElements(call.node, std::move(sums)));
  outputs[range + 1] = Value(std::move(sums));
  outputs[range + 2] = Value(std::move(nothing));
  return OkStatus();
}

// The last rank sends each rank its rows of all ranges.
Status SendRows(const StageCall& call, std::span<Value> outputs) {
  if (outputs.empty()) return OkStatus();
  std::vector<const Value*> ranges;
  for (size_t range = 0; range < kRanges; ++range) ranges.push_back(&call.Received(range + 1));
  for (size_t rank = 0; rank < outputs.size(); ++rank) {
    const auto owner = static_cast<int32_t>(rank);
    HEDDLE_ASSIGN_OR_RETURN(
        outputs[rank], RowsOfPieces(ranges, 0, call.result_rows.Begin(owner), call.result_rows.End(owner)));
  }
  return OkStatus();
}

Status RunInTurns(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 0) return SendInnerColumns(call, outputs);
  if (call.stage == kRanges + 1) return SendRows(call, outputs);
  if (call.stage > kRanges) {
    outputs[0] = call.Received(0);
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(const Value columns,
                          call.stage == 1 ? JoinRows(call.Parts(0)) : Result<Value>(call.Received(0)));
  return TakeTurn(call, static_cast<size_t>(call.stage) - 1, columns, outputs);
}

// The same where each rank has its columns of A already: the first turn is the first stage.
Status RunColumnsInTurns(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == kRanges) return SendRows(call, outputs);
  if (call.stage < kRanges) return TakeTurn(call, static_cast<size_t>(call.stage), *call.inputs[kA], outputs);
  outputs[0] = call.Received(0);
  return OkStatus();
}

double MovedColumnsInTurns(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  const double lanes = HasOpenLanes(node, inputs) ? 8 : 1;
  return BytesToMove(node.info) * OfOtherRanks(grid) + lanes * BytesOfSums(inputs) * (grid.ranks - 1);
}

double MovedInTurns(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  return (BytesToMove(inputs[kA]) + BytesToMove(node.info)) * OfOtherRanks(grid) +
         BytesOfSums(inputs) * (grid.ranks - 1);
}

// Columns of A as they came and together, rows of both operands; the last rank the whole result, a second
// time while it cuts the ranges into what each rank gets.
double HeldInTurns(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  return (3 * BytesToMove(inputs[kA]) + BytesToMove(inputs[kY])) / grid.ranks + 2 * BytesToMove(node.info) +
         2 * BytesOfSums(inputs) / kRanges;
}

constexpr Reach kInnerColumns[] = {Reach::kParts}, kOwners[] = {Reach::kFromLast};
// Of a turn the columns of A, the ranges before, its own, and its sums for the next rank.
constexpr auto kTurn = [] {
  std::array<Reach, kRanges + 2> outputs{};
  outputs.fill(Reach::kHere);
  outputs.back() = Reach::kNext;
  return outputs;
}();
constexpr auto kTurnStages = [] {
  std::array<Stage, kRanges + 3> stages{};
  stages[0] = {.outputs = kInnerColumns, .reads_inputs = true};
  for (size_t turn = 1; turn <= kRanges; ++turn)
    stages[turn] = {.outputs = std::span(kTurn).last(turn + 2), .reads_inputs = true};
  stages[kRanges + 1] = {.outputs = kOwners};
  return stages;
}();

bool HasTurnsOfColumns(const Node& node, std::span<const ValueInfo> inputs) {
  return HasOpenChainsOfDoubles(node, inputs) || HasOpenLanes(node, inputs);
}

constexpr StagedForm kColumnsInTurns = {.stages = std::span(kTurnStages).subspan(1),
                                        .result = StagedResult::kRows,
                                        .axis = Axis::kColumns,
                                        .crossed_inputs = 1U << kY,
                                        .applies = HasTurnsOfColumns,
                                        .input_use = FirstByRows,
                                        .moved_bytes = MovedColumnsInTurns,
                                        .run = RunColumnsInTurns};

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

// ---- Where each rank has columns of A, and the rows of Y that meet them: the nodes of what it has go to
// all. Cells are joined from panels, or from chunks of columns where Y has at most 8 columns.

bool HasChunks(const Node& node, std::span<const ValueInfo> inputs) {
  return IsSizedProduct(node, inputs) && IsNarrow(inputs[kY].shape.columns) &&
         inputs[kA].shape.columns > kColumnChunk;
}

bool HasNodesOfColumns(const Node& node, std::span<const ValueInfo> inputs) {
  return (HasChunks(node, inputs) || HasPanels(node, inputs)) &&
         inputs[kA].element_type == ElementType::kFloat64 && inputs[kY].element_type == ElementType::kFloat64;
}

Status RunNodesOfColumns(const StageCall& call, std::span<Value> outputs) {
  const bool has_chunks = HasChunks(call.node, call.input_infos);
  const ProductSizes sizes = SizesOf(call.input_infos);
  if (call.stage == 0) {
    const Matrix &a = call.inputs[kA]->matrix(), &y = call.inputs[kY]->matrix();
    const int64_t first = call.rows.Begin(call.rank);
    HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, has_chunks ? NarrowNodes(a, y, first, call.context)
                                                     : PanelNodes(a, y, first, sizes.inner, call.context));
    outputs[0] = Value(std::move(nodes));
    return OkStatus();
  }
  const Matrix& nodes = call.Received(0).matrix();
  Matrix result;
  if (has_chunks) {
    HEDDLE_ASSIGN_OR_RETURN(
        result, JoinNarrowNodes(nodes, call.input_infos[kA].format, sizes.rows, sizes.columns, call.context));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(const AlignedArray sums, JoinPanelNodes(nodes));
    HEDDLE_ASSIGN_OR_RETURN(result, Matrix::Dense(sizes.rows, sizes.columns));
    std::copy_n(sums.data(), result.cells(), result.mutable_data());
  }
  if (call.node.info.format == Format::kSparse) {
    HEDDLE_ASSIGN_OR_RETURN(result, AsSparse(result));
  }
  outputs[0] = Value(std::move(result));
  return OkStatus();
}

// Some two nodes of each rank, to all others; of a narrow Y eight lanes a cell.
double MovedNodesOfColumns(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  const double lanes = HasChunks(node, inputs) ? 8 : 1;
  return 2 * lanes * BytesOfSums(inputs) * grid.ranks * (grid.ranks - 1);
}

constexpr Reach kNodesToAll[] = {Reach::kAll};
constexpr Stage kNodeStages[] = {{.outputs = kNodesToAll, .reads_inputs = true}, {}};
constexpr StagedForm kNodesOfColumns = {.stages = kNodeStages,
                                        .result = StagedResult::kEach,
                                        .axis = Axis::kColumns,
                                        .needs_granules = true,
                                        .crossed_inputs = 1U << kY,
                                        .other = &kColumnsInTurns,
                                        .applies = HasNodesOfColumns,
                                        .input_use = FirstByRows,
                                        .moved_bytes = MovedNodesOfColumns,
                                        .run = RunNodesOfColumns};

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

constexpr StagedForm kProductByLeftColumns = kNodesOfColumns;

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
