// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "ops/base/adjoint.h"
#include "ops/base/operator.h"
#include "ops/base/row_rules.h"
#include "ops/base/stages.h"
#include "ops/catalog.h"
#include "ops/cells/storage.h"
#include "ops/frame/arrange.h"
#include "ops/frame/cast.h"
#include "ops/frame/part_failures.h"
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

// Of a frame in stages: cells that are no numbers may be on several ranks.
RowRule AsMatrixRowRule(const Node&, std::span<const ValueInfo> inputs) {
  return inputs[0].IsMatrix() ? RowRule::kRowWise : RowRule::kWhole;
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

Result<std::optional<Value>> RunAsMatrixOfCodes(const KernelCall& call) {
  return std::optional<Value>(*call.inputs[0]);
}

Status RunAsMatrixStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) return GiveReported(call, outputs);
  return MakeReported(RunAsMatrix(call.WholeCall()), 0, 0, outputs);
}

bool IsOfFrame(const Node&, std::span<const ValueInfo> inputs) { return inputs[0].IsFrame(); }
constexpr StagedForm kAsMatrixStaged = {.stages = kReportingStages,
                                        .result = StagedResult::kSameRows,
                                        .applies = IsOfFrame,
                                        .run = RunAsMatrixStage};

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

// The types of columns, which all ranks find together: first as far as whole numbers go, then of the columns
// with fractions whether floats hold them.
enum AsFrameStage { kWholeTypes, kSingles, kFill };

Result<Value> RowOf(std::span<const double> cells) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix row, Matrix::Dense(1, static_cast<int64_t>(cells.size())));
  std::copy(cells.begin(), cells.end(), row.mutable_data());
  return Value(std::move(row));
}

Result<Value> RowOf(std::span<const ColumnType> types) {
  std::vector<double> cells;
  for (const ColumnType type : types) cells.push_back(static_cast<double>(type));
  return RowOf(cells);
}

// The widest of the types of all ranks.
std::vector<ColumnType> WidestOf(const Matrix& types) {
  std::vector<ColumnType> widest(static_cast<size_t>(types.columns()), ColumnType::kBoolean);
  for (int64_t i = 0; i < types.rows(); ++i)
    for (size_t j = 0; j < widest.size(); ++j)
      widest[j] = WiderNumberType(
          widest[j], static_cast<ColumnType>(types.data()[i * types.columns() + static_cast<int64_t>(j)]));
  return widest;
}

Status RunAsFrameStage(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix dense, AsDense(call.inputs[0]->matrix()));
  if (call.stage == kWholeTypes) {
    HEDDLE_ASSIGN_OR_RETURN(outputs[0], RowOf(WholeNumberTypes(dense)));
    return OkStatus();
  }
  std::vector<ColumnType> types = WidestOf(call.Received(0).matrix());
  if (call.stage == kSingles) {
    const std::vector<char> are_singles = AreSingles(dense, types);
    HEDDLE_ASSIGN_OR_RETURN(outputs[0], RowOf(types));
    HEDDLE_ASSIGN_OR_RETURN(outputs[1], RowOf(std::vector<double>(are_singles.begin(), are_singles.end())));
    return OkStatus();
  }
  const Matrix& are_singles = call.Received(1).matrix();
  for (int64_t i = 0; i < are_singles.rows(); ++i)
    for (size_t j = 0; j < types.size(); ++j)
      if (are_singles.data()[i * are_singles.columns() + static_cast<int64_t>(j)] == 0)
        types[j] = ColumnType::kFloat64;
  HEDDLE_ASSIGN_OR_RETURN(Frame frame, FrameOf(dense, types));
  outputs[0] = Value(std::move(frame));
  return OkStatus();
}

bool IsOfMatrix(const Node&, std::span<const ValueInfo> inputs) { return inputs[0].IsMatrix(); }
constexpr Reach kTypes[] = {Reach::kAll}, kTypesAndSingles[] = {Reach::kHere, Reach::kAll};
constexpr Stage kAsFrameStages[] = {{.outputs = kTypes, .reads_inputs = true},
                                    {.outputs = kTypesAndSingles, .reads_inputs = true},
                                    {.reads_inputs = true}};
constexpr StagedForm kAsFrameStaged = {.stages = kAsFrameStages,
                                       .result = StagedResult::kSameRows,
                                       .applies = IsOfMatrix,
                                       .run = RunAsFrameStage};

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

// No cell is read.
Result<std::optional<Value>> RunSizeOfCodes(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(Value size, RunSizeOf(call));
  return std::optional<Value>(std::move(size));
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
          .panel_use = ReadsPanels,
          .staged = &kSizeStaged,
          .run = RunSizeOf,
          .run_compressed = RunSizeOfCodes,
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
     .row_rule = AsMatrixRowRule,
     .input_use = RowsUnlessScalar,
     .staged = &kAsMatrixStaged,
     .run = RunAsMatrix,
     .run_compressed = RunAsMatrixOfCodes,
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
     .input_use = RowsUnlessScalar,
     .staged = &kAsFrameStaged,
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
