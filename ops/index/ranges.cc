// SPDX-License-Identifier: Apache-2.0
#include "ops/index/ranges.h"

#include <fmt/format.h>

namespace heddle::ops {

std::string RangeText(const Range& range) {
  if (range.all) return "";
  const std::string lower = range.lower.Text(), upper = range.upper.Text();
  return lower == upper ? lower : lower + ":" + upper;
}

namespace {

// nullptr if the range can lie in a dimension of this length (kUnknown: any), else what is wrong.
const char* Problem(const Range& range, int64_t length) {
  if (range.all) return nullptr;
  if (!range.lower.IsWithin(length) || !range.upper.IsWithin(length)) return "out of range";
  return range.IsKnown() && range.lower.number() > range.upper.number() ? "empty" : nullptr;
}

}  // namespace

Status CheckRanges(const Range& rows, const Range& columns, Shape shape, StatusCode code,
                   std::string_view what) {
  const char* problem = Problem(rows, shape.rows);
  if (problem == nullptr) problem = Problem(columns, shape.columns);
  if (problem == nullptr) return OkStatus();
  const bool empty = std::string_view(problem) == "empty";
  Status error(code, empty ? fmt::format("index [{},{}] is empty: its lower bound is above its upper bound",
                                         RangeText(rows), RangeText(columns))
                           : fmt::format("index [{},{}] is out of range for a {} {}", RangeText(rows),
                                         RangeText(columns), shape, what));
  return error.WithNote(empty ? "a range l:u needs l <= u; there are no empty index ranges"
                              : "rows and columns are counted from 1");
}

Result<Range> InferRange(const InferContext& context, int i) {
  Range range;
  const bool has_lower = IsGiven(context.node, i);
  const bool has_upper = IsGiven(context.node, i + 1);
  if (!has_lower && !has_upper) return Range{.all = true};
  const int lower_input = has_lower ? i : i + 1;
  const int upper_input = has_upper ? i + 1 : i;
  for (int input : {lower_input, upper_input}) {
    HEDDLE_RETURN_IF_ERROR(RequireScalar(context, input, "a bound of the index"));
    if (context.inputs[static_cast<size_t>(input)].value_type == ValueType::kString)
      return InvalidArgument("{}: a bound of the index must be a number, not a string", context.node.op);
  }
  range.single = context.node.inputs[static_cast<size_t>(lower_input)] ==
                 context.node.inputs[static_cast<size_t>(upper_input)];
  if (const Scalar* lower = KnownScalar(context, lower_input)) range.lower = Bound(*lower);
  if (const Scalar* upper = KnownScalar(context, upper_input)) range.upper = Bound(*upper);
  return range;
}

Range GivenRange(const Scalar* lower, const Scalar* upper) {
  if (lower == nullptr && upper == nullptr) return {.all = true};
  if (lower == nullptr) lower = upper;
  if (upper == nullptr) upper = lower;
  return {.lower = Bound(*lower), .upper = Bound(*upper)};
}

Range GivenRange(const KernelCall& call, int i) {
  return GivenRange(GivenScalar(call, i), GivenScalar(call, i + 1));
}

}  // namespace heddle::ops
