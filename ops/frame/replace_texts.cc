// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "ops/base/arguments.h"
#include "ops/frame/convert.h"
#include "ops/frame/part_failures.h"
#include "ops/frame/text_column.h"

// replace() of a frame: the text of the pattern is looked for among the texts of the cells.
namespace heddle::ops {
namespace {

std::string_view KindOf(const Scalar& scalar) {
  switch (scalar.type()) {
    case ValueType::kBoolean: return "a boolean";
    case ValueType::kInteger: return "an integer";
    case ValueType::kDouble: return "a double";
    case ValueType::kString:
    case ValueType::kUnknown: return "a text";
  }
  HEDDLE_CHECK(false, "a scalar has a type");
}

// Booleans are written as cells of frames have them.
std::string CellText(const Scalar& scalar) {
  if (scalar.IsBoolean()) return scalar.AsBoolean() ? "true" : "false";
  return scalar.ToText();
}

Status CheckKinds(const Scalar* pattern, const Scalar* replacement, StatusCode code) {
  if (pattern == nullptr || replacement == nullptr) return OkStatus();
  if (pattern->type() == replacement->type()) return OkStatus();
  return Status(code, fmt::format("replace: in a frame {} cannot be replaced by {}", KindOf(*pattern),
                                  KindOf(*replacement)))
      .WithNote("pattern and replacement must both be texts, integers, doubles or booleans");
}

Result<ValueInfo> InferReplaceTexts(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, 1, "pattern"));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, 2, "replacement"));
  HEDDLE_RETURN_IF_ERROR(
      CheckKinds(KnownScalar(context, 1), KnownScalar(context, 2), StatusCode::kInvalidArgument));
  return context.inputs[0];
}

// Of a failure, `column_of_failure` is the column that has it.
Result<Value> ReplaceTexts(const KernelCall& call, int64_t* column_of_failure) {
  const Frame& frame = call.inputs[0]->frame();
  HEDDLE_RETURN_IF_ERROR(
      CheckKinds(GivenScalar(call, 1), GivenScalar(call, 2), StatusCode::kFailedPrecondition));
  const std::string pattern = CellText(*GivenScalar(call, 1));
  const std::string replacement = CellText(*GivenScalar(call, 2));
  std::vector<Column> columns;
  for (int64_t j = 0; j < frame.columns(); ++j) {
    if (IsCancelled(call.context.cancelled)) return Cancelled("replace");
    *column_of_failure = j;
    const Column old = frame.column(j);
    std::vector<std::optional<std::string>> cells(static_cast<size_t>(frame.rows()));
    bool is_found = false;
    for (int64_t i = 0; i < frame.rows(); ++i) {
      if (old.IsMissing(i)) continue;
      std::string text;
      AppendCell(old, i, &text);
      const bool is_match = text == pattern;
      is_found |= is_match;
      cells[static_cast<size_t>(i)] = is_match ? replacement : std::move(text);
    }
    if (!is_found) {
      columns.push_back(old);
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(const Column texts, TextColumn(cells));
    Result<Column> column = Converted(texts, old.type(), old.MayMiss());
    if (!column.ok() && column.status().code() == StatusCode::kFailedPrecondition)
      return FailedPrecondition("replace: column {}: {}", frame.schema()->NameOf(j),
                                column.status().message());
    HEDDLE_RETURN_IF_ERROR(column.status());
    columns.push_back(*std::move(column));
  }
  return Value(Frame(frame.schema(), std::move(columns)));
}

Result<Value> RunReplaceTexts(const KernelCall& call) {
  int64_t column_of_failure = 0;
  return ReplaceTexts(call, &column_of_failure);
}

Status RunReplaceStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) return GiveReported(call, outputs);
  int64_t column_of_failure = 0;
  Result<Value> rows = ReplaceTexts(call.WholeCall(), &column_of_failure);
  return MakeReported(std::move(rows), column_of_failure, 0, outputs);
}

constexpr StagedForm kStaged = {
    .stages = kReportingStages, .result = StagedResult::kSameRows, .run = RunReplaceStage};

}  // namespace

/// replace(F, pattern, replacement) of a frame: cells whose text is that of the pattern become the
/// replacement. What replace() means where its target is a frame.
///
/// Shapes:  F and the result are m x n, columns keep their types.
/// Errors:  kFailedPrecondition for a pattern and a replacement of different kinds, and for a replacement
///          that is no cell of its column.
/// Cost:    makes the text of every cell once; copies the columns that have a match.
extern constexpr Operator kReplaceTexts = {.name = "replaceTexts",
                                           .parameters = "target pattern replacement",
                                           .min_inputs = 3,
                                           .max_inputs = 3,
                                           .infer = InferReplaceTexts,
                                           .input_use = FirstByRows,
                                           .staged = &kStaged,
                                           .run = RunReplaceTexts,
                                           .may_fail = true,
                                           .takes_frames = true,
                                           .role = Role::kReplaceText};

}  // namespace heddle::ops
