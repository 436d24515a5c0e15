// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <string>

#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
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
  if (node.Is("cdf") || node.Is("icdf") || node.Is("density")) {
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

bool IsDensity(const Node& node) { return node.Is("density"); }

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
  const Result<double> found = IsInverse(node) ? Quantile(distribution, target)
                               : IsDensity(node)
                                   ? Density(distribution, target)
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

// Whether the distributions of a family differ by this parameter.
bool HasParameter(DistributionFamily family, size_t input) {
  switch (input) {
    case kTarget: return true;
    case kMean:
    case kSd: return family == DistributionFamily::kNormal;
    case kDf: return family == DistributionFamily::kChiSquared || family == DistributionFamily::kT;
    case kDf1:
    case kDf2: return family == DistributionFamily::kF;
    case kRate: return family == DistributionFamily::kExponential;
    default: return false;
  }
}

// With the density f: P changes by f with the target, by -f with the mean, by -f z with sd, z = (x - mean) /
// sd, and by f x / rate with the rate; a quantile by 1 / f with p, and so that P stays what it is with the
// others.
void DifferentiateDistribution(AdjointCall& call) {
  const Node& node = call.node();
  const Result<const NamedFamily*> family = FamilyOf(node);
  if (!family.ok()) return call.Refuse(family.status().message());
  const auto given = [&](Input input) {
    const bool is_there = input < node.inputs.size() && node.inputs[input] != kNoNode;
    return is_there ? call.Input(input) : kNoNode;
  };
  const auto or_else = [&](Input input, double value) {
    const NodeId node_given = given(input);
    return node_given == kNoNode ? call.Literal(Scalar(value)) : node_given;
  };
  for (const Input degrees : {kDf, kDf1, kDf2})
    if (call.IsWanted(degrees) && HasParameter((*family)->family, degrees))
      return call.Refuse(
          fmt::format("the derivative of {}() by {} has no closed form", node.op, kNames[degrees]));
  const bool is_inverse = IsInverse(node);
  const NodeId x = is_inverse ? call.Computed() : call.Input(kTarget);
  const NodeId density =
      call.Add("density", {x, given(kMean), given(kSd), given(kDf), given(kDf1), given(kDf2), given(kRate)},
               {{"dist", Scalar(std::string((*family)->name))}});
  const NodeId lower = is_inverse ? kNoNode : given(kLowerTail);
  // What a step of 1 in x gives to the adjoint; of a quantile what keeps P gives in its place.
  const NodeId step = is_inverse ? call.Adjoint()
                      : lower == kNoNode
                          ? call.Formula("dy * f", {{"f", density}})
                          : call.Formula("dy * f * ifelse(lower, 1, -1)", {{"f", density}, {"lower", lower}});
  const auto give = [&](Input input, std::string_view formula) {
    if (!call.IsWanted(input) || !HasParameter((*family)->family, input)) return;
    call.Give(input, call.Formula(formula, {{"g", step},
                                            {"f", density},
                                            {"v", x},
                                            {"m", or_else(kMean, 0)},
                                            {"s", or_else(kSd, 1)},
                                            {"r", or_else(kRate, 1)}}));
  };
  give(kTarget, is_inverse ? "g / f" : "g");
  give(kMean, is_inverse ? "g" : "-g");
  give(kSd, is_inverse ? "g * ((v - m) / s)" : "-g * ((v - m) / s)");
  give(kRate, is_inverse ? "-g * (v / r)" : "g * (v / r)");
}

constexpr Operator OfOne(std::string_view name, std::string_view parameters, bool differentiable = true) {
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
          .evaluate = EvaluateDistribution,
          .adjoints = differentiable ? "*" : "",
          .differentiate = differentiable ? DifferentiateDistribution : nullptr};
}
// The derivative of cdf() by its target: for the derivatives of all of these functions.
constexpr Operator Density() {
  Operator op = OfOne("density", "target @dist mean? sd? df? df1? df2? rate?", /*differentiable=*/false);
  op.form = CallForm::kNone;
  return op;
}
constexpr std::string_view kOfProbabilities = "target mean? sd? df? df1? df2? rate? lower.tail?";
constexpr std::string_view kOfQuantiles = "target mean? sd? df? df1? df2? rate?";

constexpr Operator kOperators[] = {
    OfOne("cdf", "target @dist mean? sd? df? df1? df2? rate? lower.tail?"),
    OfOne("icdf", "target @dist mean? sd? df? df1? df2? rate?"),
    Density(),
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
