// SPDX-License-Identifier: Apache-2.0
#include "ops/select/order_stages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/cells/global_places.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

enum StageNumber { kSort, kFindBounds, kFindCuts, kSend, kMerge };

// The sorted rows of a rank travel as they are, or as their keys with their numbers behind them.
class SortedPart final : public RankElements {
 public:
  SortedPart(const Matrix& rows, const RowOrder& order) : rows_(rows), order_(order) {}
  int64_t count() const override { return rows_.rows(); }
  double Key(int64_t element, size_t key) const override {
    return CellAt(rows_, element, order_.columns[key]);
  }

 private:
  const Matrix& rows_;
  const RowOrder& order_;
};

// A request, about rows that travel, as a row that is handed on from stage to stage.
Result<Value> ValueOf(const OrderRequest& request) {
  const auto keys = static_cast<int64_t>(request.order.columns.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix row, Matrix::Dense(1, 2 + keys));
  row.mutable_data()[0] = request.gives_numbers ? 1 : 0;
  row.mutable_data()[1] = request.order.keys.decreasing ? 1 : 0;
  for (int64_t k = 0; k < keys; ++k)
    row.mutable_data()[2 + k] =
        static_cast<double>(request.gives_numbers ? k : request.order.columns[static_cast<size_t>(k)]);
  return Value(std::move(row));
}

OrderRequest RequestOf(const Value& value) {
  const Matrix& row = value.matrix();
  OrderRequest request{.gives_numbers = row.data()[0] != 0};
  request.order.keys.decreasing = row.data()[1] != 0;
  for (int64_t k = 2; k < row.columns(); ++k)
    request.order.columns.push_back(static_cast<int64_t>(row.data()[k]));
  return request;
}

// Places at which the result is cut between two ranks, each once.
std::vector<int64_t> InnerCuts(const StageCall& call) {
  std::vector<int64_t> cuts;
  for (const int64_t cut : call.result_rows.cuts)
    if (cut > 0 && cut < call.rows.Length() && (cuts.empty() || cut > cuts.back())) cuts.push_back(cut);
  return cuts;
}

int64_t RowsOf(const StageCall& call, int32_t rank) { return call.rows.End(rank) - call.rows.Begin(rank); }

Status Sort(const StageCall& call, OrderRequest request, std::span<Value> outputs) {
  Matrix x = call.inputs[0]->matrix();
  const bool is_sparse = call.input_infos[0].format == FormatOf(Storage::kCsr);
  if (x.IsSparse() != is_sparse) {
    HEDDLE_ASSIGN_OR_RETURN(x, is_sparse ? AsSparse(x) : AsDense(x));
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<KeyedRow> rows,
                          SortedRows(x, request.order, call.context.cancelled));
  // Numbers alone where nothing is merged.
  if (request.gives_numbers && call.ranks() == 1) request.order.columns.clear();
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix sorted, request.gives_numbers ? NumberedKeys(x, request.order, rows, call.rows.Begin(call.rank))
                                           : GatherRows(x, NumbersOf(rows)));
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], ValueOf(request));
  const OrderRequest of_sorted = RequestOf(outputs[0]);
  ElementRows samples(of_sorted.order.columns.size());
  const int64_t step = SampleStep(call.rows.Length(), static_cast<int64_t>(InnerCuts(call).size()));
  const SortedPart part(sorted, of_sorted.order);
  for (int64_t i = 0; i < part.count() && step <= call.rows.Length(); i += step) samples.Add(part, i);
  HEDDLE_ASSIGN_OR_RETURN(outputs[2], samples.ToMatrix());
  outputs[1] = Value(std::move(sorted));
  return OkStatus();
}

Status FindBounds(const StageCall& call, const OrderRequest& request, std::span<Value> outputs) {
  const KeyOrder& order = request.order.keys;
  const size_t keys = request.order.columns.size();
  const std::vector<int64_t> cuts = InnerCuts(call);
  const int64_t step = SampleStep(call.rows.Length(), static_cast<int64_t>(cuts.size()));
  std::vector<int64_t> samples;
  std::vector<double> rows;
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    rows.push_back(static_cast<double>(RowsOf(call, rank)));
    samples.push_back(cuts.empty() ? 0 : CeilDivide(RowsOf(call, rank), step));
  }
  const PlaceBounds bounds(order, keys, call.Received(2).matrix(), samples, rows);
  const SortedPart part(call.Received(1).matrix(), request.order);
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    ElementRows window(keys);
    const auto [first, last] = OwnPlaces(static_cast<int64_t>(cuts.size()), rank, call.ranks());
    for (int64_t i = first; i < last; ++i) {
      const auto cut = static_cast<double>(cuts[static_cast<size_t>(i)]);
      const auto begin = bounds.Begin(cut), end = bounds.End(cut);
      window.AddWindow(part, begin ? CountBefore(part, order, call.rank, *begin) : 0,
                       end ? CountBefore(part, order, call.rank, *end) : part.count());
    }
    HEDDLE_ASSIGN_OR_RETURN(outputs[static_cast<size_t>(2 + rank)], window.ToMatrix());
  }
  return OkStatus();
}

Status FindCuts(const StageCall& call, const OrderRequest& request, std::span<Value> outputs) {
  const size_t keys = request.order.columns.size();
  const std::vector<int64_t> cuts = InnerCuts(call);
  const auto [first, last] = OwnPlaces(static_cast<int64_t>(cuts.size()), call.rank, call.ranks());
  WindowReader reader(request.order.keys, keys, call.Parts(2));
  HEDDLE_ASSIGN_OR_RETURN(Matrix found,
                          Matrix::Dense(last - first, static_cast<int64_t>(keys + kCellsBehindKeys)));
  for (int64_t i = first; i < last; ++i)
    WriteElement(reader.Next().At(static_cast<double>(cuts[static_cast<size_t>(i)])),
                 found.mutable_data() + (i - first) * found.columns());
  outputs[2] = Value(std::move(found));
  return OkStatus();
}

Status Send(const StageCall& call, const OrderRequest& request, std::span<Value> outputs) {
  const Matrix &sorted = call.Received(1).matrix(), &found = call.Received(2).matrix();
  const SortedPart part(sorted, request.order);
  const std::vector<int64_t> cuts = InnerCuts(call);
  const auto rows_before = [&](int64_t cut) {
    if (cut <= 0) return int64_t{0};
    if (cut >= call.rows.Length()) return part.count();
    const auto i = std::lower_bound(cuts.begin(), cuts.end(), cut) - cuts.begin();
    return CountBefore(part, request.order.keys, call.rank,
                       ReadElement(found.data() + i * found.columns(), request.order.columns.size()));
  };
  for (int32_t rank = 0; rank < call.ranks(); ++rank)
    outputs[static_cast<size_t>(1 + rank)] = Value(
        sorted.Rows(rows_before(call.result_rows.Begin(rank)), rows_before(call.result_rows.End(rank))));
  return OkStatus();
}

Status Merge(const StageCall& call, const OrderRequest& request, std::span<Value> outputs) {
  std::vector<Matrix> parts;
  for (const Value* part : call.Parts(1)) parts.push_back(part->matrix());
  HEDDLE_ASSIGN_OR_RETURN(Matrix merged, MergeSortedRows(parts, request.order, call.context.cancelled));
  if (request.gives_numbers) {
    HEDDLE_ASSIGN_OR_RETURN(merged, SliceColumns(merged, merged.columns() - 1, merged.columns()));
  }
  outputs[0] = Value(std::move(merged));
  return OkStatus();
}

constexpr Reach kOfSort[] = {Reach::kHere, Reach::kHere, Reach::kAll};
constexpr Reach kOfBounds[] = {Reach::kHere, Reach::kHere, Reach::kParts};
constexpr Reach kOfCuts[] = {Reach::kHere, Reach::kHere, Reach::kAll};
constexpr Reach kOfSend[] = {Reach::kHere, Reach::kParts};
constexpr Stage kStages[] = {{.outputs = kOfSort, .reads_inputs = true},
                             {.outputs = kOfBounds},
                             {.outputs = kOfCuts},
                             {.outputs = kOfSend},
                             {}};

Status RunStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == kSort) {
    HEDDLE_ASSIGN_OR_RETURN(
        OrderRequest request,
        RequestOfOrder(call.WholeCall(), {call.rows.Length(), call.inputs[0]->matrix().columns()}));
    return Sort(call, std::move(request), outputs);
  }
  const OrderRequest request = RequestOf(call.Received(0));
  if (call.stage == kMerge) return Merge(call, request, outputs);
  outputs[0] = call.Received(0);
  if (call.stage == kSend) return Send(call, request, outputs);
  outputs[1] = call.Received(1);
  return call.stage == kFindBounds ? FindBounds(call, request, outputs) : FindCuts(call, request, outputs);
}

// Every row once, or its key and its number.
double MovedBytes(const Node& node, std::span<const ValueInfo> inputs, const RankGrid&) {
  const ValueInfo& x = inputs[0];
  if (node.info.shape.columns < x.shape.columns)
    return 2 * sizeof(double) * static_cast<double>(x.shape.rows);
  return static_cast<double>(KnownBytes(x));
}

}  // namespace

Result<Matrix> NumberedKeys(const Matrix& x, const RowOrder& order, const std::vector<KeyedRow>& rows,
                            int64_t rows_before) {
  const auto width = static_cast<int64_t>(order.columns.size()) + 1;
  HEDDLE_ASSIGN_OR_RETURN(Matrix keys, Matrix::Dense(x.rows(), width));
  ParallelFor(x.rows(), 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto& [key, row] = rows[static_cast<size_t>(i)];
      double* const out = keys.mutable_data() + i * width;
      if (width > 1) out[0] = order.keys.NumberOf(key);
      for (int64_t k = 1; k + 1 < width; ++k) out[k] = CellAt(x, row, order.columns[static_cast<size_t>(k)]);
      out[width - 1] = static_cast<double>(rows_before + row + 1);
    }
  });
  return keys;
}

constexpr StagedForm kOrderStages = {
    .stages = kStages, .result = StagedResult::kRows, .moved_bytes = MovedBytes, .run = RunStage};

}  // namespace heddle::ops
