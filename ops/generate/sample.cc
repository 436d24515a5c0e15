// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/base/arguments.h"
#include "ops/base/whole_number.h"
#include "ops/catalog.h"
#include "ops/generate/random_stream.h"
#include "ops/generate/seed.h"

namespace heddle::ops {
namespace {

enum Input { kRange, kSize, kReplace, kSeed };

constexpr int64_t kDrawsBetweenPolls = 1 << 20;

// What is wrong with the values, as far as they are known.
Status CheckSample(const Scalar* range, const Scalar* size, bool may_replace, StatusCode code) {
  if (range == nullptr) return OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t most, RequireWholeNumber(*range, "sample", "range", code));
  if (most < 1) return Status(code, fmt::format("sample: range must be at least 1, not {}", range->ToText()));
  if (size == nullptr || may_replace) return OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(const int64_t count, RequireSize(*size, "sample", "size", code));
  if (count > most)
    return Status(code, fmt::format("sample: cannot draw {} of {} numbers without replacement", count, most))
        .WithNote("sample(range, size, TRUE) draws a number as often as it comes");
  if (most <= std::numeric_limits<int32_t>::max()) return OkStatus();
  return ResourceExhausted("sample: cannot draw of {} numbers without replacement", most)
      .WithNote(fmt::format("it works up to {}", std::numeric_limits<int32_t>::max()));
}

Result<ValueInfo> InferSample(const InferContext& context) {
  constexpr std::string_view kNames[] = {"range", "size", "replace", "seed"};
  for (int i = kRange; i <= kSeed; ++i) {
    if (i >= kReplace && !IsGiven(context.node, i)) continue;
    HEDDLE_RETURN_IF_ERROR(RequireScalar(context, i, kNames[i]));
    if (context.inputs[static_cast<size_t>(i)].value_type == ValueType::kString)
      return InvalidArgument("sample: argument {} is a string, not a number", i + 1);
  }
  const Scalar* const replace = KnownScalar(context, kReplace);
  const bool may_replace = IsGiven(context.node, kReplace) && (replace == nullptr || replace->AsBoolean());
  HEDDLE_RETURN_IF_ERROR(CheckSample(KnownScalar(context, kRange), KnownScalar(context, kSize), may_replace,
                                     StatusCode::kInvalidArgument));
  if (const Scalar* const seed = KnownScalar(context, kSeed))
    HEDDLE_RETURN_IF_ERROR(
        RequireWholeNumber(*seed, "sample", "seed", StatusCode::kInvalidArgument).status());
  HEDDLE_ASSIGN_OR_RETURN(const int64_t size, InferSize(context, kSize, "size", kUnknown));
  return ValueInfo::OfMatrix({size, 1});
}

// Reservoir sampling, then the numbers change places (Knuth, The art of computer programming, volume 2,
// section 3.4.2, algorithms R and P).
Status DrawWithout(const KernelCall& call, int32_t range, JavaRandom& random, std::vector<int32_t>* numbers) {
  std::iota(numbers->begin(), numbers->end(), 1);
  const auto size = static_cast<int32_t>(numbers->size());
  int32_t* const out = numbers->data();
  for (int64_t i = int64_t{size} + 1; i <= range; ++i) {
    if (i % kDrawsBetweenPolls == 0 && IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    if (random.NextInt(static_cast<int32_t>(i)) < size) out[random.NextInt(size)] = static_cast<int32_t>(i);
  }
  for (int32_t i = 0; i + 1 < size; ++i) std::swap(out[i], out[random.NextInt(size - i) + i]);
  return OkStatus();
}

// A rank goes through the whole stream of random numbers, and keeps its rows.
Result<Value> RunSample(const KernelCall& call) {
  const bool replace = BooleanOr(call, kReplace, false);
  HEDDLE_RETURN_IF_ERROR(CheckSample(GivenScalar(call, kRange), GivenScalar(call, kSize), replace,
                                     StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t size, GivenSize(call, kSize, "size", 0));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t seed, SeedOf(call, kSeed));
  const int64_t range = GivenScalar(call, kRange)->AsInteger();
  const bool is_part = call.total_rows > 0;
  const int64_t begin = is_part ? call.row_begin : 0, end = is_part ? call.row_end : size;
  JavaRandom random(seed);
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(end - begin, 1));
  double* const out = result.mutable_data();
  if (!replace) {
    std::vector<int32_t> numbers(static_cast<size_t>(size));
    HEDDLE_RETURN_IF_ERROR(DrawWithout(call, static_cast<int32_t>(range), random, &numbers));
    std::copy(numbers.begin() + begin, numbers.begin() + end, out);
    return Value(std::move(result));
  }
  for (int64_t i = 0; i < end; ++i) {
    if (i % kDrawsBetweenPolls == 0 && IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    const int64_t number = 1 + random.NextLong(range);
    if (i >= begin) out[i - begin] = static_cast<double>(number);
  }
  return Value(std::move(result));
}

RowRule SampleRowRule(const Node&, std::span<const ValueInfo>) { return RowRule::kGenerate; }

}  // namespace

/// sample(range, size, replace=FALSE, seed=-1), or sample(range, size, seed): `size` of the whole numbers 1
/// ... range, in random order; none twice, unless replace is TRUE. The same numbers as SystemDS draws. No
/// seed, or -1: as of rand().
///
/// Shapes:  size x 1.
/// Errors:  without replacement: more numbers than there are, or a range beyond 2^31 - 1.
/// Cost:    one number of the stream for each of the range without replacement, for each drawn with it.
/// Rows:    a rank draws all, and keeps its own.
extern constexpr Operator kSample = {.name = "sample",
                                     .form = CallForm::kSample,
                                     .parameters = "range size replace? seed?",
                                     .min_inputs = 2,
                                     .max_inputs = 4,
                                     .infer = InferSample,
                                     .row_rule = SampleRowRule,
                                     .run = RunSample,
                                     .may_fail = true,
                                     .seed_input = kSeed};

}  // namespace heddle::ops
