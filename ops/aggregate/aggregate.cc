// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate/aggregate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/aggregate/aggregate_codes.h"
#include "ops/aggregate/nodes_of_columns.h"
#include "ops/base/columns.h"
#include "ops/base/cpu.h"
#include "ops/base/device_forms.h"
#include "ops/catalog.h"
#include "ops/simd/cellwise/elementwise.h"

namespace heddle::ops {
namespace {

using enum AggregateKind;
using enum AggregateScope;

Result<ValueInfo> InferAggregate(const InferContext& context) {
  const Aggregate& aggregate = *FindAggregate(context.node.op);
  const ValueInfo& x = context.inputs[0];
  if (x.data_type != DataType::kMatrix && x.data_type != DataType::kUnknown)
    return InvalidArgument("{}: needs a matrix, got a {}", context.node.op, Name(x.data_type))
        .WithNote("as.matrix(x) makes a 1x1 matrix of a scalar");
  if (aggregate.kind == kTrace && x.shape.IsKnown() && x.shape.rows != x.shape.columns)
    return InvalidArgument("trace: needs a square matrix, got {}", x.shape);
  switch (aggregate.scope) {
    case kFull: return ValueInfo::OfScalar(ValueType::kDouble);
    case kRow: return ValueInfo::OfMatrix({x.shape.rows, 1});
    case kColumn: break;
  }
  return ValueInfo::OfMatrix({1, x.shape.columns});
}

RowRule AggregateRowRule(const Node& node, std::span<const ValueInfo>) {
  return FindAggregate(node.op)->scope == kRow ? RowRule::kRowWise : RowRule::kReduce;
}

Cost AggregateCost(const Node& node, std::span<const ValueInfo> inputs) {
  const Aggregate& aggregate = *FindAggregate(node.op);
  if (!inputs[0].shape.IsKnown()) return {};
  const double rows = static_cast<double>(inputs[0].shape.rows),
               columns = static_cast<double>(inputs[0].shape.columns);
  if (aggregate.kind == kTrace) return {.work = rows, .bytes = 64 * rows};
  const double results = aggregate.scope == kRow ? rows : aggregate.scope == kColumn ? columns : 1;
  return {.work = rows * columns * FindOperator(node.op)->fusion.work,
          .bytes = 8 * (rows * columns + results)};
}

Result<Value> RunAggregate(const KernelCall& call) {
  const Aggregate& aggregate = *FindAggregate(call.node.op);
  switch (aggregate.scope) {
    case kFull: return RunFullAggregate(call, aggregate.kind);
    case kRow: return RunRowAggregate(call, aggregate.kind);
    case kColumn: break;
  }
  return RunColumnAggregate(call, aggregate.kind);
}

// The order in which a column is added up depends on the number of columns of all.
Status RunColumnsOfAggregate(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], RunColumnAggregate(call.WholeCall(), FindAggregate(call.node.op)->kind,
                                                         call.rows.Length()));
  return OkStatus();
}

Status FinishFull(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], RunAggregate({.node = call.node,
                                                    .phase = Phase::kFinish,
                                                    .inputs = call.Parts(0),
                                                    .input_infos = call.input_infos,
                                                    .context = call.context}));
  return OkStatus();
}

// Chunks of columns are leaves: the nodes of what each rank has go to all.
Status RunFullOfColumns(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 0) {
    HEDDLE_ASSIGN_OR_RETURN(
        Matrix nodes, NodesOfColumns(call.inputs[0]->matrix(), FindAggregate(call.node.op)->kind,
                                     call.input_infos[0].shape, call.rows.Begin(call.rank), call.context));
    outputs[0] = Value(std::move(nodes));
    return OkStatus();
  }
  return FinishFull(call, outputs);
}

bool HasChunks(const Node& node, std::span<const ValueInfo> inputs) {
  return inputs[0].IsMatrix() && inputs[0].shape.columns > kColumnChunk &&
         FindAggregate(node.op)->kind != AggregateKind::kTrace;
}

// Of few rows that are no longer than a chunk, leaves are panels of rows, which the ranks share out.
Status RunFullOfPanels(const StageCall& call, std::span<Value> outputs) {
  const Shape& whole = call.input_infos[0].shape;
  switch (call.stage) {
    case 0: SendPanels(call, call.inputs[0]->matrix(), whole, outputs); return OkStatus();
    case 1: {
      HEDDLE_ASSIGN_OR_RETURN(Matrix nodes, NodesOfPanels(call, FindAggregate(call.node.op)->kind, whole));
      outputs[0] = Value(std::move(nodes));
      return OkStatus();
    }
    default: return FinishFull(call, outputs);
  }
}

bool HasPanels(const Node& node, std::span<const ValueInfo> inputs) {
  return inputs[0].IsMatrix() && inputs[0].IsSized() && inputs[0].element_type == ElementType::kFloat64 &&
         HasFewPanels(inputs[0].shape) && FindAggregate(node.op)->scope == kFull &&
         FindAggregate(node.op)->kind != AggregateKind::kTrace;
}

double BytesOfX(const Node&, std::span<const ValueInfo> inputs, const RankGrid&) {
  return static_cast<double>(KnownBytes(inputs[0]));
}

constexpr Reach kNodesToAll[] = {Reach::kAll}, kPanels[] = {Reach::kParts};
constexpr Stage kFullStages[] = {{.outputs = kNodesToAll, .reads_inputs = true}, {}},
                kPanelStages[] = {{.outputs = kPanels, .reads_inputs = true}, {.outputs = kNodesToAll}, {}};
constexpr StagedForm kFullOfPanels = {.stages = kPanelStages,
                                      .result = StagedResult::kEach,
                                      .axis = Axis::kColumns,
                                      .applies = HasPanels,
                                      .input_use = AllByRows,
                                      .moved_bytes = BytesOfX,
                                      .run = RunFullOfPanels};
constexpr StagedForm kFullOfColumns = {.stages = kFullStages,
                                       .result = StagedResult::kEach,
                                       .axis = Axis::kColumns,
                                       .needs_granules = true,
                                       .other = &kFullOfPanels,
                                       .applies = HasChunks,
                                       .input_use = AllByRows,
                                       .run = RunFullOfColumns};
constexpr StagedForm Before(StagedForm form, const StagedForm& other) {
  form.other = &other;
  return form;
}

constexpr StagedForm kAggregateColumns =
    Before(ByColumns(AllByRows, nullptr, RunColumnsOfAggregate), kColumnAggregateParts);

}  // namespace

const Aggregate* FindAggregate(std::string_view name) {
  const Operator* op = FindOperator(name);
  return op == nullptr ? nullptr : op->aggregate;
}

simd::Fold FoldOf(AggregateKind kind) {
  switch (kind) {
    case kMinimum: return simd::Fold::kMinimum;
    case kMaximum: return simd::Fold::kMaximum;
    case kProduct: return simd::Fold::kMultiply;
    default: return simd::Fold::kAdd;
  }
}

Join JoinOf(AggregateKind kind) {
  switch (kind) {
    case kMinimum: return Join::kMinimum;
    case kMaximum: return Join::kMaximum;
    case kProduct: return Join::kProduct;
    case kVariance:
    case kDeviation: return Join::kMoments;
    default: return Join::kSum;
  }
}

double SpreadOf(AggregateKind kind, double count, double squares) {
  if (count < 1) return std::numeric_limits<double>::quiet_NaN();
  const double variance = count < 2 ? 0.0 : squares / (count - 1.0);
  return kind == kDeviation ? std::sqrt(variance) : variance;
}

EntryRange EntriesOf(const Matrix& sparse, int64_t row, int64_t column_begin, int64_t column_end) {
  const int32_t* columns = sparse.column_indexes();
  int64_t begin = sparse.row_offsets()[row], end = sparse.row_offsets()[row + 1];
  if (column_begin > 0) begin = std::lower_bound(columns + begin, columns + end, column_begin) - columns;
  if (column_end < sparse.columns())
    end = std::lower_bound(columns + begin, columns + end, column_end) - columns;
  return {begin, end};
}

const double* PanelCells::Get(int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end) {
  const bool single = matrix_.element_type() == ElementType::kFloat32;
  if (!matrix_.IsSparse() && !single) return matrix_.data() + row_begin * matrix_.columns() + column_begin;
  const int64_t width = column_end - column_begin, cells = (row_end - row_begin) * width;
  if (cells > capacity_) {
    scratch_ = AlignedArray(cells);
    capacity_ = cells;
  }
  if (!matrix_.IsSparse()) {
    // All columns, or a part of one row: without gaps.
    SelectedElementwiseKernels().widen(matrix_.data<float>() + row_begin * matrix_.columns() + column_begin,
                                       scratch_.data(), cells);
    return scratch_.data();
  }
  std::fill_n(scratch_.data(), cells, 0.0);
  for (int64_t i = row_begin; i < row_end; ++i) {
    const EntryRange range = EntriesOf(matrix_, i, column_begin, column_end);
    double* row = scratch_.data() + (i - row_begin) * width - column_begin;
    for (int64_t e = range.begin; e < range.end; ++e) row[matrix_.column_indexes()[e]] = matrix_.values()[e];
  }
  return scratch_.data();
}

simd::Prefetch PrefetchOf(const Matrix& x) {
  const bool streams = !x.IsSparse() && x.element_type() == ElementType::kFloat64;
  return streams && x.bytes() >= kFetchedBytes ? simd::Prefetch::OfStream() : simd::Prefetch();
}

RowSpan SpanOf(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  if (call.phase == Phase::kWhole) return {0, x.rows(), x.rows()};
  HEDDLE_CHECK(x.rows() == call.row_end - call.row_begin, "a partial call holds just its rows");
  HEDDLE_CHECK(call.row_begin % Granule(call.total_rows) == 0 || call.row_begin == call.row_end,
               "cuts are at granules");
  return {call.row_begin, call.row_end, call.total_rows};
}

namespace {

// Floats are added up as doubles, which they become in the first-level cache. Nodes are doubles.
bool TakesDenseSingles(const KernelCall& call) {
  if (call.phase == Phase::kFinish || call.node.Is("trace")) return false;
  const Matrix& x = call.inputs[0]->matrix();
  return x.element_type() == ElementType::kFloat32 && !x.IsSparse();
}

template <AggregateScope scope, AggregateKind kind>
constexpr Aggregate kAggregate = {scope, kind};

// `fusion` says its use, if it has one, and its work.
constexpr Operator Describe(Operator op, const Aggregate& aggregate, FusionTraits fusion) {
  if (op.form == CallForm::kNone) op.form = CallForm::kPositional;
  op.parameters = "X";
  op.min_inputs = op.max_inputs = 1;
  op.infer = InferAggregate;
  op.row_rule = AggregateRowRule;
  op.input_use = AllByRows;
  op.cost = AggregateCost;
  if (aggregate.scope == AggregateScope::kColumn) op.staged = &kAggregateColumns;
  if (aggregate.scope == AggregateScope::kFull) op.staged = &kFullOfColumns;
  op.run = RunAggregate;
  op.run_compressed = RunAggregateOfCodes;
  // Others are tile programs, however long rows are.
  if (aggregate.scope == AggregateScope::kRow &&
      (IsSpread(aggregate.kind) || aggregate.kind == AggregateKind::kIndexMax ||
       aggregate.kind == AggregateKind::kIndexMin))
    op.run_on_device = AggregateLongRowsOnDevice;
  op.takes_singles = TakesDenseSingles;
  op.kind = OperatorKind::kAggregate;
  op.aggregate = &aggregate;
  op.fusion = fusion;
  // Moments of columns need a leaf's rows twice: only stitches, which see whole leaves, have them.
  const bool by_leaves = aggregate.scope == AggregateScope::kColumn && IsSpread(aggregate.kind);
  op.fusion.cell = op.fusion.row = fusion.use != RowUse::kNone && !by_leaves;
  return op;
}

// Adjoints (docs/gradient.md). Cells at which an extreme is taken share its adjoint. The derivative of a
// product by a cell of zero is the product of the others; of cells without spread, sd has derivative zero.
constexpr std::string_view kOfProduct =
    "((X != 0) / (X + (X == 0))) * (dy * y) +"
    "(X == 0) * (dy * (sum(X == 0) == 1) * prod(X + (X == 0)))";
constexpr std::string_view kOfRowProducts =
    "((X != 0) / (X + (X == 0))) * (dy * y) +"
    "(X == 0) * (dy * (rowSums(X == 0) == 1) * rowProds(X + (X == 0)))";
constexpr std::string_view kOfColumnProducts =
    "((X != 0) / (X + (X == 0))) * (dy * y) +"
    "(X == 0) * (dy * (colSums(X == 0) == 1) * colProds(X + (X == 0)))";

constexpr Operator kOperators[] = {
    Describe({.name = "sum", .of_rows = "rowSums", .of_columns = "colSums", .adjoints = "spreadTo(dy, X)"},
             kAggregate<kFull, kSum>, {.use = RowUse::kFullAggregate, .outer = true, .work = 0.35}),
    Describe({.name = "mean",
              .aliases = "avg",
              .overload = "weightedMean",
              .of_rows = "rowMeans",
              .of_columns = "colMeans",
              .adjoints = "spreadTo(dy / (nrow(X) * ncol(X)), X)"},
             kAggregate<kFull, kMean>, {.use = RowUse::kFullAggregate, .work = 0.35}),
    Describe({.name = "min",
              .form = CallForm::kMinMax,
              .aliases = "pmin",
              .overload = "pmin",
              .of_rows = "rowMins",
              .of_columns = "colMins",
              .adjoints = "(X == y) * (dy / sum(X == y))"},
             kAggregate<kFull, kMinimum>, {.use = RowUse::kFullAggregate, .work = 0.5}),
    Describe({.name = "max",
              .form = CallForm::kMinMax,
              .aliases = "pmax",
              .overload = "pmax",
              .of_rows = "rowMaxs",
              .of_columns = "colMaxs",
              .adjoints = "(X == y) * (dy / sum(X == y))"},
             kAggregate<kFull, kMaximum>, {.use = RowUse::kFullAggregate, .work = 0.5}),
    Describe({.name = "prod", .adjoints = kOfProduct}, kAggregate<kFull, kProduct>,
             {.use = RowUse::kFullAggregate, .work = 0.5}),
    Describe({.name = "var", .adjoints = "(X - mean(X)) * (dy * 2 / max(nrow(X) * ncol(X) - 1, 1))"},
             kAggregate<kFull, kVariance>, {}),
    Describe(
        {.name = "sd", .adjoints = "(X - mean(X)) * (dy / ((y + (y == 0)) * max(nrow(X) * ncol(X) - 1, 1)))"},
        kAggregate<kFull, kDeviation>, {}),
    Describe({.name = "trace", .aliases = "tr", .adjoints = "diag(matrix(dy, nrow(X), 1))"},
             kAggregate<kFull, kTrace>, {}),
    Describe({.name = "rowSums", .adjoints = "spreadTo(dy, X)"}, kAggregate<kRow, kSum>,
             {.use = RowUse::kRowAggregate, .outer = true, .work = 0.35}),
    Describe({.name = "rowMeans", .adjoints = "spreadTo(dy / ncol(X), X)"}, kAggregate<kRow, kMean>,
             {.use = RowUse::kRowAggregate, .outer = true, .work = 0.35}),
    Describe({.name = "rowMaxs", .adjoints = "(X == y) * (dy / rowSums(X == y))"}, kAggregate<kRow, kMaximum>,
             {.use = RowUse::kRowAggregate, .outer = true, .work = 0.5}),
    Describe({.name = "rowMins", .adjoints = "(X == y) * (dy / rowSums(X == y))"}, kAggregate<kRow, kMinimum>,
             {.use = RowUse::kRowAggregate, .outer = true, .work = 0.5}),
    Describe({.name = "rowProds", .adjoints = kOfRowProducts}, kAggregate<kRow, kProduct>,
             {.use = RowUse::kRowAggregate, .work = 0.5}),
    Describe({.name = "rowVars", .adjoints = "(X - rowMeans(X)) * (dy * 2 / max(ncol(X) - 1, 1))"},
             kAggregate<kRow, kVariance>, {.use = RowUse::kRowAggregate, .work = 1.4}),
    Describe(
        {.name = "rowSds", .adjoints = "(X - rowMeans(X)) * (dy / ((y + (y == 0)) * max(ncol(X) - 1, 1)))"},
        kAggregate<kRow, kDeviation>, {.use = RowUse::kRowAggregate, .work = 1.4}),
    Describe({.name = "rowIndexMax", .adjoints = "0"}, kAggregate<kRow, kIndexMax>,
             {.use = RowUse::kRowAggregate, .work = 0.5}),
    Describe({.name = "rowIndexMin", .adjoints = "0"}, kAggregate<kRow, kIndexMin>,
             {.use = RowUse::kRowAggregate, .work = 0.5}),
    Describe({.name = "colSums", .adjoints = "spreadTo(dy, X)"}, kAggregate<kColumn, kSum>,
             {.use = RowUse::kColumnAggregate, .outer = true, .work = 0.7}),
    Describe({.name = "colMeans", .adjoints = "spreadTo(dy / nrow(X), X)"}, kAggregate<kColumn, kMean>,
             {.use = RowUse::kColumnAggregate, .outer = true, .work = 0.7}),
    Describe({.name = "colMaxs", .adjoints = "(X == y) * (dy / colSums(X == y))"},
             kAggregate<kColumn, kMaximum>, {.use = RowUse::kColumnAggregate, .work = 1}),
    Describe({.name = "colMins", .adjoints = "(X == y) * (dy / colSums(X == y))"},
             kAggregate<kColumn, kMinimum>, {.use = RowUse::kColumnAggregate, .work = 1}),
    Describe({.name = "colProds", .adjoints = kOfColumnProducts}, kAggregate<kColumn, kProduct>,
             {.use = RowUse::kColumnAggregate, .work = 1}),
    Describe({.name = "colVars", .adjoints = "(X - colMeans(X)) * (dy * 2 / max(nrow(X) - 1, 1))"},
             kAggregate<kColumn, kVariance>, {.use = RowUse::kColumnAggregate, .work = 2.1}),
    Describe(
        {.name = "colSds", .adjoints = "(X - colMeans(X)) * (dy / ((y + (y == 0)) * max(nrow(X) - 1, 1)))"},
        kAggregate<kColumn, kDeviation>, {.use = RowUse::kColumnAggregate, .work = 2.1}),
};

}  // namespace

std::span<const Operator> AggregateOperators() { return kOperators; }

}  // namespace heddle::ops
