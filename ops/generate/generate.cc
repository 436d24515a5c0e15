// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/environment/clock.h"
#include "core/text/double_text.h"
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/columns.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/base/whole_number.h"
#include "ops/catalog.h"
#include "ops/cells/move_cells.h"
#include "ops/generate/rand.h"
#include "ops/generate/seed.h"
#include "ops/generate/sequence.h"
#include "ops/reorganize/moved_rows.h"

namespace heddle::ops {
namespace {

// The rows that a generator makes: all of them unless the call asks for a range.
struct RowRange {
  explicit RowRange(const KernelCall& call, int64_t rows)
      : begin(call.total_rows == 0 ? 0 : call.row_begin), end(call.total_rows == 0 ? rows : call.row_end) {}
  int64_t begin;
  int64_t end;
};

// ---- matrix(data, rows, cols, byrow=TRUE): a scalar fills (sizes may be 0), a matrix is reshaped
// (byrow=FALSE reads and writes
//      column by column), a string gives the cells, separated by blanks, row by row.
//      Inputs: data, rows, cols. One of rows and cols may be left out for matrices and strings. Shapes: rows
//      x cols. Format: dense; a reshaped matrix keeps its own. Exact. Cost: writes every cell once; a dense
//      reshape by rows shares memory. Rows: a filled matrix is generated in pieces; the others are needed
//      whole.

Result<std::vector<double>> ParseCells(std::string_view text, StatusCode code) {
  std::vector<double> cells;
  constexpr std::string_view kBlanks = " \t\r\n";
  for (size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const std::optional<double> value = ParseDouble(word);
    if (!value)
      return Status(code, fmt::format("matrix: cell {} of the data string is not a number: \"{}\"",
                                      cells.size() + 1, word))
          .WithNote("cells are separated by blanks: matrix(\"1 2 3 4\", rows=2, cols=2)");
    cells.push_back(*value);
    at = text.find_first_not_of(kBlanks, end);
  }
  return cells;
}

Status WrongCount(int64_t cells, Shape shape, StatusCode code) {
  return Status(code, fmt::format("matrix: {} cells do not fill a {} matrix", cells, shape));
}

// Fills in a size that was left out (both given: checks them) so that rows * columns is the number of cells.
Status FitShape(int64_t cells, bool has_rows, bool has_columns, StatusCode code, Shape* shape) {
  if (cells == kUnknown || (has_rows && shape->rows == kUnknown) ||
      (has_columns && shape->columns == kUnknown))
    return OkStatus();
  if (!has_rows && !has_columns) return Status(code, "matrix: rows= and cols= are missing");
  if (!has_rows && shape->columns > 0) shape->rows = cells / shape->columns;
  if (!has_columns && shape->rows > 0) shape->columns = cells / shape->rows;
  if (!shape->IsKnown() || shape->Cells() != cells) return WrongCount(cells, *shape, code);
  return OkStatus();
}

// The text of one number, e.g. a cell of a frame, fills a matrix as the number does.
bool FillsAll(int64_t cells_of_text, bool has_rows, bool has_columns) {
  return cells_of_text == 1 && has_rows && has_columns;
}

bool IsText(const ValueInfo& data) { return data.IsScalar() && data.value_type == ValueType::kString; }

Result<ValueInfo> InferMatrix(const InferContext& context) {
  const ValueInfo& data = context.inputs[0];
  const bool has_rows = IsGiven(context.node, 1);
  const bool has_columns = IsGiven(context.node, 2);
  const bool fill = data.IsScalar() && !IsText(data);
  Shape shape;
  HEDDLE_ASSIGN_OR_RETURN(shape.rows, InferSize(context, 1, "rows", fill ? 1 : kUnknown));
  HEDDLE_ASSIGN_OR_RETURN(shape.columns, InferSize(context, 2, "cols", fill ? 1 : kUnknown));
  if (fill) return ValueInfo::OfMatrix(shape);
  int64_t cells = data.IsMatrix() ? data.shape.Cells() : kUnknown;
  if (const Scalar* text = KnownScalar(context, 0); text != nullptr && text->IsString()) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<double> numbers,
                            ParseCells(text->AsString(), StatusCode::kInvalidArgument));
    cells = static_cast<int64_t>(numbers.size());
    if (FillsAll(cells, has_rows, has_columns)) return ValueInfo::OfMatrix(shape);
  }
  HEDDLE_RETURN_IF_ERROR(FitShape(cells, has_rows, has_columns, StatusCode::kInvalidArgument, &shape));
  return ValueInfo::OfMatrix(shape, data.IsMatrix() ? data.format : Format::kDense);
}

RowRule MatrixRowRule(const Node&, std::span<const ValueInfo> inputs) {
  return inputs[0].IsScalar() && !IsText(inputs[0]) ? RowRule::kGenerate : RowRule::kWhole;
}

InputUse DataByRows(const Node&, std::span<const ValueInfo> inputs, int i) {
  return i == 0 && inputs[0].IsMatrix() ? InputUse::kRows : InputUse::kWhole;
}

// Row-major reshape of a CSR matrix: entries keep their order.
template <typename T>
Result<Matrix> ReshapeSparse(const Matrix& x, Shape shape) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result,
                          Matrix::Sparse(shape.rows, shape.columns, x.stored(), x.element_type()));
  int64_t* offsets = result.mutable_row_offsets();
  int64_t at = 0;
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t k = x.row_offsets()[i]; k < x.row_offsets()[i + 1]; ++k) {
      const int64_t cell = i * x.columns() + x.column_indexes()[k];
      ++offsets[cell / shape.columns + 1];
      result.mutable_column_indexes()[at] = static_cast<int32_t>(cell % shape.columns);
      result.mutable_values<T>()[at++] = x.values<T>()[k];
    }
  }
  for (int64_t i = 0; i < shape.rows; ++i) offsets[i + 1] += offsets[i];
  return result;
}

Result<Matrix> ReshapeByRow(const Matrix& x, Shape shape) {
  if (!x.IsSparse()) return x.Reshaped(shape.rows, shape.columns);
  return x.element_type() == ElementType::kFloat32 ? ReshapeSparse<float>(x, shape)
                                                   : ReshapeSparse<double>(x, shape);
}

Result<Matrix> Reshape(const Matrix& x, Shape shape, bool by_row) {
  if (by_row) return ReshapeByRow(x, shape);
  HEDDLE_ASSIGN_OR_RETURN(const Matrix transposed, Transpose(x));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix reshaped, ReshapeByRow(transposed, {shape.columns, shape.rows}));
  return Transpose(reshaped);
}

Result<Matrix> MatrixOfText(std::string_view text, bool has_rows, bool has_columns, Shape shape) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<double> cells, ParseCells(text, StatusCode::kFailedPrecondition));
  const auto count = static_cast<int64_t>(cells.size());
  if (FillsAll(count, has_rows, has_columns)) return FilledMatrix(shape.rows, shape.columns, cells[0]);
  HEDDLE_RETURN_IF_ERROR(FitShape(count, has_rows, has_columns, StatusCode::kFailedPrecondition, &shape));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(shape.rows, shape.columns));
  std::copy(cells.begin(), cells.end(), result.mutable_data());
  return result;
}

// Cells of a matrix are moved as they are, and a number is rounded once.
bool MakesSingles(const KernelCall& call) {
  return call.inputs[0]->IsMatrix() || !call.inputs[0]->scalar().IsString();
}

template <typename Cell>
void Fill(Matrix* matrix, double value) {
  Cell* const out = matrix->mutable_data<Cell>();
  ParallelFor(matrix->cells(), 131072, [&](int64_t begin, int64_t end) {
    std::fill(out + begin, out + end, static_cast<Cell>(value));
  });
}

// Of a call whose data are a number.
Result<Matrix> Filled(const KernelCall& call, const Shape& shape) {
  const double value = call.inputs[0]->scalar().AsDouble();
  const ElementType type = call.node.info.element_type;
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(shape.rows, shape.columns, type));
  if (type == ElementType::kFloat32)
    Fill<float>(&result, value);
  else
    Fill<double>(&result, value);
  return result;
}

Result<Value> RunMatrix(const KernelCall& call) {
  const Value& data = *call.inputs[0];
  const bool has_rows = GivenScalar(call, 1) != nullptr;
  const bool has_columns = GivenScalar(call, 2) != nullptr;
  Shape shape;
  Matrix result;
  if (data.IsScalar() && !data.scalar().IsString()) {
    HEDDLE_ASSIGN_OR_RETURN(shape.rows, GivenSize(call, 1, "rows", 1));
    HEDDLE_ASSIGN_OR_RETURN(shape.columns, GivenSize(call, 2, "cols", 1));
    const RowRange rows(call, shape.rows);
    HEDDLE_ASSIGN_OR_RETURN(result, Filled(call, {rows.end - rows.begin, shape.columns}));
    return Value(std::move(result));
  }
  HEDDLE_ASSIGN_OR_RETURN(shape.rows, GivenSize(call, 1, "rows", kUnknown));
  HEDDLE_ASSIGN_OR_RETURN(shape.columns, GivenSize(call, 2, "cols", kUnknown));
  if (data.IsScalar()) {
    HEDDLE_ASSIGN_OR_RETURN(result, MatrixOfText(data.scalar().AsString(), has_rows, has_columns, shape));
    return Value(std::move(result));
  }
  const Matrix& x = data.matrix();
  HEDDLE_RETURN_IF_ERROR(FitShape(x.cells(), has_rows, has_columns, StatusCode::kFailedPrecondition, &shape));
  HEDDLE_ASSIGN_OR_RETURN(result, Reshape(x, shape, BooleanAttribute(call.node, "byrow", true)));
  return Value(std::move(result));
}

Status RunFilledColumns(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix columns,
                          Filled(call.WholeCall(), {call.node.info.shape.rows,
                                                    call.rows.End(call.rank) - call.rows.Begin(call.rank)}));
  outputs[0] = Value(std::move(columns));
  return OkStatus();
}

bool IsFilled(const Node& node, std::span<const ValueInfo> inputs) {
  return node.info.IsSized() && MatrixRowRule(node, inputs) == RowRule::kGenerate;
}

constexpr StagedForm kMatrixStaged = [] {
  StagedForm form = ByColumns(NoneByColumns, IsFilled, RunFilledColumns);
  form.other = &kReshapeStaged;
  return form;
}();

// ---- seq(from, to, increment = 1, or -1 when from > to): from, from + increment, ... as far as `to`.
//      k x 1, dense, k = 1 + floor(to / increment - from / increment), one more if rounding lost the last.
//      Row i is from + i * increment, a multiplication and an addition: any row can be made alone (adding up
//      step by step differs in last bits for steps that are not whole). Errors: an increment that leads away
//      from `to`, is 0, NaN or infinite. Cost: writes k cells.

struct Sequence {
  double from;
  double increment;
  int64_t count;
};

Result<Sequence> MakeSequence(double from, double to, const Scalar* increment_given, StatusCode code) {
  const double increment = increment_given != nullptr ? increment_given->AsDouble() : from <= to ? 1 : -1;
  const bool finite = std::isfinite(from) && std::isfinite(to) && std::isfinite(increment);
  if (!finite || increment == 0 || (from > to && increment > 0) || (from < to && increment < 0))
    return Status(code, fmt::format("seq: cannot go from {} to {} in steps of {}", Scalar(from).ToText(),
                                    Scalar(to).ToText(), Scalar(increment).ToText()))
        .WithNote("the step must lead from the first number to the second");
  const double steps = std::floor(to / increment - from / increment);
  if (!(steps < 0x1.0p52)) return Status(code, fmt::format("seq: {} numbers are too many", steps + 1));
  const double next = from + (steps + 1) * increment;
  const bool one_more = increment > 0 ? next <= to : next >= to;
  return Sequence{from, increment, 1 + static_cast<int64_t>(steps) + (one_more ? 1 : 0)};
}

}  // namespace

std::optional<double> NumberLostBySeq(double from, double to, const Scalar* increment) {
  const Result<Sequence> sequence = MakeSequence(from, to, increment, StatusCode::kInvalidArgument);
  if (!sequence.ok()) return std::nullopt;
  const double next = from + static_cast<double>(sequence->count) * sequence->increment;
  // Of what rounding the increment, the product and the sum can do.
  const double error = 8 * std::numeric_limits<double>::epsilon() * std::max(std::fabs(from), std::fabs(to));
  const bool is_near = std::fabs(next - to) <= std::min(error, 1e-3 * std::fabs(sequence->increment));
  return is_near ? std::optional(next) : std::nullopt;
}

namespace {

Result<ValueInfo> InferSeq(const InferContext& context) {
  for (int i = 0; i < 3; ++i) {
    if (i == 2 && !IsGiven(context.node, 2)) continue;
    HEDDLE_RETURN_IF_ERROR(RequireScalar(context, i, i == 0 ? "from" : i == 1 ? "to" : "the increment"));
    if (context.inputs[static_cast<size_t>(i)].value_type == ValueType::kString)
      return InvalidArgument("seq: argument {} is a string, not a number", i + 1);
  }
  const Scalar* from = KnownScalar(context, 0);
  const Scalar* to = KnownScalar(context, 1);
  const Scalar* increment = KnownScalar(context, 2);
  if (from == nullptr || to == nullptr || (IsGiven(context.node, 2) && increment == nullptr))
    return ValueInfo::OfMatrix({kUnknown, 1});
  HEDDLE_ASSIGN_OR_RETURN(const Sequence sequence, MakeSequence(from->AsDouble(), to->AsDouble(), increment,
                                                                StatusCode::kInvalidArgument));
  return ValueInfo::OfMatrix({sequence.count, 1});
}

RowRule GenerateRowRule(const Node&, std::span<const ValueInfo>) { return RowRule::kGenerate; }

Result<Value> RunSeq(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Sequence sequence,
                          MakeSequence(NumberOr(call, 0, 1), NumberOr(call, 1, 1), GivenScalar(call, 2),
                                       StatusCode::kFailedPrecondition));
  const RowRange rows(call, sequence.count);
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(rows.end - rows.begin, 1));
  double* out = result.mutable_data();
  ParallelFor(result.rows(), 65536, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out[i] = sequence.from + static_cast<double>(rows.begin + i) * sequence.increment;
  });
  return Value(std::move(result));
}

// ---- rand(rows=1, cols=1, min=0, max=1, sparsity=1, seed=-1, pdf="uniform", lambda=1): rows x cols random
//      cells. Inputs in this order without pdf; attributes pdf and stream. The cells are those of Apache
//      SystemDS for the same seed (docs/numerics.md, section "rand"): a function of the arguments, not of
//      rows per worker, threads or format. No seed, or -1: the seed is mixed from the job's seed, the node's
//      "stream" and the number of blocks run so far. Format: CSR if the sparsity is known before the run,
//      below 0.4, and there is more than one column; else dense. Rows: generated in pieces. Cost: 2 ns a
//      uniform cell, 25 ns a normal one.

enum RandInput { kRows, kColumns, kMin, kMax, kSparsity, kSeed, kLambda };

// kFailedPrecondition for an unknown one: nobody may need the cells.
Result<RandRequest::Distribution> DistributionOf(const Node& node) {
  using enum RandRequest::Distribution;
  constexpr std::pair<std::string_view, RandRequest::Distribution> kNames[] = {
      {"", kUniform},        {"uniform", kUniform},           {"normal", kNormal},
      {"poisson", kPoisson}, {"cb_uniform", kCounterUniform}, {"cb_normal", kCounterNormal}};
  std::string name = node.Text("pdf");
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const auto& [known, distribution] : kNames)
    if (known == name) return distribution;
  return FailedPrecondition("rand: unknown distribution pdf=\"{}\"", node.Text("pdf"))
      .WithNote("it is \"uniform\", \"normal\", \"poisson\", \"cb_uniform\" or \"cb_normal\"");
}

// What is wrong with the values, as far as they are known.
Status CheckRand(const Scalar* sparsity, const Scalar* lambda, bool poisson, StatusCode code) {
  if (sparsity != nullptr && !(sparsity->AsDouble() >= 0 && sparsity->AsDouble() <= 1))
    return Status(code, fmt::format("rand: sparsity must be between 0 and 1, not {}", sparsity->ToText()));
  if (poisson && lambda != nullptr && !(lambda->AsDouble() > 0 && lambda->AsDouble() < 0x1.0p31))
    return Status(code, fmt::format("rand: lambda must be positive, not {}", lambda->ToText()));
  return OkStatus();
}

Result<ValueInfo> InferRand(const InferContext& context) {
  const Result<RandRequest::Distribution> distribution = DistributionOf(context.node);
  constexpr std::string_view kNames[] = {"rows", "cols", "min", "max", "sparsity", "seed", "lambda"};
  for (int i = kMin; i <= kLambda; ++i)
    if (IsGiven(context.node, i)) HEDDLE_RETURN_IF_ERROR(RequireScalar(context, i, kNames[i]));
  Shape shape;
  HEDDLE_ASSIGN_OR_RETURN(shape.rows, InferSize(context, kRows, "rows", 1));
  HEDDLE_ASSIGN_OR_RETURN(shape.columns, InferSize(context, kColumns, "cols", 1));
  if (const Scalar* seed = KnownScalar(context, kSeed))
    HEDDLE_RETURN_IF_ERROR(RequireWholeNumber(*seed, "rand", "seed", StatusCode::kInvalidArgument).status());
  const Scalar* sparsity = KnownScalar(context, kSparsity);
  HEDDLE_RETURN_IF_ERROR(CheckRand(sparsity, KnownScalar(context, kLambda),
                                   distribution.ok() && *distribution == RandRequest::Distribution::kPoisson,
                                   StatusCode::kInvalidArgument));
  const bool sparse = sparsity != nullptr && sparsity->AsDouble() < 0.4 && shape.columns > 1;
  return ValueInfo::OfMatrix(shape, sparse ? Format::kSparse : Format::kDense);
}

Result<RandRequest> RequestOf(const KernelCall& call) {
  RandRequest request;
  HEDDLE_ASSIGN_OR_RETURN(request.rows, GivenSize(call, kRows, "rows", 1));
  HEDDLE_ASSIGN_OR_RETURN(request.columns, GivenSize(call, kColumns, "cols", 1));
  HEDDLE_ASSIGN_OR_RETURN(request.distribution, DistributionOf(call.node));
  HEDDLE_RETURN_IF_ERROR(CheckRand(GivenScalar(call, kSparsity), GivenScalar(call, kLambda),
                                   request.distribution == RandRequest::Distribution::kPoisson,
                                   StatusCode::kFailedPrecondition));
  request.min = NumberOr(call, kMin, 0);
  request.max = NumberOr(call, kMax, 1);
  request.sparsity = NumberOr(call, kSparsity, 1);
  request.lambda = NumberOr(call, kLambda, 1);
  HEDDLE_ASSIGN_OR_RETURN(request.seed, SeedOf(call, kSeed));
  request.cancelled = call.context.cancelled;
  return request;
}

Result<Value> RunRand(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const RandRequest request, RequestOf(call));
  const RowRange rows(call, request.rows);
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, RandomRows(request, rows.begin, rows.end, call.node.info.format));
  return Value(std::move(result));
}

Status RunRandColumns(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(const RandRequest request, RequestOf(call.WholeCall()));
  HEDDLE_ASSIGN_OR_RETURN(Matrix columns, RandomColumns(request, call.rows.Begin(call.rank),
                                                        call.rows.End(call.rank), call.node.info.format));
  outputs[0] = Value(std::move(columns));
  return OkStatus();
}

constexpr StagedForm kRandColumns = ByColumns(NoneByColumns, IsSized, RunRandColumns);

// ---- time(): nanoseconds of a clock that never goes back, an integer scalar.

Result<ValueInfo> InferTime(const InferContext&) { return ValueInfo::OfScalar(ValueType::kInteger); }

Result<Value> RunTime(const KernelCall& call) {
  Clock& clock = call.context.clock != nullptr ? *call.context.clock : SystemClock();
  return Value(Scalar(clock.MonotonicNs()));
}

// A scalar has filled all cells; a matrix is reshaped back, in the order of its cells in which it was.
void DifferentiateMatrix(AdjointCall& call) {
  if (call.InfoOf(0).IsScalar()) return call.Give(0, call.Add("sum", {call.Adjoint()}));
  call.Give(0, call.Add("matrix", {call.Adjoint(), call.Rows(0), call.Columns(0)}, call.node().attributes));
}

using enum CallForm;
constexpr Operator kOperators[] = {
    {.name = "matrix",
     .form = kMatrix,
     .parameters = "data rows cols @byrow?",
     .min_inputs = 1,
     .max_inputs = 3,
     .infer = InferMatrix,
     .row_rule = MatrixRowRule,
     .input_use = DataByRows,
     .staged = &kMatrixStaged,
     .run = RunMatrix,
     .takes_singles = MakesSingles,
     .role = Role::kReshape,
     .adjoints = "*; 0",
     .differentiate = DifferentiateMatrix},
    {.name = "seq",
     .form = kPositional,
     .parameters = "from to incr?",
     .min_inputs = 2,
     .max_inputs = 3,
     .infer = InferSeq,
     .row_rule = GenerateRowRule,
     .run = RunSeq,
     .role = Role::kSequence,
     .adjoints = "sum(dy); 0; sum(dy * (seq(1, nrow(dy)) - 1))"},
    {.name = "rand",
     .form = kRand,
     .parameters = "rows? cols? min? max? sparsity? seed? lambda? @pdf?",
     .aliases = "Rand",
     .min_inputs = 0,
     .max_inputs = 7,
     .infer = InferRand,
     .row_rule = GenerateRowRule,
     .staged = &kRandColumns,
     .run = RunRand,
     .role = Role::kRandom,
     .seed_input = kSeed},
    {.name = "time",
     .form = kPositional,
     .min_inputs = 0,
     .max_inputs = 0,
     .infer = InferTime,
     .run = RunTime,
     .pure = false},
};

}  // namespace

std::span<const Operator> GenerateOperators() { return kOperators; }

}  // namespace heddle::ops
