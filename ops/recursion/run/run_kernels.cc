// SPDX-License-Identifier: Apache-2.0
// Operators of a body by their own kernels: on all rows where the rows do not see each other, else node by
// node, each with the value that it has in the interpreter.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>

#include "ops/base/operator.h"
#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/single_precision.h"
#include "ops/recursion/run/run_body.h"

namespace heddle::ops {
namespace {

// Integers below are doubles, and doubles from there on are not all integers.
constexpr double kMostWhole = 9007199254740992.0;

// A number of a node as the language has it.
Scalar NumberOf(double cell, ValueType type) {
  if (type == ValueType::kInteger && std::fabs(cell) < kMostWhole) return static_cast<int64_t>(cell);
  if (type == ValueType::kBoolean) return cell != 0;
  return cell;
}

// As many cells as the shape has, of a value that is repeated along rows or columns.
Result<Value> Spread(const Value& operand, Shape shape) {
  if (operand.IsScalar()) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix cells,
                            FilledMatrix(shape.rows, shape.columns, operand.scalar().AsDouble()));
    return Value(std::move(cells));
  }
  const Matrix& given = operand.matrix();
  if (given.shape() == shape) return operand;
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells, Matrix::Dense(shape.rows, shape.columns, given.element_type()));
  const auto size = static_cast<size_t>(BytesOf(given.element_type()));
  const size_t given_bytes = size * static_cast<size_t>(given.columns());
  for (int64_t i = 0; i < shape.rows; ++i) {
    const char* const row =
        given.data<char>() + (given.rows() == 1 ? 0 : static_cast<size_t>(i) * given_bytes);
    char* const out = cells.mutable_data<char>() + static_cast<size_t>(i * shape.columns) * size;
    if (given.columns() == shape.columns)
      std::memcpy(out, row, given_bytes);
    else
      for (int64_t j = 0; j < shape.columns; ++j) std::memcpy(out + static_cast<size_t>(j) * size, row, size);
  }
  return Value(std::move(cells));
}

ValueInfo InfoOf(const Matrix& matrix) {
  ValueInfo info = ValueInfo::OfMatrix(matrix.shape());
  info.element_type = matrix.element_type();
  return info;
}

}  // namespace

Result<Value> BodyRun::Call(int32_t id, const Node& node, std::span<const Value* const> inputs,
                            std::span<const ValueInfo> infos, int64_t rows) const {
  Value result;
  HEDDLE_RETURN_IF_ERROR(kernels_
                             .Run({.node = node,
                                   .phase = Phase::kWhole,
                                   .inputs = inputs,
                                   .input_infos = infos,
                                   .row_end = rows,
                                   .total_rows = rows,
                                   .context = context_,
                                   .op = FindOperator(ValueAt(id).node.op)},
                                  {&result, 1})
                             .At(node.position));
  HEDDLE_ASSIGN_OR_RETURN(result, Decoded(std::move(result)));
  // Rows are of the type that inference tells: a kernel that repeats cells gives them as it has got them, and
  // a number of a node is a double in single precision, too.
  if (!result.IsMatrix() || result.matrix().element_type() == node.info.element_type) return result;
  HEDDLE_ASSIGN_OR_RETURN(result, node.info.element_type == ElementType::kFloat32 ? Narrow(result.matrix())
                                                                                  : Widen(result.matrix()));
  return result;
}

// The rows of the chunk as a matrix of their own.
Result<Value> BodyRun::ValueOf(int32_t id, const Chunk& chunk) const {
  const BodyValue& value = ValueAt(id);
  if (value.layout == Layout::kShared) return shared_[static_cast<size_t>(id)];
  const Value& made = chunk.workspace.kernel_results[static_cast<size_t>(id)];
  if (made.IsMatrix()) return made;
  const ElementType type = value.node.info.IsScalar() ? ElementType::kFloat64 : value.node.info.element_type;
  const int64_t cells = CellsOf(value);
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(chunk.rows(), cells, type));
  const auto size = static_cast<int64_t>(BytesOf(type));
  const ValueRows& from = RowsOf(id, chunk);
  for (int64_t i = 0; i < chunk.rows(); ++i)
    std::memcpy(rows.mutable_data<char>() + i * cells * size, from.cells + i * from.stride * size,
                static_cast<size_t>(cells * size));
  return Value(std::move(rows));
}

Status BodyRun::RunKernel(int32_t id, const Chunk& chunk) const {
  const BodyValue& value = ValueAt(id);
  Value result;
  HEDDLE_RETURN_IF_ERROR(value.node_by_node ? RunNodeByNode(id, chunk, &result)
                                            : RunRowsByKernel(id, chunk, &result));
  const Matrix& rows = result.matrix();
  const auto size = static_cast<int64_t>(BytesOf(rows.element_type()));
  const ValueRows& to = RowsOf(id, chunk);
  for (int64_t i = 0; i < chunk.rows(); ++i)
    std::memcpy(to.cells + i * to.stride * size, rows.data<char>() + i * rows.columns() * size,
                static_cast<size_t>(rows.columns() * size));
  chunk.workspace.kernel_results[static_cast<size_t>(id)] = std::move(result);
  return OkStatus();
}

Status BodyRun::RunRowsByKernel(int32_t id, const Chunk& chunk, Value* result) const {
  const BodyValue& value = ValueAt(id);
  const int64_t rows = chunk.rows();
  Node node = value.node;
  node.info = ValueInfo::OfMatrix({rows, CellsOf(value)});
  node.info.element_type = value.node.info.IsScalar() ? ElementType::kFloat64 : value.node.info.element_type;
  const bool side_by_side = RowUseOf(node) == RowUse::kCbind;
  std::vector<Value> operands(value.inputs.size());
  std::vector<const Value*> inputs(value.inputs.size(), nullptr);
  std::vector<ValueInfo> infos(value.inputs.size());
  for (size_t i = 0; i < value.inputs.size(); ++i) {
    const BodyValue::Operand& input = value.inputs[i];
    if (input.id == BodyValue::kNone) continue;
    HEDDLE_ASSIGN_OR_RETURN(operands[i], ValueOf(input.id, chunk));
    if (input.spread) {
      // Side by side each has its own columns.
      const int64_t columns = side_by_side ? operands[i].shape().columns : node.info.shape.columns;
      HEDDLE_ASSIGN_OR_RETURN(operands[i], Spread(operands[i], {rows, columns}));
    }
    inputs[i] = &operands[i];
    infos[i] = operands[i].IsMatrix() ? InfoOf(operands[i].matrix()) : ValueAt(input.id).node.info;
  }
  HEDDLE_ASSIGN_OR_RETURN(*result, Call(id, node, inputs, infos, rows));
  return OkStatus();
}

Status BodyRun::RunNodeByNode(int32_t id, const Chunk& chunk, Value* result) const {
  const BodyValue& value = ValueAt(id);
  const ElementType type = value.node.info.IsScalar() ? ElementType::kFloat64 : value.node.info.element_type;
  const int64_t cells = CellsOf(value);
  HEDDLE_ASSIGN_OR_RETURN(Matrix all, Matrix::Dense(chunk.rows(), cells, type));
  std::vector<ValueInfo> infos;
  std::vector<Value> rows;
  for (const BodyValue::Operand& input : value.inputs) {
    const bool is_left_out = input.id == BodyValue::kNone;
    infos.push_back(is_left_out ? ValueInfo() : ValueAt(input.id).node.info);
    rows.emplace_back();
    if (is_left_out) continue;
    HEDDLE_ASSIGN_OR_RETURN(rows.back(), ValueOf(input.id, chunk));
  }
  std::mutex mutex;
  Status failed;  // of the first node
  int64_t failed_at = chunk.rows();
  ParallelFor(chunk.rows(), 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to && !IsCancelled(context_.cancelled); ++i) {
      std::vector<Value> operands(value.inputs.size());
      std::vector<const Value*> inputs(value.inputs.size(), nullptr);
      for (size_t k = 0; k < inputs.size(); ++k) {
        const int32_t input = value.inputs[k].id;
        if (input == BodyValue::kNone) continue;
        const BodyValue& read = ValueAt(input);
        if (read.layout == Layout::kShared)
          operands[k] = rows[k];
        else if (read.layout == Layout::kColumn)
          operands[k] = NumberOf(rows[k].matrix().At(i, 0), read.node.info.value_type);
        else
          operands[k] = rows[k].matrix().Rows(i, i + 1).Reshaped(read.node.info.shape.rows,
                                                                 read.node.info.shape.columns);
        inputs[k] = &operands[k];
      }
      Result<Value> of_node = Call(id, value.node, inputs, infos, value.node.info.shape.rows);
      if (of_node.ok() && of_node->IsMatrix()) {
        Result<Matrix> dense = ToDense(of_node->matrix());
        of_node = dense.ok() ? Result<Value>(*std::move(dense)) : Result<Value>(dense.status());
      }
      if (!of_node.ok()) {
        std::lock_guard lock(mutex);
        if (i < failed_at) failed = of_node.status(), failed_at = i;
        return;
      }
      if (of_node->IsScalar()) {
        const double number = of_node->scalar().AsDouble();
        all.mutable_data<double>()[i] = number;
        if (of_node->scalar().IsInteger() && !(std::fabs(number) < kMostWhole)) met_large_integer_ = true;
      } else {
        std::memcpy(all.mutable_data<char>() + i * cells * static_cast<int64_t>(BytesOf(type)),
                    of_node->matrix().data<char>(),
                    static_cast<size_t>(cells * static_cast<int64_t>(BytesOf(type))));
      }
    }
  });
  if (IsCancelled(context_.cancelled)) return Cancelled("the job was cancelled");
  *result = std::move(all);
  return failed;
}

}  // namespace heddle::ops
