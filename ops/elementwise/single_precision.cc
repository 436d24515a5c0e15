// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/single_precision.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "core/values/column_groups.h"
#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/base/stages.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/elementwise_sparse.h"
#include "ops/simd/cellwise/elementwise.h"

namespace heddle::ops {
namespace {

// Cells of one task of a conversion.
constexpr int64_t kGrainCells = int64_t{1} << 15;
// Cells of a panel: its copy stays in the last-level cache.
constexpr int64_t kPanelCells = int64_t{1} << 20;
// rand makes blocks of so many rows; a panel that begins within one would make its first rows twice.
constexpr int64_t kGeneratedRows = 1000;

void WidenInto(const float* in, int64_t cells, double* out) {
  const WidenKernel widen = SelectedElementwiseKernels().widen;
  ParallelFor(cells, kGrainCells,
              [&](int64_t begin, int64_t end) { widen(in + begin, out + begin, end - begin); });
}

void NarrowInto(const double* in, int64_t cells, float* out) {
  const NarrowKernel narrow = SelectedElementwiseKernels().narrow;
  ParallelFor(cells, kGrainCells,
              [&](int64_t begin, int64_t end) { narrow(in + begin, out + begin, end - begin); });
}

bool HoldsSingles(const Value* value) {
  return value != nullptr && value->IsMatrix() && value->matrix().element_type() == ElementType::kFloat32;
}

// First entry of a CSR matrix, which of a row panel is not 0.
int64_t FirstEntry(const Matrix& sparse) { return sparse.rows() == 0 ? 0 : sparse.row_offsets()[0]; }

Result<Matrix> NarrowSparse(const Matrix& matrix) {
  const double* const values = matrix.values() + FirstEntry(matrix);
  std::atomic<bool> vanishes = false;
  ParallelFor(matrix.stored(), kGrainCells, [&](int64_t begin, int64_t end) {
    if (std::any_of(values + begin, values + end, [](double x) { return static_cast<float>(x) == 0; }))
      vanishes = true;
  });
  if (vanishes) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix rounded, SamePattern(matrix));
    SelectedElementwiseKernels().Of(UnaryCode::kRoundToSingle)(values, rounded.mutable_values(),
                                                               matrix.stored(), false);
    HEDDLE_ASSIGN_OR_RETURN(rounded, DropZerosOfOwn(std::move(rounded)));
    return NarrowSparse(rounded);
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SamePattern(matrix, ElementType::kFloat32));
  NarrowInto(values, matrix.stored(), result.mutable_values<float>());
  return result;
}

// The inputs of a call with doubles for floats. The same value twice is one copy.
class WidenedInputs {
 public:
  // Input i of `call`, of which rows [begin, end) if it is cut along rows.
  Status Add(const KernelCall& call, size_t i) { return Add(call.inputs[i], call.inputs[i]); }
  Status AddRows(const KernelCall& call, size_t i, int64_t begin, int64_t end) {
    if (copies_.contains(call.inputs[i])) return Add(call.inputs[i], nullptr);
    const Value rows(call.inputs[i]->matrix().Rows(begin, end));
    return Add(call.inputs[i], &rows);
  }
  std::span<const Value* const> pointers() const { return pointers_; }
  size_t size() const { return pointers_.size(); }

 private:
  Status Add(const Value* key, const Value* value) {
    if (value == nullptr && !copies_.contains(key)) {
      pointers_.push_back(nullptr);
      return OkStatus();
    }
    auto found = copies_.find(key);
    if (found == copies_.end()) {
      Value copy = *value;
      if (HoldsSingles(value)) {
        HEDDLE_ASSIGN_OR_RETURN(Matrix widened, Widen(value->matrix()));
        copy = Value(std::move(widened));
      }
      found = copies_.emplace(key, std::make_unique<Value>(std::move(copy))).first;
    }
    pointers_.push_back(found->second.get());
    return OkStatus();
  }

  std::map<const Value*, std::unique_ptr<Value>> copies_;
  std::vector<const Value*> pointers_;
};

// The cells of dictionaries are rounded, of those that several groups share once. Where rounding makes a zero
// of a value of the format kSparse, it has no sign.
Result<Matrix> NarrowGroups(const Matrix& matrix, Format format) {
  auto groups = std::make_shared<ColumnGroups>(matrix.groups());
  groups->element_type = ElementType::kFloat32;
  std::map<const void*, Matrix> narrowed;
  for (ColumnGroup& group : groups->groups) {
    if (group.encoding == Encoding::kEmpty) continue;
    Matrix& cells = narrowed[group.dictionary.data<void>()];
    if (cells.shape() != group.dictionary.shape()) {
      HEDDLE_ASSIGN_OR_RETURN(cells, Narrow(group.dictionary));
      float* const numbers = cells.mutable_data<float>();
      for (int64_t k = 0; format == Format::kSparse && cells.IsDense() && k < cells.cells(); ++k)
        numbers[k] += 0.0F;
    }
    group.dictionary = cells;
  }
  return Matrix::OfGroups(std::move(groups)).Rows(matrix.first_row(), matrix.first_row() + matrix.rows());
}

Status NarrowResults(const KernelCall& call, std::span<Value> results) {
  if (call.phase == Phase::kPartial) return OkStatus();
  const bool is_between = call.phase == Phase::kStage &&
                          call.stage->stage + 1 < static_cast<int32_t>(call.stage->form.stages.size());
  if (is_between) return OkStatus();
  const std::span<const ValueInfo> infos = ResultsOf(call.node);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].IsMatrix() || infos[i].element_type == ElementType::kFloat64) continue;
    const Matrix& made = results[i].matrix();
    const bool is_narrowed = made.IsCompressed() && made.element_type() == ElementType::kFloat64;
    HEDDLE_ASSIGN_OR_RETURN(Matrix narrow, is_narrowed ? NarrowGroups(made, infos[i].format) : Narrow(made));
    results[i] = Value(std::move(narrow));
  }
  return OkStatus();
}

Status RunWhole(const Operator& op, const KernelCall& call, std::span<Value> results) {
  WidenedInputs inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) HEDDLE_RETURN_IF_ERROR(inputs.Add(call, i));
  HEDDLE_RETURN_IF_ERROR(RunOperator(op,
                                     {.node = call.node,
                                      .phase = call.phase,
                                      .inputs = inputs.pointers(),
                                      .input_infos = call.input_infos,
                                      .row_begin = call.row_begin,
                                      .row_end = call.row_end,
                                      .total_rows = call.total_rows,
                                      .context = call.context,
                                      .stage = call.stage},
                                     results));
  return NarrowResults(call, results);
}

// A call that is cut into panels of rows.
class PanelRun {
 public:
  PanelRun(const Operator& op, const KernelCall& call)
      : op_(op), call_(call), rule_(RowRuleOf(call.node, call.input_infos)) {}

  // Finds out how to cut; false where there is nothing to gain or no way.
  bool Prepare() {
    if (call_.phase == Phase::kFinish || call_.phase == Phase::kStage) return false;
    if (rule_ == RowRule::kWhole || op_.run == nullptr) return false;
    const bool makes_rows = rule_ != RowRule::kReduce;
    if (makes_rows && (!call_.node.info.IsMatrix() || call_.node.info.format == Format::kSparse))
      return false;
    // A read finds its rows by looking through the file.
    if (rule_ == RowRule::kGenerate && op_.may_fail) return false;
    int64_t widest = makes_rows ? call_.node.info.shape.columns : 1;
    rows_ = makes_rows ? call_.row_end - call_.row_begin : -1;
    by_rows_.assign(call_.inputs.size(), false);
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const Value* const input = call_.inputs[i];
      if (input != nullptr && input->IsFrame()) return false;  // Only matrices are cut into panels.
      if (input == nullptr || !input->IsMatrix() || rule_ == RowRule::kGenerate) continue;
      if (InputUseOf(call_.node, call_.input_infos, static_cast<int>(i)) != InputUse::kRows) continue;
      if (input->matrix().IsSparse()) return false;
      if (rows_ < 0) rows_ = input->matrix().rows();
      if (rows_ != input->matrix().rows()) return false;
      widest = std::max(widest, input->matrix().columns());
      by_rows_[i] = true;
    }
    if (call_.row_end - call_.row_begin != rows_) return false;
    const int64_t unit = rule_ == RowRule::kGenerate ? kGeneratedRows : Granule(call_.total_rows);
    height_ = std::max<int64_t>(1, kPanelCells / std::max<int64_t>(widest, 1) / unit) * unit;
    return rows_ > height_ && call_.row_begin % unit == 0;
  }

  Result<Value> Run() {
    WidenedInputs whole;
    for (size_t i = 0; i < call_.inputs.size(); ++i)
      if (!by_rows_[i]) HEDDLE_RETURN_IF_ERROR(whole.Add(call_, i));
    if (rule_ == RowRule::kReduce) return Reduce(whole);
    const int64_t columns = call_.node.info.shape.columns;
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(rows_, columns, ElementType::kFloat32));
    for (int64_t row = 0; row < rows_; row += height_) {
      HEDDLE_ASSIGN_OR_RETURN(const Value panel, RunPanel(call_.phase, whole, row));
      const Matrix& cells = panel.matrix();
      if (cells.IsSparse() || cells.columns() != columns)
        return Internal("{}: a panel of other cells than its result", call_.node.op);
      NarrowInto(cells.data(), cells.cells(), result.mutable_data<float>() + row * columns);
    }
    return Value(std::move(result));
  }

 private:
  Result<Value> RunPanel(Phase phase, const WidenedInputs& whole, int64_t row) {
    if (IsCancelled(call_.context.cancelled)) return Cancelled("cancelled");
    const int64_t end = std::min(rows_, row + height_);
    WidenedInputs panel;
    std::vector<const Value*> inputs;
    size_t next_whole = 0, next_panel = 0;
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      if (!by_rows_[i]) {
        inputs.push_back(whole.pointers()[next_whole++]);
        continue;
      }
      HEDDLE_RETURN_IF_ERROR(panel.AddRows(call_, i, row, end));
      inputs.push_back(panel.pointers()[next_panel++]);
    }
    return op_.run({.node = call_.node,
                    .phase = phase,
                    .inputs = inputs,
                    .input_infos = call_.input_infos,
                    .row_begin = call_.row_begin + row,
                    .row_end = call_.row_begin + end,
                    .total_rows = call_.total_rows,
                    .context = call_.context});
  }

  // The nodes of all panels' trees together are nodes of the whole tree.
  Result<Value> Reduce(const WidenedInputs& whole) {
    std::vector<Matrix> lists;
    int64_t count = 0;
    for (int64_t row = 0; row < rows_; row += height_) {
      HEDDLE_ASSIGN_OR_RETURN(const Value nodes, RunPanel(Phase::kPartial, whole, row));
      HEDDLE_ASSIGN_OR_RETURN(Matrix list, AsDense(nodes.matrix()));
      count += list.rows();
      lists.push_back(std::move(list));
    }
    HEDDLE_ASSIGN_OR_RETURN(Matrix all, Matrix::Dense(count, lists[0].columns()));
    double* to = all.mutable_data();
    for (const Matrix& list : lists) to = std::copy_n(list.data(), list.cells(), to);
    Value nodes(std::move(all));
    if (call_.phase == Phase::kPartial) return nodes;
    const Value* const pointer = &nodes;
    HEDDLE_ASSIGN_OR_RETURN(Value result, op_.run({.node = call_.node,
                                                   .phase = Phase::kFinish,
                                                   .inputs = {&pointer, 1},
                                                   .input_infos = call_.input_infos,
                                                   .row_begin = 0,
                                                   .row_end = call_.total_rows,
                                                   .total_rows = call_.total_rows,
                                                   .context = call_.context}));
    HEDDLE_RETURN_IF_ERROR(NarrowResults(call_, {&result, 1}));
    return result;
  }

  const Operator& op_;
  const KernelCall& call_;
  const RowRule rule_;
  std::vector<bool> by_rows_;  // Of each input.
  int64_t rows_ = 0;           // Of this call.
  int64_t height_ = 0;         // Of a panel.
};

}  // namespace

Result<Matrix> Widen(const Matrix& matrix) {
  if (matrix.element_type() == ElementType::kFloat64) return matrix;
  if (matrix.IsSparse()) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, SamePattern(matrix));
    WidenInto(matrix.values<float>() + FirstEntry(matrix), matrix.stored(), result.mutable_values());
    return result;
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(matrix.rows(), matrix.columns()));
  WidenInto(matrix.data<float>(), matrix.cells(), result.mutable_data());
  return result;
}

Result<Matrix> Narrow(const Matrix& matrix) {
  if (matrix.element_type() == ElementType::kFloat32) return matrix;
  if (matrix.IsSparse()) return NarrowSparse(matrix);
  HEDDLE_ASSIGN_OR_RETURN(Matrix result,
                          Matrix::Dense(matrix.rows(), matrix.columns(), ElementType::kFloat32));
  NarrowInto(matrix.data(), matrix.cells(), result.mutable_data<float>());
  return result;
}

bool ReadsSingles(const KernelCall& call) {
  return std::any_of(call.inputs.begin(), call.inputs.end(), HoldsSingles);
}

bool HasSingles(const KernelCall& call) {
  const std::span<const ValueInfo> results = ResultsOf(call.node);
  return ReadsSingles(call) || std::any_of(results.begin(), results.end(), [](const ValueInfo& result) {
           return result.element_type == ElementType::kFloat32;
         });
}

Status RunWidened(const Operator& op, const KernelCall& call, std::span<Value> results) {
  PanelRun panels(op, call);
  if (!panels.Prepare()) return RunWhole(op, call, results);
  HEDDLE_ASSIGN_OR_RETURN(results[0], panels.Run());
  return OkStatus();
}

}  // namespace heddle::ops
