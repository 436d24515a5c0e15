// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "core/text/double_text.h"
#include "ops/base/arguments.h"
#include "ops/base/operator.h"
#include "ops/base/whole_number.h"

// Tensors hold one value in all their cells (compiler/build/tensors.cc), so that they are two scalars: the
// value, and the dimensions as a text of numbers with blanks between them.
namespace heddle::ops {
namespace {

using Dimensions = std::vector<int64_t>;

constexpr StatusCode kBad = StatusCode::kFailedPrecondition;

Status WrongDimension(std::string_view text) {
  return FailedPrecondition("tensor: a dimension must be a whole number from 1 on, not {}", text);
}

Result<Dimensions> Checked(Dimensions dimensions) {
  if (dimensions.size() < 2)
    return FailedPrecondition("tensor: dims must be two numbers or more, there are {}", dimensions.size());
  int64_t cells = 1;
  for (const int64_t size : dimensions)
    if (size < 1) return WrongDimension(std::to_string(size));
  for (const int64_t size : dimensions)
    if (__builtin_mul_overflow(cells, size, &cells))
      return FailedPrecondition("tensor: there are more cells than can be counted");
  return dimensions;
}

Result<Dimensions> DimensionsIn(std::string_view text) {
  Dimensions dimensions;
  while (true) {
    const size_t begin = text.find_first_not_of(" \t\n");
    if (begin == std::string_view::npos) return Checked(std::move(dimensions));
    const std::string_view word = text.substr(begin, text.find_first_of(" \t\n", begin) - begin);
    const std::optional<double> number = ParseDouble(word);
    if (!number) return WrongDimension(fmt::format("'{}'", word));
    HEDDLE_ASSIGN_OR_RETURN(dimensions.emplace_back(),
                            RequireWholeNumber(Scalar(*number), "tensor", "a dimension", kBad));
    text.remove_prefix(begin + word.size());
  }
}

Result<Dimensions> DimensionsOf(const Value& dims) {
  if (dims.IsScalar()) return DimensionsIn(dims.scalar().ToText());
  const Matrix& numbers = dims.matrix();
  if (numbers.rows() != 1 && numbers.columns() != 1)
    return FailedPrecondition("tensor: dims must be a row or a column of numbers, not {}", numbers.shape());
  Dimensions dimensions;
  for (int64_t i = 0; i < numbers.rows(); ++i)
    for (int64_t j = 0; j < numbers.columns(); ++j) {
      HEDDLE_ASSIGN_OR_RETURN(dimensions.emplace_back(),
                              RequireWholeNumber(Scalar(numbers.At(i, j)), "tensor", "a dimension", kBad));
    }
  return Checked(std::move(dimensions));
}

std::string TextOf(const Dimensions& dimensions) { return fmt::format("{}", fmt::join(dimensions, " ")); }

// ---- tensorDims(dims): the dimensions as a text. tensorDims(dims, of): the same if a tensor with the
//      dimensions `of` goes into one with `dims` cell by cell: as many, each the same or 1.

Result<ValueInfo> InferText(const InferContext&) { return ValueInfo::OfScalar(ValueType::kString); }
Result<ValueInfo> InferDims(const InferContext& context) {
  if (context.inputs[0].IsFrame())
    return InvalidArgument("tensor: dims must be a text or a matrix, not a frame");
  return ValueInfo::OfScalar(ValueType::kString);
}

Result<Scalar> Fitting(const Dimensions& dimensions, const Scalar* of) {
  if (of == nullptr) return Scalar(TextOf(dimensions));
  HEDDLE_ASSIGN_OR_RETURN(const Dimensions other, DimensionsIn(of->ToText()));
  bool fits = other.size() == dimensions.size();
  for (size_t i = 0; fits && i < other.size(); ++i) fits = other[i] == 1 || other[i] == dimensions[i];
  if (fits) return Scalar(TextOf(dimensions));
  return FailedPrecondition("a tensor of {} goes into none of {} cell by cell", fmt::join(other, " x "),
                            fmt::join(dimensions, " x "))
      .WithNote("the second has as many dimensions as the first, each of them the same or 1");
}

Result<Scalar> EvaluateDims(const Operator&, const Node&, std::span<const Scalar* const> inputs) {
  HEDDLE_ASSIGN_OR_RETURN(const Dimensions dimensions, DimensionsIn(inputs[0]->ToText()));
  return Fitting(dimensions, inputs.size() > 1 ? inputs[1] : nullptr);
}

Result<Value> RunDims(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Dimensions dimensions, DimensionsOf(*call.inputs[0]));
  HEDDLE_ASSIGN_OR_RETURN(Scalar text, Fitting(dimensions, GivenScalar(call, 1)));
  return Value(std::move(text));
}

Result<ValueType> TypeOfText(const Operator&, std::span<const ValueType>) { return ValueType::kString; }

// ---- tensorCells(dims): how many cells there are.

Result<ValueInfo> InferCells(const InferContext&) { return ValueInfo::OfScalar(ValueType::kInteger); }

Result<Scalar> EvaluateCells(const Operator&, const Node&, std::span<const Scalar* const> inputs) {
  HEDDLE_ASSIGN_OR_RETURN(const Dimensions dimensions, DimensionsIn(inputs[0]->ToText()));
  int64_t cells = 1;
  for (const int64_t size : dimensions) cells *= size;
  return Scalar(cells);
}

Result<ValueType> TypeOfCells(const Operator&, std::span<const ValueType>) { return ValueType::kInteger; }

// ---- tensorText(value, dims, decimal): toString() of a tensor, brackets around the cells of each index.

void AppendCells(const std::string& cell, std::span<const int64_t> dimensions, size_t depth,
                 std::string* text) {
  text->push_back('[');
  for (int64_t i = 0; i < dimensions[0]; ++i) {
    if (dimensions.size() == 1) {
      if (i > 0) text->push_back(' ');
      text->append(cell);
      continue;
    }
    if (i > 0) text->append("\n").append(depth + 1, ' ');
    AppendCells(cell, dimensions.subspan(1), depth + 1, text);
  }
  text->push_back(']');
}

Result<Scalar> EvaluateText(const Operator&, const Node&, std::span<const Scalar* const> inputs) {
  HEDDLE_ASSIGN_OR_RETURN(const Dimensions dimensions, DimensionsIn(inputs[1]->ToText()));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t decimals,
                          RequireWholeNumber(*inputs[2], "toString", "decimal", kBad));
  const Scalar& value = *inputs[0];
  const std::string cell =
      value.type() == ValueType::kDouble
          ? FormatFixed(value.AsDouble(), static_cast<int>(std::clamp<int64_t>(decimals, 0, 1000)))
      : value.IsString() ? fmt::format("\"{}\"", value.AsString())
                         : value.ToText();
  std::string text;
  AppendCells(cell, dimensions, 0, &text);
  text.push_back('\n');
  return Scalar(std::move(text));
}

template <auto Evaluate>
Result<Value> RunOnScalars(const KernelCall& call) {
  std::vector<const Scalar*> inputs;
  for (const Value* input : call.inputs) inputs.push_back(&input->scalar());
  HEDDLE_ASSIGN_OR_RETURN(Scalar result, Evaluate(*FindOperator(call.node.op), call.node, inputs));
  return Value(std::move(result));
}

}  // namespace

extern constexpr Operator kTensorDims = {.name = "tensorDims",
                                         .parameters = "dims of?",
                                         .min_inputs = 1,
                                         .max_inputs = 2,
                                         .infer = InferDims,
                                         .run = RunDims,
                                         .may_fail = true,
                                         .scalar_type = TypeOfText,
                                         .evaluate = EvaluateDims};

extern constexpr Operator kTensorCells = {.name = "tensorCells",
                                          .parameters = "dims",
                                          .min_inputs = 1,
                                          .max_inputs = 1,
                                          .infer = InferCells,
                                          .run = RunOnScalars<EvaluateCells>,
                                          .may_fail = true,
                                          .scalar_type = TypeOfCells,
                                          .evaluate = EvaluateCells};

extern constexpr Operator kTensorText = {.name = "tensorText",
                                         .parameters = "value dims decimal",
                                         .min_inputs = 3,
                                         .max_inputs = 3,
                                         .infer = InferText,
                                         .run = RunOnScalars<EvaluateText>,
                                         .may_fail = true,
                                         .scalar_type = TypeOfText,
                                         .evaluate = EvaluateText};

}  // namespace heddle::ops
