// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>

#include "ops/base/adjoint.h"
#include "ops/base/operator.h"
#include "ops/base/stages.h"
#include "ops/catalog.h"
#include "ops/frame/arrange.h"
#include "ops/frame/cast.h"
#include "ops/scalar/evaluate_scalar.h"

// Casts (language reference 2.3) and the sizes of a matrix.
namespace heddle::ops {
namespace {

bool IsOneByOne(const Shape& shape) { return shape.rows == 1 && shape.columns == 1; }

Result<ValueInfo> InferAsScalar(const InferContext& context) {
  const ValueInfo& x = context.inputs[0];
  if (x.IsScalar()) return ValueInfo::OfScalar(x.value_type);
  if (!x.IsTabular())
    return InvalidArgument("as.scalar: the argument must be a matrix or a scalar, not a {}",
                           Name(x.data_type));
  if ((x.shape.rows >= 0 && x.shape.rows != 1) || (x.shape.columns >= 0 && x.shape.columns != 1))
    return InvalidArgument("as.scalar: the {} must be 1x1: {}", Name(x.data_type), x.shape);
  if (x.IsMatrix()) return ValueInfo::OfScalar(ValueType::kDouble);
  return ValueInfo::OfScalar(x.IsSized() ? ValueTypeOf(x.schema->types[0]) : ValueType::kUnknown);
}

Result<Value> RunAsScalar(const KernelCall& call) {
  const Value& x = *call.inputs[0];
  if (x.IsScalar()) return x;
  if (!IsOneByOne(x.shape()))
    return FailedPrecondition("as.scalar: the {} must be 1x1: {}", x.IsFrame() ? "frame" : "matrix",
                              x.shape());
  if (x.IsMatrix()) return Value(Scalar(x.matrix().At(0, 0)));
  // A missing text reads as it is printed, and is no empty text.
  return Value(x.frame().IsMissing(0, 0) ? Scalar("null") : x.frame().At(0, 0));
}

Result<ValueInfo> InferAsMatrix(const InferContext& context) {
  const ValueInfo& x = context.inputs[0];
  if (x.IsMatrix()) return x;
  if (x.IsFrame()) return ValueInfo::OfMatrix(x.shape);
  if (!x.IsScalar())
    return InvalidArgument("as.matrix: the argument must be a scalar or a frame, not a {}",
                           Name(x.data_type));
  return ValueInfo::OfMatrix({1, 1});
}

RowRule RowWiseUnlessScalar(const Node&, std::span<const ValueInfo> inputs) {
  return !inputs[0].IsScalar() ? RowRule::kRowWise : RowRule::kWhole;
}
InputUse RowsUnlessScalar(const Node&, std::span<const ValueInfo> inputs, int) {
  return !inputs[0].IsScalar() ? InputUse::kRows : InputUse::kWhole;
}

Result<Value> RunAsMatrix(const KernelCall& call) {
  if (call.inputs[0]->IsMatrix()) return *call.inputs[0];
  if (call.inputs[0]->IsFrame()) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, MatrixOf(call.inputs[0]->frame()));
    return Value(std::move(matrix));
  }
  const Scalar& x = call.inputs[0]->scalar();
  // What eval() returns is 0 for a text, whatever it says.
  const bool is_zero = x.IsString() && call.node.FindAttribute("eval") != nullptr;
  HEDDLE_ASSIGN_OR_RETURN(const Scalar number,
                          CastScalar(is_zero ? Scalar(0.0) : x, ValueType::kDouble, "as.matrix"));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, FilledMatrix(1, 1, number.AsDouble()));
  return Value(std::move(result));
}

Result<ValueType> TypeOfInput(const Operator&, std::span<const ValueType> inputs) { return inputs[0]; }
Result<Scalar> GiveInput(const Operator&, const Node&, std::span<const Scalar* const> inputs) {
  return *inputs[0];
}

template <ValueType type>
Result<ValueType> CastType(const Operator&, std::span<const ValueType>) {
  return type;
}
template <ValueType type>
Result<Scalar> Cast(const Operator& op, const Node&, std::span<const Scalar* const> inputs) {
  return CastScalar(*inputs[0], type, op.name);
}

Result<ValueInfo> InferAsFrame(const InferContext& context) {
  const ValueInfo& x = context.inputs[0];
  // The types of columns are those that their cells fit in.
  if (x.IsMatrix()) {
    ValueInfo info = ValueInfo::OfFrame(x.shape.rows, nullptr);
    info.shape = x.shape;
    return info;
  }
  if (!x.IsScalar())
    return InvalidArgument("as.frame: the argument must be a matrix or a scalar, not a {}",
                           Name(x.data_type));
  if (x.value_type == ValueType::kUnknown) {
    ValueInfo info = ValueInfo::OfFrame(1, nullptr);
    info.shape.columns = 1;
    return info;
  }
  return ValueInfo::OfFrame(
      1, std::make_shared<const Schema>(Schema{{ColumnTypeOf(x.value_type)}, CountedNames(1)}));
}

Result<Value> RunAsFrame(const KernelCall& call) {
  const Value& x = *call.inputs[0];
  HEDDLE_ASSIGN_OR_RETURN(Frame frame, x.IsScalar() ? FrameOf(x.scalar()) : FrameOf(x.matrix()));
  return Value(std::move(frame));
}

Result<ValueInfo> InferCast(const InferContext& context) {
  const ValueInfo& x = context.inputs[0];
  if (!x.IsScalar())
    return InvalidArgument("{}: the argument must be a scalar, not a {}", context.node.op, Name(x.data_type));
  const std::array types = {x.value_type};
  HEDDLE_ASSIGN_OR_RETURN(const ValueType type, ScalarResultType(context.node.op, types));
  return ValueInfo::OfScalar(type);
}

Result<Value> RunCast(const KernelCall& call) {
  const std::array inputs = {&call.inputs[0]->scalar()};
  HEDDLE_ASSIGN_OR_RETURN(Scalar result, EvaluateScalar(call.node, inputs));
  return Value(std::move(result));
}

Result<ValueInfo> InferSizeOf(const InferContext& context) {
  const ValueInfo& x = context.inputs[0];
  if (!x.IsTabular())
    return InvalidArgument("{}: the argument must be a matrix, not a {}", context.node.op, Name(x.data_type));
  return ValueInfo::OfScalar(ValueType::kInteger);
}

Result<Value> RunSizeOf(const KernelCall& call) {
  Shape shape = call.input_infos[0].shape;
  if (!shape.IsKnown()) shape = call.inputs[0]->shape();
  return Value(Scalar(FindOperator(call.node.op)->size_of(shape)));
}

// Every rank knows the size of the whole, whatever rows it has.
Status RunSizeStage(const StageCall& call, std::span<Value> outputs) {
  outputs[0] = Value(Scalar(FindOperator(call.node.op)->size_of(call.input_infos[0].shape)));
  return OkStatus();
}

bool HasKnownShape(const Node&, std::span<const ValueInfo> inputs) { return inputs[0].shape.IsKnown(); }
constexpr Stage kSizeStages[] = {{.reads_inputs = true}};
constexpr StagedForm kSizeStaged = {
    .stages = kSizeStages, .result = StagedResult::kEach, .applies = HasKnownShape, .run = RunSizeStage};

// The adjoint has the form that the input had.
void DifferentiateForm(AdjointCall& call) {
  const bool is_scalar = call.InfoOf(0).IsScalar();
  if (is_scalar == call.node().info.IsScalar()) return call.Give(0, call.Adjoint());
  call.Give(0, call.Add(is_scalar ? "as.scalar" : "as.matrix", {call.Adjoint()}));
}

template <ValueType type>
constexpr Operator CastTo(std::string_view name, std::string_view aliases, bool may_fail, Role role) {
  return {.name = name,
          .form = CallForm::kPositional,
          .parameters = "x",
          .aliases = aliases,
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = InferCast,
          .run = RunCast,
          .may_fail = may_fail,
          .scalar_type = CastType<type>,
          .evaluate = Cast<type>,
          .role = role,
          .adjoints = type == ValueType::kDouble ? "dy" : "0"};
}

constexpr Operator SizeOperator(std::string_view name, int64_t (*size_of)(const Shape& shape)) {
  return {.name = name,
          .form = CallForm::kPositional,
          .parameters = "X",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = InferSizeOf,
          .input_use = AllByRows,
          .staged = &kSizeStaged,
          .run = RunSizeOf,
          .takes_singles = TakesAnySingles,
          .takes_frames = true,
          .size_of = size_of,
          .adjoints = "0"};
}

int64_t RowsOf(const Shape& shape) { return shape.rows; }
int64_t ColumnsOf(const Shape& shape) { return shape.columns; }
int64_t CellsOf(const Shape& shape) { return shape.Cells(); }

constexpr Operator kOperators[] = {
    {.name = "as.scalar",
     .form = CallForm::kPositional,
     .parameters = "x",
     .aliases = "castAsScalar",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = InferAsScalar,
     .run = RunAsScalar,
     .takes_singles = TakesAnySingles,
     .takes_frames = true,
     .scalar_type = TypeOfInput,
     .evaluate = GiveInput,
     .role = Role::kAsScalar,
     .adjoints = "*",
     .differentiate = DifferentiateForm},
    {.name = "as.matrix",
     .form = CallForm::kPositional,
     .parameters = "x",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = InferAsMatrix,
     .row_rule = RowWiseUnlessScalar,
     .input_use = RowsUnlessScalar,
     .run = RunAsMatrix,
     .may_fail = true,
     .takes_frames = true,
     .role = Role::kAsMatrix,
     .adjoints = "*",
     .differentiate = DifferentiateForm},
    {.name = "as.frame",
     .form = CallForm::kPositional,
     .parameters = "x",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = InferAsFrame,
     .run = RunAsFrame},
    CastTo<ValueType::kDouble>("as.double", "", /*may_fail=*/true, Role::kAsDouble),
    CastTo<ValueType::kInteger>("as.integer", "", /*may_fail=*/true, Role::kAsInteger),
    CastTo<ValueType::kBoolean>("as.logical", "as.boolean", /*may_fail=*/false, Role::kAsLogical),
    SizeOperator("nrow", RowsOf),
    SizeOperator("ncol", ColumnsOf),
    SizeOperator("length", CellsOf),
};

}  // namespace

std::span<const Operator> ScalarOperators() { return kOperators; }

}  // namespace heddle::ops
