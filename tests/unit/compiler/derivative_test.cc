// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "compiler/rules/rule_pattern.h"
#include "ops/base/operator.h"
#include "ops/simd/cellwise/math.h"

// Operator::derivative is DML text about a number x and the value y there; a difference quotient is what it
// must be near to.
namespace heddle::compiler {
namespace {

double ValueAt(const Graph& formula, double x, double y) {
  std::vector<Scalar> values;
  for (const Node& node : formula.nodes) {
    std::vector<const Scalar*> inputs;
    for (const NodeId input : node.inputs)
      inputs.push_back(input == kNoNode ? nullptr : &values[static_cast<size_t>(input)]);
    if (node.Is("variable")) {
      values.emplace_back(node.Text("name") == "y" ? y : x);
    } else if (node.Is("literal")) {
      values.push_back(*node.FindAttribute("value"));
    } else if (node.Is("assign")) {
      values.push_back(*inputs[0]);
    } else {
      const Result<Scalar> value = ops::EvaluateScalar(node, inputs);
      EXPECT_TRUE(value.ok()) << value.status().ToString();
      values.push_back(value.ok() ? *value : Scalar(0.0));
    }
  }
  return values.back().AsDouble();
}

TEST(DerivativeTest, IsNearADifferenceQuotient) {
  int checked = 0;
  for (const ops::Operator* op : ops::AllOperators()) {
    if (op->derivative.empty()) continue;
    ASSERT_TRUE(op->unary.has_value()) << op->name;
    const Graph formula = CompilePattern(op->derivative);
    for (const double x : {0.1, 0.3, 0.7, 0.95}) {
      constexpr double kStep = 1e-5;
      const double quotient =
          (ops::Apply(*op->unary, x + kStep) - ops::Apply(*op->unary, x - kStep)) / (2 * kStep);
      EXPECT_NEAR(ValueAt(formula, x, ops::Apply(*op->unary, x)), quotient, 1e-8 * (1 + std::fabs(quotient)))
          << op->name << " at " << x;
    }
    ++checked;
  }
  EXPECT_GE(checked, 14);
}

}  // namespace
}  // namespace heddle::compiler
