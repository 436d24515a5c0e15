// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/loop_range.h"

#include <cmath>

#include "compiler/optimize/rewrite.h"
#include "ops/base/whole_number.h"

namespace heddle::compiler {

const Scalar* AssignedNumber(const Graph& graph, std::string_view name) {
  const Scalar* value = nullptr;
  for (const Node& node : graph.nodes) {
    if (IsOrdered(node)) return nullptr;
    if (node.Is("assign") && node.Text("name") == name) value = graph[node.inputs[0]].FindAttribute("value");
  }
  return value == nullptr || value->IsString() ? nullptr : value;  // a string is an error of the run
}

Result<std::optional<int64_t>> LoopBound(const Scalar& bound) {
  if (const std::optional<int64_t> whole = ops::WholeNumber(bound)) return whole;
  if (bound.IsString()) return FailedPrecondition("a bound of the loop is {}, not a number", bound.ToText());
  if (std::isnan(bound.AsDouble())) return std::optional<int64_t>();
  return FailedPrecondition("a bound of the loop is {}, which is no 64-bit integer", bound.ToText());
}

std::optional<LoopRange> RangeOf(const Block& loop) {
  const Scalar* from = AssignedNumber(loop.graph, Block::kFrom);
  const Scalar* to = AssignedNumber(loop.graph, Block::kTo);
  const Scalar* increment = loop.has_increment ? AssignedNumber(loop.graph, Block::kIncrement) : nullptr;
  if (from == nullptr || to == nullptr || (loop.has_increment && increment == nullptr)) return std::nullopt;
  return RangeOf(*from, *to, increment);
}

std::optional<LoopRange> RangeOf(const Scalar& from, const Scalar& to, const Scalar* increment) {
  const Scalar one(int64_t{1});
  bool has_nan = false;
  for (const Scalar* number : {&from, &to, increment != nullptr ? increment : &one}) {
    if (number->IsString()) return std::nullopt;
    const bool is_nan = std::isnan(number->AsDouble());
    if (!is_nan && !ops::WholeNumber(*number)) return std::nullopt;  // An error of the run.
    has_nan |= is_nan;
  }
  if (has_nan) return LoopRange{.is_empty = true};
  const int64_t first = from.AsInteger(), bound = to.AsInteger();
  if (increment == nullptr)
    return LoopRange{.first = first,
                     .step = first <= bound ? 1 : -1,
                     .last = bound};  // from:to counts down if it cannot count up
  const int64_t step = increment->AsInteger();
  if (step == 0) return LoopRange{.is_empty = true};
  int64_t distance = 0;
  if (__builtin_sub_overflow(bound, first, &distance)) return std::nullopt;
  if (step > 0 ? distance < 0 : distance > 0) return LoopRange{.is_empty = true};
  return LoopRange{.first = first, .step = step, .last = bound - (step == -1 ? 0 : distance % step)};
}

}  // namespace heddle::compiler
