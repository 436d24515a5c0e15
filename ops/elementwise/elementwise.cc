// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise.h"

#include <algorithm>
#include <array>

#include "core/text/double_text.h"
#include "ops/base/broadcast.h"
#include "ops/base/columns.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/elementwise_dense.h"
#include "ops/elementwise/elementwise_single.h"
#include "ops/elementwise/elementwise_sparse.h"
#include "ops/elementwise/single_precision.h"
#include "ops/simd/cellwise/elementwise_codes.h"

// Kernels and inference of cell-wise operators, which are listed in cell_operators.cc. Binary ones broadcast
// as language reference 2.4 says: the right operand may be a vector. Shapes, formats and special values:
// docs/numerics.md, section 7. Between scalars the same names are ops/scalar/evaluate_scalar.cc.
namespace heddle::ops {
namespace {

bool IsLeftOut(const ValueInfo& info) { return info.data_type == DataType::kUnknown; }

// How many inputs were given: "log" may leave out its base.
size_t Given(std::span<const ValueInfo> inputs) {
  size_t count = inputs.size();
  while (count > 1 && IsLeftOut(inputs[count - 1])) --count;
  return count;
}

// Frames and lists do not mix with matrices, and neither do strings but those that name a number: the pass
// "cell-operands" converts them.
Status CheckOperands(std::string_view op, const InferContext& context) {
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const ValueInfo& input = context.inputs[i];
    if (!input.IsMatrix() && !input.IsScalar())
      return InvalidArgument("{}: operands are matrices and scalars, not a {}", op, Name(input.data_type));
    const Scalar* known = i < context.scalars.size() ? context.scalars[i] : nullptr;
    if (known != nullptr && known->IsString() && !ParseDouble(known->AsString()))
      return InvalidArgument("{}: a string cannot be combined with a matrix", op);
  }
  return OkStatus();
}

bool HasMatrix(std::span<const ValueInfo> inputs) {
  for (const ValueInfo& input : inputs)
    if (input.IsMatrix()) return true;
  return false;
}

Result<ValueInfo> InferScalar(const InferContext& context) {
  std::array<ValueType, 3> types;
  const size_t count = Given(context.inputs);
  for (size_t i = 0; i < count; ++i) {
    if (!context.inputs[i].IsScalar())
      return InvalidArgument("{}: operands are matrices and scalars, not a {}", context.node.op,
                             Name(context.inputs[i].data_type));
    types[i] = context.inputs[i].value_type;
  }
  HEDDLE_ASSIGN_OR_RETURN(const ValueType type,
                          ScalarResultType(context.node.op, std::span(types.data(), count)));
  return ValueInfo::OfScalar(type);
}

}  // namespace

Result<ValueInfo> InferBinary(const InferContext& context) {
  if (!HasMatrix(context.inputs)) return InferScalar(context);
  HEDDLE_RETURN_IF_ERROR(CheckOperands(context.node.op, context));
  const ValueInfo& a = context.inputs[0];
  const ValueInfo& b = context.inputs[1];
  const bool is_outer = context.node.FindAttribute(kOuter) != nullptr;
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, is_outer ? OuterShape(context.node.op, a, b)
                                                      : BroadcastShape(context.node.op, a, b));
  const std::optional<BinaryCode> code = FindBinaryCode(context.node.op);
  HEDDLE_CHECK(code.has_value(), "every binary operator has a kernel");
  const auto known = [&](size_t i) {
    const Scalar* scalar = i < context.scalars.size() ? context.scalars[i] : nullptr;
    return scalar == nullptr || scalar->IsString() ? nullptr : scalar;
  };
  return ValueInfo::OfMatrix(shape, BinaryFormat(*code, a, b, known(0), known(1)));
}

Result<ValueInfo> InferUnary(const InferContext& context) {
  if (Given(context.inputs) == 2) return InferBinary(context);
  if (!HasMatrix(context.inputs)) return InferScalar(context);
  const std::optional<UnaryCode> code = FindUnaryCode(context.node.op);
  HEDDLE_CHECK(code.has_value(), "every unary operator has a kernel");
  return ValueInfo::OfMatrix(context.inputs[0].shape, UnaryFormat(*code, context.inputs[0]));
}

namespace {

// "3x4 and 3x5", of those that are matrices.
std::string ShapesOf(std::span<const ValueInfo> inputs) {
  std::string text;
  for (size_t i = 0, count = 0; i < inputs.size(); ++i) {
    if (!inputs[i].IsMatrix()) continue;
    const bool is_last = std::none_of(inputs.begin() + static_cast<ptrdiff_t>(i) + 1, inputs.end(),
                                      [](const ValueInfo& other) { return other.IsMatrix(); });
    text += fmt::format("{}{}", count++ == 0 ? "" : is_last ? " and " : ", ", inputs[i].shape);
  }
  return text;
}

}  // namespace

Result<ValueInfo> InferSelect(const InferContext& context) {
  if (!HasMatrix(context.inputs)) {
    HEDDLE_ASSIGN_OR_RETURN(const ValueInfo info, InferScalar(context));
    const Scalar* const condition = context.scalars.empty() ? nullptr : context.scalars[0];
    if (condition == nullptr || condition->IsString()) return info;
    return ValueInfo::OfScalar(context.inputs[condition->AsDouble() != 0 ? 1 : 2].value_type);
  }
  HEDDLE_RETURN_IF_ERROR(CheckOperands("ifelse", context));
  Shape shape;
  for (const ValueInfo& input : context.inputs) {
    if (!input.IsMatrix()) continue;
    for (int64_t Shape::*size : {&Shape::rows, &Shape::columns}) {
      if (shape.*size >= 0 && input.shape.*size >= 0 && shape.*size != input.shape.*size)
        return InvalidArgument("ifelse: all matrices must have the same shape: {}", ShapesOf(context.inputs));
      if (shape.*size < 0) shape.*size = input.shape.*size;
    }
  }
  return ValueInfo::OfMatrix(shape, SelectFormat(context.inputs, context.scalars));
}

RowRule RowRuleOfCells(const Node&, std::span<const ValueInfo> inputs) {
  return HasMatrix(inputs) ? RowRule::kRowWise : RowRule::kWhole;
}

// The first matrix has as many rows as the result; a row vector on the right has one and is needed whole.
InputUse UseOfCells(const Node&, std::span<const ValueInfo> inputs, int i) {
  const ValueInfo& input = inputs[static_cast<size_t>(i)];
  if (!input.IsMatrix()) return InputUse::kWhole;
  for (const ValueInfo& first : inputs) {
    if (!first.IsMatrix()) continue;
    return first.shape.rows > 1 && input.shape.rows == first.shape.rows ? InputUse::kRows : InputUse::kWhole;
  }
  return InputUse::kWhole;
}

// A column vector is needed whole, a row vector is read by columns.
constexpr StagedForm kCellColumns = ByColumns(
    ResultColumns, [](const Node& node, std::span<const ValueInfo>) { return node.info.IsMatrix(); });

namespace {

Result<Value> RunScalar(const KernelCall& call) {
  std::array<const Scalar*, 3> scalars = {};
  for (size_t i = 0; i < call.inputs.size(); ++i)
    scalars[i] = call.inputs[i] == nullptr ? nullptr : &call.inputs[i]->scalar();
  HEDDLE_ASSIGN_OR_RETURN(Scalar result,
                          EvaluateScalar(call.node, std::span(scalars.data(), call.inputs.size())));
  return Value(std::move(result));
}

// The operand in the storage that its format calls for.
Result<Operand> MakeOperand(const KernelCall& call, size_t i, Pattern pattern) {
  Operand operand;
  operand.pattern = pattern;
  const Value& value = *call.inputs[i];
  if (value.IsScalar() || pattern == Pattern::kScalar) {
    operand.pattern = Pattern::kScalar;
    operand.scalar = value.IsScalar() ? value.scalar().AsDouble() : value.matrix().At(0, 0);
    return operand;
  }
  operand.matrix = value.matrix();
  if (call.input_infos[i].format == Format::kSparse) {
    HEDDLE_ASSIGN_OR_RETURN(operand.matrix, AsSparse(operand.matrix));
  }
  return operand;
}

// The result in the storage that the node's format calls for.
Result<Value> Finish(const KernelCall& call, Result<Matrix> result) {
  if (!result.ok()) return result.status();
  if (call.node.info.format == Format::kSparse)
    result = AsSparse(*result);
  else
    result = AsDense(*result);
  if (!result.ok()) return result.status();
  return Value(*std::move(result));
}

}  // namespace

// Floats are computed as they are where all is dense.
bool TakesSingleCells(const KernelCall& call) {
  if (!ReadsSingles(call)) return true;
  if (call.node.info.format == Format::kSparse) return false;
  return std::none_of(call.input_infos.begin(), call.input_infos.end(), [](const ValueInfo& input) {
    return input.IsMatrix() && input.format == Format::kSparse;
  });
}

namespace {

// Floats of a call; `operands` are as the operator's `run` has them.
Result<Value> RunSingle(const KernelCall& call, const RegionNode& op, std::span<Operand> operands,
                        Shape shape) {
  for (Operand& operand : operands)
    if (operand.pattern != Pattern::kScalar) {
      HEDDLE_ASSIGN_OR_RETURN(operand.matrix, AsDense(operand.matrix));
    }
  HEDDLE_ASSIGN_OR_RETURN(Matrix result,
                          SingleCells(op, operands, shape.rows, shape.columns, call.context.cancelled));
  return Value(std::move(result));
}

}  // namespace

Result<Value> RunBinary(const KernelCall& call) {
  if (!HasMatrix(call.input_infos)) return RunScalar(call);
  const ValueInfo& left = call.input_infos[0];
  const ValueInfo& right = call.input_infos[1];
  const BinaryCode code = *FindBinaryCode(call.node.op);
  const Patterns patterns = PatternsOf(left, right);
  HEDDLE_ASSIGN_OR_RETURN(const Operand a, MakeOperand(call, 0, patterns.left));
  HEDDLE_ASSIGN_OR_RETURN(const Operand b, MakeOperand(call, 1, patterns.right));
  const int64_t rows = left.IsMatrix() ? a.matrix.rows() : b.matrix.rows();
  const int64_t columns = patterns.left == Pattern::kCells ? a.matrix.columns() : b.matrix.columns();
  if (ReadsSingles(call)) {
    std::array operands = {a, b};
    return RunSingle(call, {.op = RegionOp::kBinary, .binary = code}, operands, {rows, columns});
  }
  const bool sparse = call.node.info.format == Format::kSparse;
  return Finish(call, sparse ? SparseBinary(code, a, b, rows, columns, call.context.cancelled)
                             : DenseBinary(code, a, b, rows, columns, call.context.cancelled));
}

Result<Value> RunUnary(const KernelCall& call) {
  if (Given(call.input_infos) == 2) return RunBinary(call);
  if (!HasMatrix(call.input_infos)) return RunScalar(call);
  // Cells that were widened for this are floats all the same.
  const UnaryCode code = call.node.info.element_type == ElementType::kFloat32
                             ? InSingles(*FindUnaryCode(call.node.op))
                             : *FindUnaryCode(call.node.op);
  HEDDLE_ASSIGN_OR_RETURN(const Operand x, MakeOperand(call, 0, Pattern::kCells));
  if (ReadsSingles(call)) {
    std::array operands = {x};
    return RunSingle(call, {.op = RegionOp::kUnary, .unary = code}, operands, x.matrix.shape());
  }
  const bool sparse = UnaryFormat(code, call.input_infos[0]) == Format::kSparse;
  return Finish(call,
                sparse ? SparseUnary(code, x.matrix) : DenseUnary(code, x.matrix, call.context.cancelled));
}

Result<Value> RunSelect(const KernelCall& call) {
  if (!HasMatrix(call.input_infos)) return RunScalar(call);
  std::array<Operand, 3> operands;
  Shape shape;
  for (size_t i = 0; i < 3; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(operands[i], MakeOperand(call, i, Pattern::kCells));
    if (call.inputs[i]->IsMatrix()) shape = operands[i].matrix.shape();
  }
  if (ReadsSingles(call)) return RunSingle(call, {.op = RegionOp::kSelect}, operands, shape);
  const auto& [condition, a, b] = operands;
  if (call.node.info.format == Format::kSparse) return Finish(call, SparseSelect(condition, a, b));
  return Finish(call, DenseSelect(condition, a, b, shape.rows, shape.columns, call.context.cancelled));
}

// The exponent is not known here: between a square, which is a multiplication, and a power that is a
// function.
constexpr double kWorkOfPower = 10;

// Reads the matrices and writes the result once.
Cost CostOfCells(const Node& node, std::span<const ValueInfo> inputs) {
  Cost cost;
  double cells = 0;
  for (const ValueInfo& input : inputs) {
    if (!input.IsMatrix() || !input.shape.IsKnown()) continue;
    cost.bytes += 8.0 * static_cast<double>(input.shape.Cells());
    cells = std::max(cells, static_cast<double>(input.shape.Cells()));
  }
  if (node.info.IsMatrix() && node.info.shape.IsKnown()) cells = static_cast<double>(node.info.shape.Cells());
  cost.bytes += 8.0 * cells;
  const Operator& op = *FindOperator(node.op);
  cost.work = cells * (op.binary == BinaryCode::kPower ? kWorkOfPower : op.fusion.work);
  return cost;
}

}  // namespace heddle::ops
