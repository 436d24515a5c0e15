// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <string>

#include "ops/arguments.h"
#include "ops/catalog.h"
#include "ops/distribution/distribution.h"

// cdf, icdf and the functions of one distribution each: pnorm, qnorm, pexp, qexp, pchisq, qchisq, pf, qf, pt,
// qt.
//
// Inputs:  target, mean, sd, df, df1, df2, rate, lower.tail; all scalars, all but target may be left out.
//          The attribute dist of cdf and icdf names the distribution, in letters of any case.
// Result:  a double: P(X <= target), or P(X > target) with lower.tail=FALSE; of the q functions and icdf the
// x
//          with P(X <= x) = target.
// Errors:  degrees of freedom that the distribution needs and that are left out; sd, rate and degrees of
//          freedom that are not positive; a target of the q functions outside [0, 1].
// Source:  Boost.Math. SystemDS rounds degrees of freedom down, and computes upper tails as 1 - p.
namespace heddle::ops {
namespace {

enum Input { kTarget, kMean, kSd, kDf, kDf1, kDf2, kRate, kLowerTail };
constexpr std::array<std::string_view, 8> kNames = {"target", "mean", "sd",   "df",
                                                    "df1",    "df2",  "rate", "lower.tail"};

struct NamedFamily {
  std::string_view name;    // As dist= has it.
  std::string_view suffix;  // Behind p and q.
  std::string_view title;
  DistributionFamily family;
};
constexpr NamedFamily kFamilies[] = {
    {"normal", "norm", "the normal distribution", DistributionFamily::kNormal},
    {"exp", "exp", "the exponential distribution", DistributionFamily::kExponential},
    {"chisq", "chisq", "the chi-squared distribution", DistributionFamily::kChiSquared},
    {"f", "f", "the F distribution", DistributionFamily::kF},
    {"t", "t", "the t distribution", DistributionFamily::kT},
};

Result<const NamedFamily*> FamilyOf(const Node& node) {
  if (node.Is("cdf") || node.Is("icdf")) {
    std::string name = node.Text("dist");
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    for (const NamedFamily& family : kFamilies)
      if (family.name == name) return &family;
    return InvalidArgument("{}: unknown distribution dist=\"{}\"", node.op, node.Text("dist"))
        .WithNote("it is \"normal\", \"exp\", \"chisq\", \"f\" or \"t\"");
  }
  for (const NamedFamily& family : kFamilies)
    if (std::string_view(node.op).substr(1) == family.suffix) return &family;
  return Internal("{} is no distribution", node.op);
}

bool IsInverse(const Node& node) { return node.op[0] == 'q' || node.Is("icdf"); }

// The parameters that a family cannot do without.
std::array<int, 2> Needed(DistributionFamily family) {
  switch (family) {
    case DistributionFamily::kChiSquared:
    case DistributionFamily::kT: return {kDf, kDf};
    case DistributionFamily::kF: return {kDf1, kDf2};
    case DistributionFamily::kNormal:
    case DistributionFamily::kExponential: break;
  }
  return {kTarget, kTarget};
}

// What is wrong with the values, as far as they are known. nullptr: not known, or left out.
using Values = std::array<const Scalar*, kNames.size()>;
Status CheckValues(const Node& node, const Values& values, StatusCode code) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == nullptr || i == kLowerTail) continue;
    if (values[i]->IsString())
      return Status(code, fmt::format("{}: {} must be a number, not the string \"{}\"", node.op, kNames[i],
                                      values[i]->ToText()));
    const double x = values[i]->AsDouble();
    if (i == kTarget && IsInverse(node) && (x < 0 || x > 1))
      return Status(code, fmt::format("{}: target must be a probability between 0 and 1, not {}", node.op,
                                      values[i]->ToText()));
    if (i == kMean && !std::isfinite(x))
      return Status(code, fmt::format("{}: mean must be finite, not {}", node.op, values[i]->ToText()));
    if (i >= kSd && !(x > 0 && std::isfinite(x)))
      return Status(code, fmt::format("{}: {} must be positive and finite, not {}", node.op, kNames[i],
                                      values[i]->ToText()));
  }
  return OkStatus();
}

Result<ValueInfo> InferDistribution(const InferContext& context) {
  HEDDLE_ASSIGN_OR_RETURN(const NamedFamily* const family, FamilyOf(context.node));
  Values values{};
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const auto input = static_cast<int>(i);
    if (i != kTarget && !IsGiven(context.node, input)) continue;
    HEDDLE_RETURN_IF_ERROR(RequireScalar(context, input, kNames[i]));
    values[i] = KnownScalar(context, input);
  }
  for (const int needed : Needed(family->family))
    if (!IsGiven(context.node, needed))
      return InvalidArgument("{}: {} is missing", context.node.op, kNames[static_cast<size_t>(needed)])
          .WithNote(family->family == DistributionFamily::kF
                        ? "the F distribution needs the degrees of freedom df1 and df2"
                        : fmt::format("{} needs the degrees of freedom df", family->title));
  HEDDLE_RETURN_IF_ERROR(CheckValues(context.node, values, StatusCode::kInvalidArgument));
  return ValueInfo::OfScalar(ValueType::kDouble);
}

// Inputs that are left out at the end may be missing from the span.
Result<Scalar> EvaluateDistribution(const Operator&, const Node& node,
                                    std::span<const Scalar* const> inputs) {
  HEDDLE_ASSIGN_OR_RETURN(const NamedFamily* const family, FamilyOf(node));
  Values values{};
  std::copy(inputs.begin(), inputs.end(), values.begin());
  HEDDLE_RETURN_IF_ERROR(CheckValues(node, values, StatusCode::kFailedPrecondition));
  const auto number = [&](Input input, double otherwise) {
    return values[input] == nullptr ? otherwise : values[input]->AsDouble();
  };
  const bool is_f = family->family == DistributionFamily::kF;
  const Distribution distribution = {.family = family->family,
                                     .mean = number(kMean, 0),
                                     .sd = number(kSd, 1),
                                     .rate = number(kRate, 1),
                                     .degrees = number(is_f ? kDf1 : kDf, 1),
                                     .denominator = number(kDf2, 1)};
  const double target = values[kTarget]->AsDouble();
  const bool lower = values[kLowerTail] == nullptr || values[kLowerTail]->AsBoolean();
  const Result<double> found = IsInverse(node)
                                   ? Quantile(distribution, target)
                                   : Probability(distribution, target, lower ? Tail::kLower : Tail::kUpper);
  if (found.ok()) return Scalar(*found);
  Status failure(found.status().code(), fmt::format("{}: {}", node.op, found.status().message()));
  for (const std::string& note : found.status().notes()) failure = failure.WithNote(note);
  return failure;
}

Result<ValueType> DistributionType(const Operator&, std::span<const ValueType>) { return ValueType::kDouble; }

Result<Value> RunDistribution(const KernelCall& call) {
  std::array<const Scalar*, kNames.size()> inputs{};
  for (size_t i = 0; i < call.inputs.size(); ++i) inputs[i] = GivenScalar(call, static_cast<int>(i));
  HEDDLE_ASSIGN_OR_RETURN(Scalar result,
                          EvaluateDistribution(*FindOperator(call.node.op), call.node, inputs));
  return Value(std::move(result));
}

constexpr Operator OfOne(std::string_view name, std::string_view parameters) {
  return {.name = name,
          .form = CallForm::kNamed,
          .parameters = parameters,
          .min_inputs = 1,
          .max_inputs = static_cast<int>(std::count(parameters.begin(), parameters.end(), ' ')) + 1 -
                        static_cast<int>(std::count(parameters.begin(), parameters.end(), '@')),
          .infer = InferDistribution,
          .run = RunDistribution,
          .may_fail = true,
          .scalar_type = DistributionType,
          .evaluate = EvaluateDistribution};
}
constexpr std::string_view kOfProbabilities = "target mean? sd? df? df1? df2? rate? lower.tail?";
constexpr std::string_view kOfQuantiles = "target mean? sd? df? df1? df2? rate?";

constexpr Operator kOperators[] = {
    OfOne("cdf", "target @dist mean? sd? df? df1? df2? rate? lower.tail?"),
    OfOne("icdf", "target @dist mean? sd? df? df1? df2? rate?"),
    OfOne("pnorm", kOfProbabilities),
    OfOne("qnorm", kOfQuantiles),
    OfOne("pexp", kOfProbabilities),
    OfOne("qexp", kOfQuantiles),
    OfOne("pchisq", kOfProbabilities),
    OfOne("qchisq", kOfQuantiles),
    OfOne("pf", kOfProbabilities),
    OfOne("qf", kOfQuantiles),
    OfOne("pt", kOfProbabilities),
    OfOne("qt", kOfQuantiles),
};

}  // namespace

std::span<const Operator> DistributionOperators() { return kOperators; }

}  // namespace heddle::ops
