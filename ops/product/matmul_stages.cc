// SPDX-License-Identifier: Apache-2.0
// X %*% Y where both operands are split by rows (docs/distribution.md, "Products"). Every cell is the chain
// or the tree of docs/numerics.md, section 3, whatever the ranks are: a rank computes whole chains of the
// cells that it has (on a grid), takes a chain over from the rank before it (in turns), or makes leaves of
// the tree (by panels). And where the right operand is there by columns.
#include "ops/product/matmul_stages.h"

#include <algorithm>
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
#include "ops/product/matmul.h"
#include "ops/product/matmul_gemm.h"

namespace heddle::ops {
namespace {

constexpr size_t kA = 0, kB = 1;

ProductSizes SizesOf(std::span<const ValueInfo> inputs) {
  return {.rows = inputs[kA].shape.rows, .inner = inputs[kB].shape.rows, .columns = inputs[kB].shape.columns};
}

bool IsSized(const Node& node, std::span<const ValueInfo> inputs) {
  return node.info.IsSized() && inputs[kA].IsMatrix() && inputs[kB].IsMatrix() && inputs[kA].IsSized() &&
         inputs[kB].IsSized();
}

bool HasPanels(std::span<const ValueInfo> inputs) {
  const ProductSizes sizes = SizesOf(inputs);
  return SplitsInner(sizes.rows, sizes.inner, sizes.columns);
}

// Where the `part`-th of so many equal parts of `length` begins.
int64_t PartBegin(int64_t length, int64_t part, int64_t parts) { return length * part / parts; }

// Rows [begin, end) of those that pieces hold one below the other, the first of which is row `first`.
Result<Value> RowsOfPieces(std::span<const Value* const> pieces, int64_t first, int64_t begin, int64_t end) {
  std::vector<Value> slices;
  for (const Value* const piece : pieces) {
    const int64_t last = first + piece->shape().rows;
    const int64_t from = std::clamp(begin, first, last), to = std::clamp(end, from, last);
    if (from < to || slices.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(Value slice, SliceRows(*piece, from - first, to - first));
      if (!slices.empty() && slices[0].shape().rows == 0) slices.clear();
      slices.push_back(std::move(slice));
    }
    first = last;
  }
  std::vector<const Value*> pointers;
  for (const Value& slice : slices) pointers.push_back(&slice);
  return pointers.size() == 1 ? Result<Value>(slices[0]) : JoinRows(pointers);
}

Result<Matrix> AsElements(const Node& node, Matrix product) {
  return node.info.element_type == ElementType::kFloat32 ? Narrow(product) : Result<Matrix>(product);
}

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

Status RunOnGrid(const StageCall& call, std::span<Value> outputs) {
  const RankGrid grid = call.grid();
  switch (call.stage) {
    case 0: return SendColumns(call.inputs[kB]->matrix(), grid, outputs);
    case 1: {
      outputs[0] = *call.inputs[kA];
      HEDDLE_ASSIGN_OR_RETURN(outputs[1], JoinRows(call.Parts(0)));
      return OkStatus();
    }
    case 2: return MultiplyTile(call, grid, outputs);
    default: break;
  }
  std::vector<Matrix> parts;
  for (const Value* const part : call.Parts(0)) parts.push_back(part->matrix());
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, JoinColumns(std::move(parts), call.node.info.format));
  outputs[0] = Value(std::move(rows));
  return OkStatus();
}

double MovedOnGrid(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  const double columns = grid.columns, rows = grid.rows();
  return BytesToMove(inputs[kA]) * (columns - 1) + BytesToMove(inputs[kB]) * (rows - 1 / columns) +
         BytesToMove(node.info) * (1 - 1 / columns);
}

// The rows of A, the columns of Y as they came and together, the cells of the result before and after they
// have moved; and its own rows of A and Y.
double HeldOnGrid(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  const double columns = grid.columns, rows = grid.rows(), ranks = grid.ranks;
  return BytesToMove(inputs[kA]) / rows + BytesToMove(inputs[kB]) * (2 / columns + 1 / ranks) +
         2 * BytesToMove(node.info) / ranks;
}

constexpr Reach kColumnsOfY[] = {Reach::kRowParts}, kOperands[] = {Reach::kRowCopies, Reach::kColumnCopies},
                kTiles[] = {Reach::kRowParts};
constexpr Stage kGridStages[] = {{.outputs = kColumnsOfY, .reads_inputs = true},
                                 {.outputs = kOperands, .reads_inputs = true},
                                 {.outputs = kTiles},
                                 {}};

// ---- In turns and by panels: a rank has the rows of Y that it holds, and gets the columns of A that meet
// them.

Status SendInnerColumns(const StageCall& call, std::span<Value> outputs) {
  const Split inner = call.RowsOf(kB);
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix columns,
                            SliceColumns(call.inputs[kA]->matrix(), inner.Begin(rank), inner.End(rank)));
    outputs[static_cast<size_t>(rank)] = Value(std::move(columns));
  }
  return OkStatus();
}

double OfOtherRanks(const RankGrid& grid) { return 1 - 1.0 / grid.ranks; }

// Sums that are not rounded yet.
double BytesOfSums(std::span<const ValueInfo> inputs) {
  const ProductSizes sizes = SizesOf(inputs);
  return static_cast<double>(sizeof(double)) * static_cast<double>(sizes.rows) *
         static_cast<double>(sizes.columns);
}

// ---- In turns: the chains of a range of rows of the result go from rank to rank, ascending, and each adds
// its terms. There are several ranges, so that ranks work at the same time.
constexpr int kRanges = 8;

// sums += A * Y for dense operands.
template <typename Cell>
void AddProduct(const Matrix& a, const Matrix& y, int64_t begin, int64_t end, bool is_first,
                const KernelContext& context, double* sums) {
  Run(GemmOf<Cell>{.m = end - begin,
                   .n = y.columns(),
                   .k = a.columns(),
                   .a = a.data<Cell>() + begin * a.columns(),
                   .a_row = a.columns(),
                   .b = y.data<Cell>(),
                   .b_row = y.columns(),
                   .c = sums,
                   .c_row = y.columns(),
                   .accumulate = !is_first,
                   .parallel = true,
                   .cancelled = context.cancelled});
}

// The sums of rows [begin, end), continued.
Result<Matrix> Continue(const StageCall& call, const Matrix& a, const Matrix& y, int64_t begin, int64_t end) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix sums, Matrix::Dense(end - begin, y.columns()));
  double* const cells = sums.mutable_data();
  if (call.before != nullptr) std::copy_n(call.before->matrix().data(), sums.cells(), cells);
  const bool is_first = call.before == nullptr;
  if (HoldsSingles(y))
    AddProduct<float>(a, y, begin, end, is_first, call.context, cells);
  else
    AddProduct<double>(a, y, begin, end, is_first, call.context, cells);
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return sums;
}

// Adds this rank's terms to the sums of one range; the last rank has them complete then, and puts them below
// those before.
Status TakeTurn(const StageCall& call, std::span<Value> outputs) {
  const bool is_first = call.stage == 1, is_last_rank = call.rank + 1 == call.ranks();
  HEDDLE_ASSIGN_OR_RETURN(const Value columns,
                          is_first ? JoinRows(call.Parts(0)) : Result<Value>(call.Received(0)));
  const Matrix& y = call.inputs[kB]->matrix();
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

bool GoesInTurns(const Node& node, std::span<const ValueInfo> inputs) {
  return IsSized(node, inputs) && !IsNarrow(inputs[kB].shape.columns) && !HasPanels(inputs) &&
         inputs[kA].format == Format::kDense && inputs[kB].format == Format::kDense &&
         inputs[kA].element_type == inputs[kB].element_type;
}

double MovedInTurns(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  return (BytesToMove(inputs[kA]) + BytesToMove(node.info)) * OfOtherRanks(grid) +
         BytesOfSums(inputs) * (grid.ranks - 1);
}

// Columns of A as they came and together, rows of both operands; the last rank the whole result, a second
// time while rows are added to it.
double HeldInTurns(const Node& node, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  return (3 * BytesToMove(inputs[kA]) + BytesToMove(inputs[kB])) / grid.ranks + 2 * BytesToMove(node.info) +
         2 * BytesOfSums(inputs) / kRanges;
}

constexpr Reach kInnerColumns[] = {Reach::kParts}, kTurn[] = {Reach::kHere, Reach::kHere, Reach::kNext},
                kOwners[] = {Reach::kFromLast};
constexpr Stage kTurnStage = {.outputs = kTurn, .reads_inputs = true};
constexpr Stage kTurnStages[] = {{.outputs = kInnerColumns, .reads_inputs = true},
                                 kTurnStage,
                                 kTurnStage,
                                 kTurnStage,
                                 kTurnStage,
                                 kTurnStage,
                                 kTurnStage,
                                 kTurnStage,
                                 kTurnStage,
                                 {.outputs = kOwners},
                                 {}};
static_assert(std::size(kTurnStages) == kRanges + 3);

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
  Matrix a = columns.matrix(), y = call.inputs[kB]->matrix();
  if (!HoldsSingles(a) || !HoldsSingles(y)) {
    HEDDLE_ASSIGN_OR_RETURN(a, Widen(a));
    HEDDLE_ASSIGN_OR_RETURN(y, Widen(y));
  }
  const Split inner = call.RowsOf(kB);
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

bool GoesByPanels(const Node& node, std::span<const ValueInfo> inputs) {
  return IsSized(node, inputs) && HasPanels(inputs);
}

// A rank has some two nodes.
double MovedByPanels(const Node&, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  return BytesToMove(inputs[kA]) * OfOtherRanks(grid) + 3 * BytesOfSums(inputs) * (grid.ranks - 1);
}

double HeldByPanels(const Node&, std::span<const ValueInfo> inputs, const RankGrid& grid) {
  return (3 * BytesToMove(inputs[kA]) + BytesToMove(inputs[kB])) / grid.ranks + 6 * BytesOfSums(inputs);
}

constexpr Reach kNodes[] = {Reach::kParts}, kShares[] = {Reach::kAll};
constexpr Stage kPanelStages[] = {{.outputs = kInnerColumns, .reads_inputs = true},
                                  {.outputs = kNodes, .reads_inputs = true},
                                  {.outputs = kShares},
                                  {}};

// ---- By columns of the right operand, beside all of the left one: the number of all columns says in which
// order a cell is added up.

Status RunProductColumns(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result,
                          Multiply(call, call.inputs[kA]->matrix(), call.inputs[kB]->matrix()));
  HEDDLE_ASSIGN_OR_RETURN(result, AsElements(call.node, std::move(result)));
  HEDDLE_ASSIGN_OR_RETURN(result,
                          call.node.info.format == Format::kSparse ? AsSparse(result) : AsDense(result));
  outputs[0] = Value(std::move(result));
  return OkStatus();
}

constexpr StagedForm kByColumns =
    ByColumns([](const Node&, std::span<const ValueInfo>,
                 int i) { return i == static_cast<int>(kB) ? InputUse::kRows : InputUse::kWhole; },
              IsSized, RunProductColumns);
constexpr StagedForm kByPanels = {.stages = kPanelStages,
                                  .result = StagedResult::kSameRows,
                                  .other = &kByColumns,
                                  .applies = GoesByPanels,
                                  .input_use = AllByRows,
                                  .moved_bytes = MovedByPanels,
                                  .held_bytes = HeldByPanels,
                                  .run = RunByPanels};
constexpr StagedForm kInTurns = {.stages = kTurnStages,
                                 .result = StagedResult::kSameRows,
                                 .other = &kByPanels,
                                 .applies = GoesInTurns,
                                 .input_use = AllByRows,
                                 .moved_bytes = MovedInTurns,
                                 .held_bytes = HeldInTurns,
                                 .run = RunInTurns};

}  // namespace

constexpr StagedForm kProductStaged = {.stages = kGridStages,
                                       .result = StagedResult::kSameRows,
                                       .on_grid = true,
                                       .other = &kInTurns,
                                       .applies = IsSized,
                                       .input_use = AllByRows,
                                       .moved_bytes = MovedOnGrid,
                                       .held_bytes = HeldOnGrid,
                                       .run = RunOnGrid};

}  // namespace heddle::ops
