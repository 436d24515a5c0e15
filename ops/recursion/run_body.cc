// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/run_body.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>

#include "core/values/scalar.h"
#include "ops/cells/move_cells.h"
#include "ops/elementwise/single_precision.h"
#include "ops/operator.h"
#include "ops/parallel.h"

namespace heddle::ops {
namespace {

// With fewer rows a product reads its right operand row by row, as it lies.
constexpr int64_t kPackedRows = 4;

// Integers below are doubles, and doubles from there on are not all integers.
constexpr double kMostWhole = 9007199254740992.0;

// A number of a node as the language has it.
Scalar NumberOf(double cell, ValueType type) {
  if (type == ValueType::kInteger) return static_cast<int64_t>(cell);
  if (type == ValueType::kBoolean) return cell != 0;
  return cell;
}

// Cells of one node's value: a number has one.
int64_t CellsOf(const ValueInfo& info) { return info.IsScalar() ? 1 : info.shape.rows * info.shape.columns; }

int64_t RowBytes(const Matrix& matrix) {
  return matrix.columns() * static_cast<int64_t>(BytesOf(matrix.element_type()));
}

const char* RowOf(const Matrix& matrix, int64_t row) {
  return reinterpret_cast<const char*>(matrix.data<char>()) + row * RowBytes(matrix);
}

char* MutableRowOf(Matrix& matrix, int64_t row) {
  return matrix.mutable_data<char>() + row * RowBytes(matrix);
}

}  // namespace

BodyRun::BodyRun(std::shared_ptr<const RecursiveBody> body, const Linearized::Class& node_class,
                 std::span<const int64_t> nodes, const KernelSource& kernels, KernelContext& context,
                 WeightCache& weights)
    : body_(std::move(body)),
      class_(node_class),
      nodes_(nodes),
      kernels_(kernels),
      context_(context),
      weights_(weights),
      slots_(body_->items.size()) {
  for (size_t id = 0; id < slots_.size(); ++id) {
    const Item& item = body_->items[id];
    Slot& slot = slots_[id];
    slot.node = item.node;
    if (item.source == Source::kOperator) slot.op = FindOperator(item.node.op);
    for (const RecursiveBody::Operand& input : item.inputs)
      if (input.value != RecursiveBody::kNone)
        slots_[static_cast<size_t>(input.value)].last_reader = static_cast<int32_t>(id);
    // What one node has is a row of a batch.
    if (item.form == Form::kSame || item.node_by_node) continue;
    slot.node.info = ValueInfo::OfMatrix({0, CellsOf(item.node.info)});
    slot.node.info.element_type = item.node.info.element_type;
  }
  for (const int32_t result : body_->results)
    slots_[static_cast<size_t>(result)].last_reader = static_cast<int32_t>(slots_.size());
}

Status BodyRun::Begin(const std::map<std::string, Value>& parameters) {
  for (size_t id = 0; id < slots_.size(); ++id)
    if (body_->items[id].stage == Stage::kOnce) HEDDLE_RETURN_IF_ERROR(RunOnce(id, parameters));
  for (size_t id = 0; id < slots_.size(); ++id) PackWeights(id);
  return RunAhead();
}

// In rows from 0 on: nodes of the class, or what is distinct of them.
Status BodyRun::RunAhead() {
  int64_t rows = class_.end - class_.begin;
  if (PaysToShare()) {
    DistinctRows distinct = FindDistinctRows(class_.numbers, rows);
    const auto count = static_cast<int64_t>(distinct.first.size());
    if (count <= rows - rows / 4) {
      shared_ = std::move(distinct);
      rows = count;
    }
  }
  for (size_t id = 0; id < slots_.size(); ++id)
    if (body_->items[id].stage == Stage::kAhead) HEDDLE_RETURN_IF_ERROR(RunItem(id, 0, rows, nullptr));
  ahead_begin_ = class_.begin;
  for (size_t id = 0; id < slots_.size(); ++id) {
    if (body_->items[id].stage != Stage::kAhead) continue;
    if (!IsReadInLevels(static_cast<int32_t>(id)))
      slots_[id].value = Value();
    else if (!shared_.first.empty())
      HEDDLE_RETURN_IF_ERROR(ExpandShared(id));
  }
  return OkStatus();
}

// Nodes whose numbers are the same, the words of their leaves, have the same values ahead. Telling them apart
// takes some ten nanoseconds a node: worth it where more than rows are looked up.
bool BodyRun::PaysToShare() const {
  return class_.given > 0 && std::any_of(body_->items.begin(), body_->items.end(), [](const Item& item) {
           return item.stage == Stage::kAhead && item.source == Source::kOperator;
         });
}

bool BodyRun::IsReadInLevels(int32_t id) const {
  if (std::find(body_->results.begin(), body_->results.end(), id) != body_->results.end()) return true;
  return std::any_of(body_->items.begin(), body_->items.end(), [&](const Item& item) {
    return item.stage == Stage::kLevel &&
           std::any_of(item.inputs.begin(), item.inputs.end(),
                       [&](const RecursiveBody::Operand& input) { return input.value == id; });
  });
}

Status BodyRun::ExpandShared(size_t id) {
  const Matrix distinct = slots_[id].value.matrix();
  const auto rows = static_cast<int64_t>(shared_.row_of.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix all, Matrix::Dense(rows, distinct.columns(), distinct.element_type()));
  const auto bytes = static_cast<size_t>(RowBytes(all));
  ParallelFor(rows, RowGrain(all.columns()), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      std::memcpy(MutableRowOf(all, i), RowOf(distinct, shared_.row_of[static_cast<size_t>(i)]), bytes);
  });
  slots_[id].value = std::move(all);
  return OkStatus();
}

// Of a product of rows with a matrix that all nodes share.
void BodyRun::PackWeights(size_t id) {
  const Item& item = body_->items[id];
  if (!item.node.Is("%*%") || item.form != Form::kRows || item.node_by_node) return;
  const Matrix& right = SlotOf(item.inputs[1].value).value.matrix();
  if (PackedWeights::Takes(right)) slots_[id].weights = weights_.Of(right);
}

Status BodyRun::RunBatch(int64_t begin, int64_t end, NodeResults* results) {
  batch_begin_ = begin;
  for (size_t id = 0; id < slots_.size(); ++id) {
    const Item& item = body_->items[id];
    if (item.stage != Stage::kLevel) continue;
    if (item.joined == RecursiveBody::kNone || slots_[id].weights == nullptr)
      HEDDLE_RETURN_IF_ERROR(RunItem(id, begin, end, results));
    else if (item.joined == static_cast<int32_t>(id))
      HEDDLE_RETURN_IF_ERROR(RunJoined(id, begin, end));
    for (const RecursiveBody::Operand& input : item.inputs) {
      if (input.value == RecursiveBody::kNone || ItemOf(input.value).stage != Stage::kLevel) continue;
      Slot& read = slots_[static_cast<size_t>(input.value)];
      if (read.last_reader == static_cast<int32_t>(id)) read.value = Value();
    }
  }
  for (size_t i = 0; i < body_->results.size(); ++i) HEDDLE_RETURN_IF_ERROR(Store(i, begin, end, results));
  return OkStatus();
}

Status BodyRun::RunItem(size_t id, int64_t begin, int64_t end, const NodeResults* results) {
  const Item& item = body_->items[id];
  if (IsCancelled(context_.cancelled)) return Cancelled("the job was cancelled");
  switch (item.source) {
    case Source::kNumber: {
      HEDDLE_ASSIGN_OR_RETURN(Matrix numbers, Numbers(item, end - begin));
      slots_[id].value = std::move(numbers);
      return OkStatus();
    }
    case Source::kLookup: {
      HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Lookup(item, end - begin));
      slots_[id].value = std::move(rows);
      return OkStatus();
    }
    case Source::kChild: {
      HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Children(item, begin, end, *results));
      slots_[id].value = std::move(rows);
      return OkStatus();
    }
    case Source::kConvert: {
      HEDDLE_ASSIGN_OR_RETURN(Matrix cells, Convert(item, begin, end));
      slots_[id].value = std::move(cells);
      return OkStatus();
    }
    case Source::kOperator:
      return item.node_by_node ? RunNodeByNode(id, begin, end) : RunRows(id, begin, end);
    case Source::kParameter:
    case Source::kLiteral: break;
  }
  return Internal("a recursive body computes a parameter at each node");
}

Status BodyRun::RunOnce(size_t id, const std::map<std::string, Value>& parameters) {
  const Item& item = body_->items[id];
  Slot& slot = slots_[id];
  if (item.source == Source::kLiteral) {
    slot.value = *item.node.FindAttribute("value");
    return OkStatus();
  }
  if (item.source == Source::kParameter) {
    const auto found = parameters.find(item.name);
    if (found == parameters.end())
      return Internal("a recursive body reads '{}', which is missing", item.name);
    slot.value = found->second;
    return OkStatus();
  }
  std::vector<const Value*> inputs;
  for (const RecursiveBody::Operand& input : item.inputs) {
    inputs.push_back(input.value == RecursiveBody::kNone ? nullptr : &SlotOf(input.value).value);
    slot.input_infos.push_back(input.value == RecursiveBody::kNone ? ValueInfo()
                                                                   : ItemOf(input.value).node.info);
  }
  return RunKernel(item.node, inputs, item.node.info.shape.rows, &slot);
}

Status BodyRun::RunKernel(const Node& node, std::span<const Value* const> inputs, int64_t rows, Slot* slot) {
  return kernels_
      .Run({.node = node,
            .phase = Phase::kWhole,
            .inputs = inputs,
            .input_infos = slot->input_infos,
            .row_end = rows,
            .total_rows = rows,
            .context = context_,
            .op = slot->op},
           {&slot->value, 1})
      .At(node.position);
}

Status BodyRun::RunRows(size_t id, int64_t begin, int64_t end) {
  const Item& item = body_->items[id];
  Slot& slot = slots_[id];
  const int64_t rows = end - begin;
  slot.node.info.shape.rows = rows;
  std::array<Value, 8> few;
  std::vector<Value> many(item.inputs.size() > few.size() ? item.inputs.size() : 0);
  Value* const values = many.empty() ? few.data() : many.data();
  std::vector<const Value*> inputs(item.inputs.size(), nullptr);
  slot.input_infos.resize(item.inputs.size());
  for (size_t i = 0; i < item.inputs.size(); ++i) {
    const RecursiveBody::Operand& input = item.inputs[i];
    if (input.value == RecursiveBody::kNone) continue;
    values[i] = ValueFor(input.value, begin, end);
    if (input.spread) {
      // Side by side each has its own columns.
      const int64_t columns =
          slot.op->fusion.use == RowUse::kCbind ? values[i].shape().columns : slot.node.info.shape.columns;
      HEDDLE_ASSIGN_OR_RETURN(values[i], Spread(values[i], {rows, columns}));
    }
    inputs[i] = &values[i];
    slot.input_infos[i] = ItemOf(input.value).node.info;
    if (values[i].IsMatrix()) {
      slot.input_infos[i] = ValueInfo::OfMatrix(values[i].matrix().shape());
      slot.input_infos[i].element_type = values[i].matrix().element_type();
    }
  }
  if (slot.weights != nullptr && rows >= kPackedRows) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix product, slot.weights->Multiply(values[0].matrix(), context_.cancelled));
    slot.value = std::move(product);
    return OkStatus();
  }
  return RunKernel(slot.node, inputs, rows, &slot);
}

// One product for several: rows do not see each other.
Status BodyRun::RunJoined(size_t first, int64_t begin, int64_t end) {
  std::vector<size_t> members;
  for (size_t id = first; id < slots_.size(); ++id)
    if (body_->items[id].joined == static_cast<int32_t>(first)) members.push_back(id);
  const int64_t rows = end - begin;
  const PackedWeights& weights = *slots_[first].weights;
  const auto left = [&](size_t member) {
    return ValueFor(body_->items[members[member]].inputs[0].value, begin, end);
  };
  const Value model = left(0);
  HEDDLE_ASSIGN_OR_RETURN(Matrix stacked,
                          Matrix::Dense(rows * static_cast<int64_t>(members.size()), model.matrix().columns(),
                                        model.matrix().element_type()));
  for (size_t member = 0; member < members.size(); ++member)
    std::memcpy(MutableRowOf(stacked, rows * static_cast<int64_t>(member)), RowOf(left(member).matrix(), 0),
                static_cast<size_t>(rows * RowBytes(stacked)));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix product, weights.Multiply(stacked, context_.cancelled));
  for (size_t member = 0; member < members.size(); ++member) {
    const auto from = rows * static_cast<int64_t>(member);
    slots_[members[member]].value = product.Rows(from, from + rows);
  }
  return OkStatus();
}

Status BodyRun::RunNodeByNode(size_t id, int64_t begin, int64_t end) {
  const Item& item = body_->items[id];
  const int64_t cells = CellsOf(item.node.info);
  HEDDLE_ASSIGN_OR_RETURN(Matrix all, Matrix::Dense(end - begin, cells, item.node.info.element_type));
  std::vector<ValueInfo> infos;
  for (const RecursiveBody::Operand& input : item.inputs)
    infos.push_back(input.value == RecursiveBody::kNone ? ValueInfo() : ItemOf(input.value).node.info);
  std::mutex mutex;
  Status failed;  // of the first node
  int64_t failed_at = end;
  ParallelFor(end - begin, 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      std::vector<Value> values(item.inputs.size());
      std::vector<const Value*> inputs(item.inputs.size(), nullptr);
      for (size_t k = 0; k < inputs.size(); ++k) {
        const int32_t input = item.inputs[k].value;
        if (input == RecursiveBody::kNone) continue;
        values[k] = ValueFor(input, begin + i, begin + i + 1);
        const Item& read = ItemOf(input);
        if (read.form == Form::kColumn)
          values[k] = NumberOf(values[k].matrix().At(0, 0), read.node.info.value_type);
        else if (read.form == Form::kRows)
          values[k] = values[k].matrix().Reshaped(read.node.info.shape.rows, read.node.info.shape.columns);
        inputs[k] = &values[k];
      }
      Value result;
      const int64_t rows = item.node.info.shape.rows;
      Status status = kernels_.Run({.node = item.node,
                                    .phase = Phase::kWhole,
                                    .inputs = inputs,
                                    .input_infos = infos,
                                    .row_end = rows,
                                    .total_rows = rows,
                                    .context = context_,
                                    .op = slots_[id].op},
                                   {&result, 1});
      if (status.ok() && result.IsMatrix() && result.matrix().IsSparse()) {
        Result<Matrix> dense = ToDense(result.matrix());
        status = dense.status();
        if (dense.ok()) result = *std::move(dense);
      }
      if (!status.ok()) {
        std::lock_guard lock(mutex);
        if (i < failed_at) failed = status, failed_at = i;
        return;
      }
      if (result.IsScalar()) {
        const double number = result.scalar().AsDouble();
        all.mutable_data<double>()[i] = number;
        if (result.scalar().IsInteger() && !(std::fabs(number) < kMostWhole)) met_large_integer_ = true;
      } else {
        std::memcpy(MutableRowOf(all, i), RowOf(result.matrix(), 0), static_cast<size_t>(RowBytes(all)));
      }
    }
  });
  slots_[id].value = std::move(all);
  return failed.At(item.node.position);
}

double BodyRun::NumberAt(int32_t index, int64_t row) const {
  const int64_t node = shared_.first.empty() ? row : shared_.first[static_cast<size_t>(row)];
  return class_.numbers[static_cast<size_t>(index * (class_.end - class_.begin) + node)];
}

Result<Matrix> BodyRun::Lookup(const Item& item, int64_t rows) const {
  const Matrix& from = SlotOf(item.inputs[0].value).value.matrix();
  HEDDLE_ASSIGN_OR_RETURN(Matrix found, Matrix::Dense(rows, from.columns(), from.element_type()));
  const auto bytes = static_cast<size_t>(RowBytes(from));
  std::atomic<int64_t> wrong{rows};
  ParallelFor(rows, RowGrain(from.columns()), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = TruncateToInteger(NumberAt(item.index, i));
      if (row >= 1 && row <= from.rows()) {
        std::memcpy(MutableRowOf(found, i), RowOf(from, row - 1), bytes);
        continue;
      }
      int64_t least = wrong.load();
      while (i < least && !wrong.compare_exchange_weak(least, i)) {
      }
    }
  });
  const int64_t row = wrong.load();
  if (row == rows) return found;
  const int64_t node = shared_.first.empty() ? row : shared_.first[static_cast<size_t>(row)];
  return FailedPrecondition("node {} reads row {} of a matrix of {} rows",
                            nodes_[static_cast<size_t>(class_.begin + node)], NumberAt(item.index, row),
                            from.rows())
      .WithNote("rows and columns are counted from 1")
      .At(item.node.position);
}

Result<Matrix> BodyRun::Numbers(const Item& item, int64_t rows) const {
  HEDDLE_ASSIGN_OR_RETURN(Matrix column, Matrix::Dense(rows, 1));
  for (int64_t i = 0; i < rows; ++i) column.mutable_data()[i] = NumberAt(item.index, i);
  return column;
}

// Floats as doubles, or the other way round.
Result<Matrix> BodyRun::Convert(const Item& item, int64_t begin, int64_t end) const {
  const Matrix given = ValueFor(item.inputs[0].value, begin, end).matrix();
  const ElementType type = item.node.info.element_type;
  if (given.element_type() == type) return given;
  return type == ElementType::kFloat64 ? Widen(given) : Narrow(given);
}

Result<Matrix> BodyRun::Children(const Item& item, int64_t begin, int64_t end,
                                 const NodeResults& results) const {
  const Matrix& all = results.rows[static_cast<size_t>(item.result)];
  const int32_t* const places =
      class_.children.data() + item.index * (class_.end - class_.begin) - class_.begin;
  // Children that stand next to each other are read where they are.
  bool is_run = true;
  for (int64_t i = begin + 1; i < end && is_run; ++i) is_run = places[i] == places[i - 1] + 1;
  if (is_run && begin < end) return all.Rows(places[begin], places[begin] + (end - begin));
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(end - begin, all.columns(), all.element_type()));
  const auto bytes = static_cast<size_t>(RowBytes(all));
  ParallelFor(end - begin, RowGrain(all.columns()), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      std::memcpy(MutableRowOf(rows, i), RowOf(all, places[begin + i]), bytes);
  });
  return rows;
}

Value BodyRun::ValueFor(int32_t id, int64_t begin, int64_t end) const {
  const Item& item = ItemOf(id);
  const Value& value = SlotOf(id).value;
  if (item.form == Form::kSame) return value;
  // A level's value begins with the batch that is computed; one made ahead, with the class.
  const Matrix& rows = value.matrix();
  if (rows.rows() == end - begin) return value;
  const int64_t first = item.stage == Stage::kAhead ? ahead_begin_ : batch_begin_;
  return rows.Rows(begin - first, end - first);
}

Result<Value> BodyRun::Spread(const Value& value, Shape shape) const {
  if (value.IsScalar()) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix filled,
                            FilledMatrix(shape.rows, shape.columns, value.scalar().AsDouble()));
    return Value(std::move(filled));
  }
  const Matrix& given = value.matrix();
  if (given.shape() == shape) return value;
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells, Matrix::Dense(shape.rows, shape.columns, given.element_type()));
  const auto size = static_cast<size_t>(BytesOf(given.element_type()));
  for (int64_t i = 0; i < shape.rows; ++i) {
    const char* const row = RowOf(given, given.rows() == 1 ? 0 : i);
    char* const out = MutableRowOf(cells, i);
    if (given.columns() == shape.columns)
      std::memcpy(out, row, static_cast<size_t>(RowBytes(cells)));
    else
      for (int64_t j = 0; j < shape.columns; ++j) std::memcpy(out + static_cast<size_t>(j) * size, row, size);
  }
  return Value(std::move(cells));
}

Status BodyRun::Store(size_t result, int64_t begin, int64_t end, NodeResults* results) const {
  Matrix& all = results->rows[result];
  const int32_t id = body_->results[result];
  const Value value = ValueFor(id, begin, end);
  const auto bytes = static_cast<size_t>(RowBytes(all));
  if (ItemOf(id).form == Form::kSame && value.IsScalar()) {
    std::fill(all.mutable_data<double>() + begin, all.mutable_data<double>() + end,
              value.scalar().AsDouble());
  } else if (ItemOf(id).form == Form::kSame) {
    for (int64_t place = begin; place < end; ++place)
      std::memcpy(MutableRowOf(all, place), RowOf(value.matrix(), 0), bytes);
  } else {
    std::memcpy(MutableRowOf(all, begin), RowOf(value.matrix(), 0), bytes * static_cast<size_t>(end - begin));
  }
  return OkStatus();
}

}  // namespace heddle::ops
