// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/structure/structure_text.h"

#include <fmt/format.h>

#include <cctype>

#include "core/values/scalar.h"
#include "ops/base/operator.h"

namespace heddle::ops {
namespace {

using Code = StructureProgram::Code;
using Step = StructureProgram::Step;

std::string NameOf(BinaryCode code) {
  for (const Operator* op : AllOperators())
    if (op->binary == code) return std::string(op->name);
  return "?";
}

std::string NameOf(UnaryCode code) {
  for (const Operator* op : AllOperators())
    if (op->unary == code) return std::string(op->name);
  return "?";
}

std::string UniformText(const StructureProgram::Uniform& uniform) {
  return uniform.size.empty() ? uniform.parameter : fmt::format("{}({})", uniform.size, uniform.parameter);
}

// What a step computes, of those that have a result.
std::string ValueText(const StructureProgram& program, const Step& step) {
  const auto infix = [&](std::string_view sign) { return fmt::format("r{} {} r{}", step.a, sign, step.b); };
  const auto index = static_cast<size_t>(step.index);
  switch (step.code) {
    case Code::kConstant: return Scalar(step.constant).ToText();
    case Code::kCopy: return fmt::format("r{}", step.a);
    case Code::kCell: return fmt::format("{}[r{}, r{}]", program.matrices[index], step.a, step.b);
    case Code::kUniform: return UniformText(program.uniforms[index]);
    case Code::kAdd: return infix("+");
    case Code::kSubtract: return infix("-");
    case Code::kMultiply: return infix("*");
    case Code::kDivide: return infix("/");
    case Code::kEqual: return infix("==");
    case Code::kNotEqual: return infix("!=");
    case Code::kLess: return infix("<");
    case Code::kLessEqual: return infix("<=");
    case Code::kAnd: return infix("&");
    case Code::kOr: return infix("|");
    case Code::kNot: return fmt::format("!r{}", step.a);
    case Code::kBinary: {
      const std::string name = NameOf(static_cast<BinaryCode>(step.index));
      const bool is_word = std::isalpha(static_cast<unsigned char>(name[0])) != 0;
      return is_word ? fmt::format("{}(r{}, r{})", name, step.a, step.b) : infix(name);
    }
    case Code::kUnary: return fmt::format("{}(r{})", NameOf(static_cast<UnaryCode>(step.index)), step.a);
    case Code::kTruncate: return fmt::format("as.integer(r{})", step.a);
    case Code::kBoolean: return fmt::format("as.logical(r{})", step.a);
    case Code::kDouble: return fmt::format("as.double(r{})", step.a);
    case Code::kRounds: return fmt::format("rounds from r{} to r{} by r{}", step.a, step.b, step.index);
    case Code::kStep: return fmt::format("step of r{}:r{}", step.a, step.b);
    default: return "";
  }
}

std::string StepText(const StructureProgram& program, const Step& step) {
  switch (step.code) {
    case Code::kWhole: return fmt::format("r{} must be a whole number", step.a);
    case Code::kJump: return fmt::format("go to {}", step.index);
    case Code::kBranch: return fmt::format("unless r{} go to {}", step.a, step.index);
    case Code::kCall: return fmt::format("call r{}", step.a);
    case Code::kGive: return fmt::format("give r{}", step.a);
    case Code::kNeed: return fmt::format("r{} must have a value", step.a);
    case Code::kEnd: return "end";
    default: return fmt::format("r{} = {}", step.target, ValueText(program, step));
  }
}

}  // namespace

std::string ToText(const StructureProgram& program) {
  std::string text;
  for (size_t i = 0; i < program.steps.size(); ++i)
    text += fmt::format("{:>3}: {}\n", i, StepText(program, program.steps[i]));
  return text;
}

}  // namespace heddle::ops
