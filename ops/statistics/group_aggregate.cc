// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/whole_number.h"
#include "ops/catalog.h"
#include "ops/cells/storage.h"
#include "ops/reduction/payload_parts.h"
#include "ops/simd/aggregate.h"
#include "ops/statistics/group_codes.h"
#include "ops/statistics/group_lists.h"
#include "ops/statistics/group_panels.h"
#include "ops/statistics/group_payload.h"
#include "ops/statistics/rows_by_group.h"

namespace heddle::ops {
namespace {

enum Input { kTarget, kGroups, kWeights, kGroupCount };

struct Form {
  GroupFunction function;
  int order;
};

Result<Form> FormOf(const Node& node) {
  constexpr std::pair<std::string_view, GroupFunction> kFunctions[] = {
      {"sum", GroupFunction::kSum},
      {"count", GroupFunction::kCount},
      {"mean", GroupFunction::kMean},
      {"variance", GroupFunction::kVariance},
      {"min", GroupFunction::kMinimum},
      {"max", GroupFunction::kMaximum},
      {"centralmoment", GroupFunction::kCentralMoment}};
  const Scalar* fn = node.FindAttribute("fn");
  const std::string name = fn == nullptr ? "" : fn->ToText();
  const auto* const found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                         [&](const auto& function) { return function.first == name; });
  if (found == std::end(kFunctions))
    return InvalidArgument("aggregate: unknown function fn=\"{}\"", name)
        .WithNote("it is \"sum\", \"count\", \"mean\", \"variance\", \"min\", \"max\" or \"centralmoment\"");
  if (found->second != GroupFunction::kCentralMoment) return Form{found->second, 2};
  const Scalar* order = node.FindAttribute("order");
  if (order == nullptr)
    return InvalidArgument("aggregate: order is missing")
        .WithNote("fn=\"centralmoment\" needs order=2, 3 or 4");
  for (const int value : {2, 3, 4})
    if (order->IsString() ? order->AsString() == std::to_string(value) : order->AsDouble() == value)
      return Form{found->second, value};
  return InvalidArgument("aggregate: order must be 2, 3 or 4, not {}", order->ToText());
}

// `what` is groups or weights: a column with as many rows as the target has.
Status CheckColumn(Shape target, Shape column, std::string_view what, StatusCode code) {
  if (column.columns != kUnknown && column.columns != 1)
    return Status(code, fmt::format("aggregate: {} must be a column, not {}", what, column));
  if (column.rows == kUnknown || target.rows == kUnknown || column.rows == target.rows) return OkStatus();
  return Status(code, fmt::format("aggregate: target is {} but {} is {}", target, what, column))
      .WithNote(fmt::format("{} has a number for each row of the target", what));
}

Result<ValueInfo> InferAggregate(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(FormOf(context.node).status());
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kTarget, "target"));
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kGroups, "groups"));
  const Shape target = context.inputs[kTarget].shape;
  HEDDLE_RETURN_IF_ERROR(
      CheckColumn(target, context.inputs[kGroups].shape, "groups", StatusCode::kInvalidArgument));
  if (IsGiven(context.node, kWeights)) {
    HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kWeights, "weights"));
    HEDDLE_RETURN_IF_ERROR(
        CheckColumn(target, context.inputs[kWeights].shape, "weights", StatusCode::kInvalidArgument));
  }
  HEDDLE_ASSIGN_OR_RETURN(const int64_t count, InferSize(context, kGroupCount, "ngroups", kUnknown));
  return ValueInfo::OfMatrix({count, target.columns});
}

RowRule ReduceRowRule(const Node&, std::span<const ValueInfo>) { return RowRule::kReduce; }
InputUse ByRows(const Node&, std::span<const ValueInfo>, int i) {
  return i == kGroupCount ? InputUse::kWhole : InputUse::kRows;
}

// Adds the panels of one group to its tree.
class GroupReader {
 public:
  GroupReader(const KernelCall& call, const GroupPayload& payload, RowsOfAll rows)
      : x_(call.inputs[kTarget]->matrix()),
        payload_(payload),
        begin_(rows.begin),
        height_(Granule(rows.total)) {
    scratch_.resize(static_cast<size_t>(x_.IsSparse() ? x_.columns() : 0));
  }
  template <typename Number>
  void Read(const double* weights, const int64_t* rows, int64_t count, GroupTree<Number>& tree) {
    for (int64_t at = 0; at < count;) {
      const int64_t panel = (begin_ + rows[at]) / height_;
      int64_t end = at + 1;
      while (end < count && (begin_ + rows[end]) / height_ == panel) ++end;
      Number* payload = tree.Next(panel);
      payload_.Make(x_, weights, rows + at, end - at, scratch_.data(), payload);
      if (!payload_.IsEmpty(payload)) tree.Push();
      at = end;
    }
  }

 private:
  const Matrix& x_;
  const GroupPayload& payload_;
  int64_t begin_, height_;
  std::vector<double> scratch_;
};

// By column, whether a sum over these rows may have left the range of doubles: all its cells are finite.
std::vector<bool> FiniteColumns(const Matrix& x, const double* weights, const int64_t* rows, int64_t count) {
  std::vector<bool> finite(static_cast<size_t>(x.columns()), true);
  for (int64_t r = 0; r < count; ++r) {
    const int64_t row = rows[r];
    if (weights != nullptr && !std::isfinite(weights[row])) finite.assign(finite.size(), false);
    const int64_t first = x.IsSparse() ? x.row_offsets()[row] : row * x.columns();
    const int64_t last = x.IsSparse() ? x.row_offsets()[row + 1] : first + x.columns();
    const double* const cells = x.IsSparse() ? x.values() : x.data();
    for (int64_t k = first; (k = simd::FindNonFinite(cells, k, last)) < last; ++k)
      finite[static_cast<size_t>(x.IsSparse() ? x.column_indexes()[k] : k - first)] = false;
  }
  return finite;
}

// Writes the results of all groups.
Result<Value> RunWhole(const KernelCall& call, const GroupPayload& payload, const Grouping& grouping,
                       int64_t count, const double* weights) {
  const Matrix& x = call.inputs[kTarget]->matrix();
  if (count == kUnknown) count = grouping.runs.empty() ? 0 : 1 + grouping.runs.back().group;
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(count, x.columns(), payload.Absent()));
  double* out = result.mutable_data();
  constexpr int64_t kGroupsOfATask = 16;
  ParallelFor(static_cast<int64_t>(grouping.runs.size()), kGroupsOfATask, [&](int64_t begin, int64_t end) {
    GroupReader reader(call, payload, {0, x.rows(), x.rows()});
    GroupTree<double> tree(payload, 0, std::numeric_limits<int64_t>::max());
    for (int64_t r = begin; r < end && !IsCancelled(call.context.cancelled); ++r) {
      const Run& run = grouping.runs[static_cast<size_t>(r)];
      tree.Clear();
      reader.Read(weights, grouping.rows.data() + run.begin, run.end - run.begin, tree);
      const double* const root = tree.Root();
      if (root == nullptr) continue;
      double* const results = out + run.group * x.columns();
      payload.Finish(root, results);
      if (!payload.AddsUp() || AllFinite(results, x.columns())) continue;
      const int64_t* const rows = grouping.rows.data() + run.begin;
      GroupTree<WideNumber> wide(payload, 0, std::numeric_limits<int64_t>::max());
      reader.Read(weights, rows, run.end - run.begin, wide);
      TakeWideResults(payload, wide.Root(), FiniteColumns(x, weights, rows, run.end - run.begin), results);
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return Value(std::move(result));
}

Result<Value> RunPartial(const KernelCall& call, const GroupPayload& payload, const Grouping& grouping,
                         const double* weights) {
  const RowsOfAll rows{call.row_begin, call.row_end, call.total_rows};
  const int64_t height = Granule(rows.total);
  const int64_t last = rows.end == rows.total ? std::numeric_limits<int64_t>::max() : rows.end / height;
  GroupReader reader(call, payload, rows);
  GroupTree<double> tree(payload, rows.begin / height, last);
  std::vector<double> cells;
  for (const Run& run : grouping.runs) {
    if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    tree.Clear();
    reader.Read(weights, grouping.rows.data() + run.begin, run.end - run.begin, tree);
    bool finite = true;
    for (int64_t node = 0; node < tree.Nodes(); ++node) {
      finite = finite && AllFinite(tree.PayloadOf(node), payload.width());
      cells.push_back(static_cast<double>(tree.PanelOf(node)));
      cells.push_back(static_cast<double>(run.group));
      cells.insert(cells.end(), tree.PayloadOf(node), tree.PayloadOf(node) + payload.width());
    }
    if (finite || !payload.AddsUp()) continue;
    const int64_t* const members = grouping.rows.data() + run.begin;
    GroupTree<WideNumber> wide(payload, rows.begin / height, last);
    reader.Read(weights, members, run.end - run.begin, wide);
    AddWideRows(payload, run.group,
                FiniteColumns(call.inputs[kTarget]->matrix(), weights, members, run.end - run.begin), wide,
                &cells);
  }
  return ListOfGroups(cells, payload);
}

RowsOfAll RowsOf(const KernelCall& call) {
  const int64_t rows = call.inputs[kTarget]->matrix().rows();
  return call.phase == Phase::kPartial ? RowsOfAll{call.row_begin, call.row_end, call.total_rows}
                                       : RowsOfAll{0, rows, rows};
}

// The results, or the list of nodes of phase kPartial; nullopt where there are no nodes, and where a sum may
// have left the range of doubles.
Result<std::optional<Value>> ResultOfNodes(const KernelCall& call, const GroupPayload& payload, int64_t most,
                                           const std::optional<std::vector<PayloadsOfGroups>>& nodes) {
  if (!nodes) return std::optional<Value>();
  const Matrix& x = call.inputs[kTarget]->matrix();
  const bool partial = call.phase == Phase::kPartial;
  const auto groups = static_cast<int64_t>(nodes->front().occurs.size());
  if (!partial) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result,
                            FilledMatrix(most == kUnknown ? groups : most, x.columns(), payload.Absent()));
    for (int64_t g = 0; g < groups; ++g)
      if (nodes->front().occurs[static_cast<size_t>(g)] != 0)
        payload.Finish(nodes->front().payloads.data() + g * payload.width(),
                       result.mutable_data() + g * x.columns());
    if (payload.AddsUp() && !AllFinite(result.data(), groups * x.columns())) return std::optional<Value>();
    return std::optional<Value>(Value(std::move(result)));
  }
  std::vector<double> cells;
  for (const PayloadsOfGroups& node : *nodes)
    for (int64_t g = 0; g < groups; ++g) {
      if (node.occurs[static_cast<size_t>(g)] == 0) continue;
      const double* const numbers = node.payloads.data() + g * payload.width();
      if (payload.AddsUp() && !AllFinite(numbers, payload.width())) return std::optional<Value>();
      cells.push_back(static_cast<double>(node.panel));
      cells.push_back(static_cast<double>(g));
      cells.insert(cells.end(), numbers, numbers + payload.width());
    }
  HEDDLE_ASSIGN_OR_RETURN(Value list, ListOfGroups(cells, payload));
  return std::optional<Value>(std::move(list));
}

// The rows as they lie, without sorting them by group, where that pays.
Result<std::optional<Value>> RunByPanels(const KernelCall& call, const GroupPayload& payload, int64_t most,
                                         const double* weights) {
  return ResultOfNodes(call, payload, most,
                       ReadByPanels(call.inputs[kTarget]->matrix(), call.inputs[kGroups]->matrix(), weights,
                                    payload, most, RowsOf(call), call.context.cancelled));
}

// From how many rows of a group have which tuple.
Result<std::optional<Value>> RunAggregateOfCodes(const KernelCall& call) {
  const std::optional<Value> nothing;
  const Result<Form> form = FormOf(call.node);
  const Matrix &x = call.inputs[kTarget]->matrix(), &groups = call.inputs[kGroups]->matrix();
  const bool weighted = call.inputs.size() > kWeights && call.inputs[kWeights] != nullptr;
  const Result<int64_t> most = GivenSize(call, kGroupCount, "ngroups", kUnknown);
  if (!form.ok() || !most.ok() || weighted || groups.shape() != Shape{x.rows(), 1} ||
      call.node.info.element_type != ElementType::kFloat64)
    return nothing;
  const GroupPayload payload(form->function, form->order, x.columns());
  return ResultOfNodes(call, payload, *most,
                       ReadByCodes(x, groups, payload, *most, RowsOf(call), call.context.cancelled));
}

Result<Value> RunAggregate(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Form form, FormOf(call.node));
  if (call.phase == Phase::kFinish) {
    const int64_t columns = call.input_infos[kTarget].shape.columns;
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, FinishGroups(call.inputs[0]->matrix(),
                                                        GroupPayload(form.function, form.order, columns),
                                                        columns, 0, call.node.info.shape.rows));
    return Value(std::move(result));
  }
  const Matrix& x = call.inputs[kTarget]->matrix();
  const Matrix& groups = call.inputs[kGroups]->matrix();
  HEDDLE_RETURN_IF_ERROR(CheckColumn(x.shape(), groups.shape(), "groups", StatusCode::kFailedPrecondition));
  Matrix weights;
  const bool weighted = call.inputs.size() > kWeights && call.inputs[kWeights] != nullptr;
  if (weighted) {
    HEDDLE_ASSIGN_OR_RETURN(weights, AsDense(call.inputs[kWeights]->matrix()));
    HEDDLE_RETURN_IF_ERROR(
        CheckColumn(x.shape(), weights.shape(), "weights", StatusCode::kFailedPrecondition));
  }
  HEDDLE_ASSIGN_OR_RETURN(const int64_t most, GivenSize(call, kGroupCount, "ngroups", kUnknown));
  const bool partial = call.phase == Phase::kPartial;
  const GroupPayload payload(form.function, form.order, x.columns());
  const double* cells = weighted ? weights.data() : nullptr;
  HEDDLE_ASSIGN_OR_RETURN(std::optional<Value> made, RunByPanels(call, payload, most, cells));
  if (made) return *std::move(made);
  std::optional<WrongGroup> wrong;
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                          ReadGroups(groups, most, partial ? call.row_begin : 0, &wrong));
  if (wrong) return partial ? ListOfWrongGroup(*wrong, payload) : wrong->ToStatus();
  const Grouping grouping = GroupRows(numbers);
  return partial ? RunPartial(call, payload, grouping, cells)
                 : RunWhole(call, payload, grouping, most, cells);
}

// A list has a row for each group of a node: parts are groups, of which a list need not have all.
PayloadUnits UnitsOfGroups(const Node& node, std::span<const ValueInfo> inputs, size_t) {
  const Result<Form> form = FormOf(node);
  const int64_t columns = inputs[kTarget].shape.columns, count = node.info.shape.rows;
  if (!form.ok() || columns == kUnknown || count == kUnknown) return {};
  const GroupPayload payload(form->function, form->order, columns);
  return {.count = count,
          .bytes = 8 * static_cast<double>(2 + payload.width()) * static_cast<double>(count),
          .by_rows = true,
          .is_row = false};
}

Status RunPartOfGroups(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix part, RowsOfGroups(call.received, call.begin, call.end));
  if (call.stage == kFinishPart) {
    HEDDLE_ASSIGN_OR_RETURN(const Form form, FormOf(call.node));
    const int64_t columns = call.input_infos[kTarget].shape.columns;
    HEDDLE_ASSIGN_OR_RETURN(part, FinishGroups(part, GroupPayload(form.function, form.order, columns),
                                               columns, call.begin, call.end - call.begin));
    HEDDLE_ASSIGN_OR_RETURN(part, AsResultCells(call, std::move(part)));
  }
  outputs[0] = Value(std::move(part));
  return OkStatus();
}

constexpr StagedForm kParts = {.stages = kReductionStages, .units = UnitsOfGroups, .run = RunPartOfGroups};

// With P[i, g] = 1 where row i is of group g, and no 1 where that group is dropped: sums are t(P) %*% (w *
// X), a count is t(P) %*% w, a mean their quotient.
void DifferentiateAggregate(AdjointCall& call) {
  const Result<Form> form = FormOf(call.node());
  if (!form.ok()) return call.Refuse(form.status().message());
  const GroupFunction function = form->function;
  if (function != GroupFunction::kSum && function != GroupFunction::kCount &&
      function != GroupFunction::kMean)
    return call.Refuse(fmt::format("aggregate() has a derivative of sums, counts and means, not of fn=\"{}\"",
                                   call.node().Text("fn")));
  const bool weighted = IsGiven(call.node(), kWeights);
  if (function == GroupFunction::kCount && !call.IsWanted(kWeights)) return;
  const NodeId groups = call.Formula("table(seq(1, nrow(target)), groups, none, nrow(target), nrow(dy))");
  NodeId given = call.Adjoint();
  if (function == GroupFunction::kMean) {
    const NodeId ones = weighted ? call.Input(kWeights) : call.Formula("matrix(1, nrow(target), 1)");
    const NodeId counts = call.Formula("t(P) %*% W", {{"P", groups}, {"W", ones}});
    given = call.Formula("dy / (N + (N == 0))", {{"N", counts}});
  }
  const NodeId of_rows = call.Formula("P %*% G", {{"P", groups}, {"G", given}});
  if (call.IsWanted(kTarget) && function != GroupFunction::kCount)
    call.Give(kTarget, weighted ? call.Formula("R * weights", {{"R", of_rows}}) : of_rows);
  if (!call.IsWanted(kWeights)) return;
  if (function == GroupFunction::kCount)
    return call.Give(kWeights, call.Formula("rowSums(R)", {{"R", of_rows}}));
  const NodeId products = call.Formula("R * target", {{"R", of_rows}});
  call.Give(kWeights,
            function == GroupFunction::kSum
                ? call.Formula("rowSums(A)", {{"A", products}})
                : call.Formula("rowSums(A - P %*% (G * y))", {{"A", products}, {"P", groups}, {"G", given}}));
}

// The groups of all rows, and the rows in their order.
double AggregateWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  return 2 * sizeof(int64_t) * static_cast<double>(inputs[kTarget].shape.rows);
}

}  // namespace

/// aggregate(target=X, groups=g, weights=w, fn=, order=, ngroups=): row i of the result tells about the rows
/// of X whose group is i. fn is "sum", "count", "mean", "variance" (denominator N - 1), "min", "max" or
/// "centralmoment" (of order 2, 3 or 4, denominator N).
///
/// Shapes:  X m x c, g and w m x 1 (g is truncated); the result is ngroups x c, rows of larger groups are
///          dropped. Without ngroups it has max(g) rows, known only after the run.
/// Weights: a row counts w times: sums of w * x, N the sum of w. min and max are those of w * x, as in
///          SystemDS.
/// Empty:   0, of centralmoment NaN. One member has variance 0.
/// Errors:  a group below 1 (at run time).
/// Order:   within panels of Granule(m) rows of X ascending, panels along the tree; moments are taken about
/// the
///          mean of a panel and joined by Pebay's formulas.
/// Cost:    reads X once (moments: twice), a panel at a time; of many groups, and of CSR, sorts the rows by
/// group
///          before.
extern constexpr Operator kGroupAggregate = {.name = "aggregate",
                                             .form = CallForm::kNamed,
                                             .parameters = "target groups weights? @fn @order? ngroups?",
                                             .aliases = "groupedAggregate",
                                             .min_inputs = 2,
                                             .max_inputs = 4,
                                             .infer = InferAggregate,
                                             .row_rule = ReduceRowRule,
                                             .input_use = ByRows,
                                             .staged = &kParts,
                                             .run = RunAggregate,
                                             .run_compressed = RunAggregateOfCodes,
                                             .may_fail = true,
                                             .working_bytes = AggregateWorkingBytes,
                                             .adjoints = "*; 0; *; 0",
                                             .differentiate = DifferentiateAggregate};

}  // namespace heddle::ops
