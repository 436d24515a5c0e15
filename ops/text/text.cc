// SPDX-License-Identifier: Apache-2.0
#include "ops/text/text.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "core/text/double_text.h"
#include "ops/base/arguments.h"
#include "ops/base/stages.h"
#include "ops/base/whole_number.h"
#include "ops/catalog.h"
#include "ops/cells/frame_columns.h"
#include "ops/cells/move_cells.h"
#include "ops/text/java_format.h"

// toString, format, and the effects on the script's output: print, stop, assert (language reference 2.9 and
// 3.10).
namespace heddle::ops {
namespace {

// The cells of row i, columns [0, out.size()).
void ReadRow(const Matrix& matrix, int64_t i, std::span<double> out) {
  if (!matrix.IsSparse()) {
    std::copy_n(matrix.data() + i * matrix.columns(), out.size(), out.begin());
    return;
  }
  std::fill(out.begin(), out.end(), 0.0);
  for (int64_t p = matrix.row_offsets()[i]; p < matrix.row_offsets()[i + 1]; ++p) {
    const size_t column = static_cast<size_t>(matrix.column_indexes()[p]);
    if (column < out.size()) out[column] = matrix.values()[p];
  }
}

constexpr std::string_view kLayoutNames[] = {"rows", "cols", "decimal"};  // Inputs 1 to 3 of toString.

Result<ValueInfo> InferText(const InferContext& context) {
  for (int i = 1; i <= 3 && context.inputs[0].IsTabular(); ++i)
    if (const Scalar* number = KnownScalar(context, i))
      HEDDLE_RETURN_IF_ERROR(
          RequireWholeNumber(*number, "toString", kLayoutNames[i - 1], StatusCode::kInvalidArgument)
              .status());
  return ValueInfo::OfScalar(ValueType::kString);
}
Result<ValueInfo> InferEffect(const InferContext&) { return ValueInfo{}; }

Result<ValueInfo> InferFormat(const InferContext& context) {
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    if (context.inputs[i].IsTabular())
      return InvalidArgument(
          "print: argument {} is a {}; only scalars can be formatted, use toString or as.scalar", i + 1,
          Name(context.inputs[i].data_type));
  }
  return ValueInfo::OfScalar(ValueType::kString);
}

Result<ValueInfo> InferAssert(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, 0, "the condition"));
  return ValueInfo{};
}

// The scalar inputs, nullptr where left out; the values outlive the call.
std::vector<const Scalar*> ScalarInputs(const KernelCall& call) {
  std::vector<const Scalar*> scalars;
  for (const Value* input : call.inputs)
    scalars.push_back(input != nullptr && input->IsScalar() ? &input->scalar() : nullptr);
  return scalars;
}

Result<TextLayout> LayoutOf(const KernelCall& call) {
  TextLayout layout;
  int64_t decimals = layout.decimals;
  int64_t* const numbers[] = {&layout.rows, &layout.columns, &decimals};
  for (int i = 1; i <= 3; ++i)
    if (const Scalar* number = GivenScalar(call, i)) {
      HEDDLE_ASSIGN_OR_RETURN(*numbers[i - 1], RequireWholeNumber(*number, "toString", kLayoutNames[i - 1],
                                                                  StatusCode::kFailedPrecondition));
    }
  layout.decimals = static_cast<int>(std::clamp<int64_t>(decimals, 0, 1000));
  if (const Scalar* sparse = GivenScalar(call, 4)) layout.sparse = sparse->AsBoolean();
  if (const Scalar* separator = GivenScalar(call, 5)) layout.separator = separator->ToText();
  if (const Scalar* line_end = GivenScalar(call, 6)) layout.line_end = line_end->ToText();
  return layout;
}

std::string TextOf(const Value& value, const TextLayout& layout) {
  switch (value.kind()) {
    case Value::Kind::kScalar: return value.scalar().ToText();
    case Value::Kind::kMatrix: return MatrixToText(value.matrix(), layout);
    case Value::Kind::kFrame: return FrameToText(value.frame(), layout);
    case Value::Kind::kPanels: break;
  }
  HEDDLE_CHECK(false, "a kernel gets rows, not panels");
}

Result<Value> RunToString(const KernelCall& call) {
  const Value& value = *call.inputs[0];
  if (value.IsScalar()) return Value(Scalar(value.scalar().ToText()));
  HEDDLE_ASSIGN_OR_RETURN(const TextLayout layout, LayoutOf(call));
  return Value(Scalar(TextOf(value, layout)));
}

// The rows that are shown go to all ranks, cut to the columns that are shown.
Result<Value> RowsShown(const StageCall& call, const TextLayout& layout) {
  const Value& x = *call.inputs[0];
  const int64_t begin = call.rows.Begin(call.rank);
  const int64_t rows = std::clamp<int64_t>(std::max<int64_t>(layout.rows, 0) - begin, 0, x.shape().rows);
  const int64_t columns = std::clamp<int64_t>(layout.columns, 0, x.shape().columns);
  // A frame without columns has no rows that could be counted.
  if (x.IsFrame())
    return Value(
        ColumnsOf(x.frame().Rows(0, rows), 0, std::max(columns, std::min<int64_t>(1, x.shape().columns))));
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells, SliceColumns(x.matrix().Rows(0, rows), 0, columns));
  return Value(std::move(cells));
}

Status RunToStringStage(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(const TextLayout layout, LayoutOf(call.WholeCall()));
  if (call.stage == 0) {
    HEDDLE_ASSIGN_OR_RETURN(outputs[0], RowsShown(call, layout));
    return OkStatus();
  }
  const Value& shown = call.Received(0);
  const Shape whole{call.rows.Length(), call.inputs[0]->shape().columns};
  outputs[0] = Value(Scalar(shown.IsFrame() ? FrameToText(shown.frame(), whole, layout)
                                            : MatrixToText(shown.matrix(), layout)));
  return OkStatus();
}

bool IsOfTable(const Node&, std::span<const ValueInfo> inputs) { return inputs[0].IsTabular(); }
constexpr Reach kShown[] = {Reach::kAll};
constexpr Stage kToStringStages[] = {{.outputs = kShown, .reads_inputs = true}, {.reads_inputs = true}};
constexpr StagedForm kToStringStaged = {
    .stages = kToStringStages, .result = StagedResult::kEach, .applies = IsOfTable, .run = RunToStringStage};

Result<Value> RunFormat(const KernelCall& call) {
  const std::vector<const Scalar*> scalars = ScalarInputs(call);
  HEDDLE_ASSIGN_OR_RETURN(std::string text, JavaFormat(scalars[0]->ToText(), std::span(scalars).subspan(1)));
  return Value(Scalar(std::move(text)));
}

// A long text is printed in pieces, none of which ends inside a character: on its way to the user each is
// copied a few times.
void PrintLine(std::string_view text, const std::function<void(std::string_view)>& print) {
  constexpr size_t kPieceBytes = size_t{256} << 10;
  constexpr size_t kMostBytesOfCharacter = 4;
  const auto is_inside = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  while (text.size() > kPieceBytes) {
    size_t end = kPieceBytes;
    while (end > kPieceBytes - kMostBytesOfCharacter && is_inside(end)) --end;
    print(text.substr(0, end));
    text.remove_prefix(end);
  }
  print(std::string(text) + "\n");
}

Result<Value> RunPrint(const KernelCall& call) {
  if (!call.context.print) return Value();
  const Value& value = *call.inputs[0];
  if (value.IsScalar() && value.scalar().IsString()) {
    PrintLine(value.scalar().AsString(), call.context.print);
  } else {
    PrintLine(TextOf(value, TextLayout()), call.context.print);
  }
  return Value();
}

Result<Value> RunStop(const KernelCall& call) {
  const bool given = !call.inputs.empty() && call.inputs[0] != nullptr;
  return Aborted("{}", given ? TextOf(*call.inputs[0], TextLayout()) : std::string("stop"));
}

Result<Value> RunAssert(const KernelCall& call) {
  if (!call.inputs[0]->scalar().AsBoolean()) return Aborted("assertion failed");
  return Value();
}

Result<ValueType> TypeOfText(const Operator&, std::span<const ValueType>) { return ValueType::kString; }

Result<Scalar> EvaluateToString(const Operator&, const Node&, std::span<const Scalar* const> inputs) {
  return Scalar(inputs[0]->ToText());
}

Result<Scalar> EvaluateFormat(const Operator&, const Node&, std::span<const Scalar* const> inputs) {
  HEDDLE_ASSIGN_OR_RETURN(std::string text, JavaFormat(inputs[0]->ToText(), inputs.subspan(1)));
  return Scalar(std::move(text));
}

constexpr Operator kOperators[] = {
    {.name = "toString",
     .form = CallForm::kNamed,
     .parameters = "target rows? cols? decimal? sparse? sep? linesep?",
     .min_inputs = 1,
     .max_inputs = 7,
     .infer = InferText,
     .input_use = FirstByRows,
     .staged = &kToStringStaged,
     .run = RunToString,
     .takes_frames = true,
     .scalar_type = TypeOfText,
     .evaluate = EvaluateToString},
    {.name = "format",
     .parameters = "text x",
     .min_inputs = 1,
     .max_inputs = -1,
     .infer = InferFormat,
     .run = RunFormat,
     .may_fail = true,
     .scalar_type = TypeOfText,
     .evaluate = EvaluateFormat},
    {.name = "print",
     .form = CallForm::kPrint,
     .parameters = "x",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = InferEffect,
     .run = RunPrint,
     .effect = true,
     .pure = false,
     .takes_frames = true,
     .role = Role::kPrint},
    {.name = "stop",
     .form = CallForm::kStop,
     .parameters = "message?",
     .min_inputs = 0,
     .max_inputs = 1,
     .infer = InferEffect,
     .run = RunStop,
     .effect = true,
     .may_fail = true,
     .pure = false,
     .role = Role::kStop},
    {.name = "assert",
     .form = CallForm::kAssert,
     .parameters = "condition",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = InferAssert,
     .run = RunAssert,
     .effect = true,
     .may_fail = true,
     .pure = false,
     .role = Role::kAssert},
};

}  // namespace

std::string MatrixToText(const Matrix& matrix, const TextLayout& layout) {
  const int64_t rows = std::clamp<int64_t>(layout.rows, 0, matrix.rows());
  const int64_t columns = std::clamp<int64_t>(layout.columns, 0, matrix.columns());
  std::vector<double> row(static_cast<size_t>(columns));
  std::string text;
  for (int64_t i = 0; i < rows; ++i) {
    // A long text is given its size, as the first rows foretell it, before it has grown step by step.
    constexpr int64_t kForetelling = 256;
    if (i == kForetelling) text.reserve(text.size() / kForetelling * static_cast<size_t>(rows + rows / 32));
    ReadRow(matrix, i, row);
    for (int64_t j = 0; j < columns; ++j) {
      const double x = row[static_cast<size_t>(j)];
      if (layout.sparse) {
        if (x == 0) continue;
        text += fmt::format("{}{}{}{}", i + 1, layout.separator, j + 1, layout.separator);
      } else if (j > 0) {
        text += layout.separator;
      }
      text += FormatFixed(x, layout.decimals);
      if (layout.sparse) text += layout.line_end;
    }
    if (!layout.sparse) text += layout.line_end;
  }
  return text;
}

std::span<const Operator> TextOperators() { return kOperators; }

}  // namespace heddle::ops
