// SPDX-License-Identifier: Apache-2.0
// The derivative of every operator that has one, against central differences: in random directions of every
// input, with operands of every shape that broadcasting takes. An operator of the catalog that has a
// derivative and is in none of the formulas here fails as well.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "compiler/explain/explain.h"
#include "compiler/gradient/adjoint_graph.h"
#include "compiler/optimize/infer.h"
#include "compiler/optimize/pass.h"
#include "compiler/rules/rule_pattern.h"
#include "ops/base/operator.h"
#include "tests/property/evaluate_graph.h"

namespace heddle::compiler {
namespace {

using testing_support::EvaluateGraph;
using testing_support::Variables;

struct Operand {
  std::string name;
  Shape shape = {0, 0};  ///< 0 x 0: a scalar.
};

/// A formula of operands, whose cells are between `least` and `most`.
struct Case {
  std::string formula;
  std::vector<Operand> operands;
  double least = 0.4;
  double most = 0.9;
};

class GradientCase {
 public:
  explicit GradientCase(const Case& given) : given_(given), random_(7) {
    for (const Operand& operand : given.operands) {
      if (operand.shape == Shape{0, 0}) {
        variables_[operand.name] = Value(Scalar(Number()));
      } else {
        variables_[operand.name] = Value(Filled(operand.shape));
      }
    }
  }

  void Run() {
    SingleAssignment code;
    Block block;
    block.graph = Forward();
    for (const Operand& operand : given_.operands) {
      const Value& value = variables_.at(operand.name);
      code.types[operand.name] =
          value.IsScalar() ? ValueInfo::OfScalar(ValueType::kDouble) : ValueInfo::OfMatrix(Shape());
    }
    const NodeId result = block.graph.nodes.back().inputs[0];
    code.types["r"] = TypeOnly(block.graph[result].info);
    code.function.body = {block};
    std::set<std::string> names;
    for (const Operand& operand : given_.operands) names.insert(operand.name);
    const Activity activity(code, names, {"r"});
    int next_name = 0;
    AdjointState state{&activity, &code.types, {"r"}, &next_name};
    const Result<Graph> backward = AdjointGraph(&block, &state);
    ASSERT_TRUE(backward.ok()) << backward.status().ToString();

    Variables values = variables_;
    const Graph forward = Inferred(block.graph, values);
    for (auto& [name, value] : EvaluateGraph(forward, variables_)) values[name] = value;
    const Value weights = Like(values.at("r"));
    values[AdjointName("r")] = weights;
    const Graph adjoint = Inferred(*backward, values);
    Variables adjoints = EvaluateGraph(adjoint, values);
    // The passes put other operators in the place of sumTo and spreadTo.
    PassOptions options;
    options.infos_are_exact = true;
    const Result<Graph> rewritten = RunGraphPasses(adjoint, options);
    ASSERT_TRUE(rewritten.ok()) << rewritten.status().ToString();
    const Variables again = EvaluateGraph(*rewritten, values);
    for (const Operand& operand : given_.operands) {
      SCOPED_TRACE("by " + operand.name);
      if (!activity.IsActive(operand.name)) {  // It changes the result by steps alone.
        const Value unmoved = Like(variables_.at(operand.name));
        EXPECT_NEAR(Quotient(operand.name, unmoved, weights), 0, 1e-9);
        continue;
      }
      ASSERT_TRUE(state.present.contains(operand.name));
      const Value& found = adjoints.at(AdjointName(operand.name));
      ASSERT_EQ(found.shape(), variables_.at(operand.name).shape());
      const Value direction = Like(found);
      const double expected = Quotient(operand.name, direction, weights);
      EXPECT_NEAR(Dot(found, direction), expected, 2e-7 * (1 + std::fabs(expected)))
          << ExplainGraph(forward) << ExplainGraph(adjoint);
      EXPECT_NEAR(Dot(again.at(AdjointName(operand.name)), direction), expected,
                  2e-7 * (1 + std::fabs(expected)))
          << ExplainGraph(*rewritten);
    }
  }

 private:
  double Number() {
    return given_.least + (given_.most - given_.least) * static_cast<double>(random_()) / 4294967296.0;
  }
  Matrix Filled(Shape shape) {
    Matrix matrix = *Matrix::Dense(shape.rows, shape.columns);
    for (int64_t i = 0; i < matrix.cells(); ++i) matrix.mutable_data()[i] = Number();
    return matrix;
  }
  Value Like(const Value& value) {
    return value.IsScalar() ? Value(Scalar(Number())) : Value(Filled(value.shape()));
  }

  static Graph Inferred(const Graph& graph, const Variables& values) {
    LiveIns live_in;
    for (const auto& [name, value] : values) {
      LiveIn& known = live_in[name];
      if (value.IsScalar()) {
        known = {ValueInfo::OfScalar(value.scalar().type()), value.scalar(), nullptr};
      } else {
        known.info = ValueInfo::OfMatrix(value.shape(), FormatOf(value.matrix().storage()));
      }
    }
    InferOutcome outcome = InferShapes(graph, live_in, nullptr);
    EXPECT_TRUE(outcome.error.ok()) << outcome.error.ToString() << ExplainGraph(graph);
    return std::move(outcome.graph);
  }

  // With types alone, as gradient() sees it.
  Graph Forward() const {
    LiveIns live_in;
    for (const Operand& operand : given_.operands)
      live_in[operand.name].info = operand.shape == Shape{0, 0} ? ValueInfo::OfScalar(ValueType::kDouble)
                                                                : ValueInfo::OfMatrix(Shape());
    InferOutcome outcome = InferShapes(CompilePattern(given_.formula), live_in, nullptr);
    EXPECT_TRUE(outcome.error.ok()) << outcome.error.ToString();
    return std::move(outcome.graph);
  }

  static double Dot(const Value& a, const Value& b) {
    if (a.IsScalar()) return a.scalar().AsDouble() * b.scalar().AsDouble();
    double sum = 0;
    for (int64_t i = 0; i < a.matrix().rows(); ++i)
      for (int64_t j = 0; j < a.matrix().columns(); ++j) sum += a.matrix().At(i, j) * b.matrix().At(i, j);
    return sum;
  }

  double Quotient(const std::string& name, const Value& direction, const Value& weights) const {
    constexpr double kStep = 1e-5;
    const auto at = [&](double step) {
      Variables moved = variables_;
      moved[name] = Moved(variables_.at(name), direction, step);
      return Dot(EvaluateGraph(Inferred(CompilePattern(given_.formula), moved), moved).at("r"), weights);
    };
    return (at(kStep) - at(-kStep)) / (2 * kStep);
  }

  static Value Moved(const Value& value, const Value& direction, double step) {
    if (value.IsScalar())
      return Value(Scalar(value.scalar().AsDouble() + step * direction.scalar().AsDouble()));
    Matrix moved = *Matrix::Dense(value.shape().rows, value.shape().columns);
    for (int64_t i = 0; i < moved.rows(); ++i)
      for (int64_t j = 0; j < moved.columns(); ++j)
        moved.mutable_data()[i * moved.columns() + j] =
            value.matrix().At(i, j) + step * direction.matrix().At(i, j);
    return Value(std::move(moved));
  }

  const Case given_;
  std::mt19937 random_;
  Variables variables_;
};

// Shapes that go together as operands of a cell-wise operator.
std::vector<Case> OfCells(const std::string& formula) {
  std::vector<Case> cases;
  const auto add = [&](std::vector<Operand> operands) { cases.push_back({formula, std::move(operands)}); };
  add({{"A", {3, 4}}, {"B", {3, 4}}});
  add({{"A", {3, 4}}, {"B", {3, 1}}});
  add({{"A", {3, 4}}, {"B", {1, 4}}});
  add({{"A", {3, 4}}, {"B", {1, 1}}});
  add({{"A", {3, 1}}, {"B", {1, 4}}});
  add({{"A", {1, 1}}, {"B", {1, 1}}});
  add({{"A", {3, 4}}, {"B"}});
  add({{"A"}, {"B", {3, 4}}});
  add({{"A"}, {"B"}});
  return cases;
}

std::string Written(const ops::Operator& op) {
  return op.form == ops::CallForm::kNone ? fmt::format("A {} B", op.name) : fmt::format("{}(A, B)", op.name);
}

// Of some input.
bool HasDerivative(const ops::Operator& op) {
  return !op.derivative.empty() || op.adjoints.find('d') != std::string_view::npos ||
         op.differentiate != nullptr;
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const ops::Operator* op : ops::AllOperators()) {
    if (!HasDerivative(*op)) continue;
    if (op->aggregate != nullptr) {
      for (const Shape shape : {Shape{3, 4}, Shape{4, 4}, Shape{5, 1}, Shape{1, 5}})
        if (op->name != "trace" || shape.rows == shape.columns)
          cases.push_back({fmt::format("{}(X)", op->name), {{"X", shape}}});
    } else if (op->binary && !op->unary) {
      const std::string name(op->name == "pmin" ? "min" : op->name == "pmax" ? "max" : op->name);
      const std::vector<Case> of_cells =
          OfCells(name == op->name ? Written(*op) : fmt::format("{}(A, B)", name));
      cases.insert(cases.end(), of_cells.begin(), of_cells.end());
    } else if (op->unary) {
      cases.push_back({fmt::format("{}(X)", op->name), {{"X", {3, 4}}}});
      cases.push_back({fmt::format("{}(x)", op->name), {{"x"}}});
    }
  }
  const std::vector<Case> others = {
      {"log(A, B)", {{"A", {3, 4}}, {"B"}}},
      {"log(A, B)", {{"A", {3, 4}}, {"B", {1, 4}}}},
      {"ifelse(C > 0.6, A, B)", {{"A", {3, 4}}, {"B", {3, 4}}, {"C", {3, 4}}}},
      {"ifelse(C > 0.6, A, b)", {{"A", {3, 4}}, {"b"}, {"C", {3, 4}}}},
      {"A %*% B", {{"A", {3, 4}}, {"B", {4, 2}}}},
      {"t(A) %*% B", {{"A", {4, 3}}, {"B", {4, 2}}}},
      {"t(A)", {{"A", {3, 4}}}},
      {"cbind(A, B, A)", {{"A", {3, 4}}, {"B", {3, 1}}}},
      {"rbind(A, B, A)", {{"A", {3, 4}}, {"B", {1, 4}}}},
      {"diag(A)", {{"A", {4, 1}}}},
      {"diag(A)", {{"A", {4, 4}}}},
      {"compress(A)", {{"A", {4, 3}}}},
      {"decompress(A)", {{"A", {4, 3}}}},
      {"rev(A)", {{"A", {4, 3}}}},
      {"roll(A, 2)", {{"A", {5, 3}}}},
      {"cumsum(A)", {{"A", {5, 3}}}},
      {"rowcumsum(A)", {{"A", {5, 3}}}},
      {"cumprod(A)", {{"A", {5, 3}}}},
      {"cumprod(A * (A > 0.5))", {{"A", {5, 3}}}},
      {"cummax(A)", {{"A", {9, 3}}}},
      {"cummin(A)", {{"A", {9, 3}}}},
      {"median(A)", {{"A", {9, 1}}}},
      {"median(A)", {{"A", {8, 1}}}},
      {"median(A, round(B * 4))", {{"A", {9, 1}}, {"B", {9, 1}}}},
      {"quantile(A, 0.3)", {{"A", {9, 1}}}},
      {"quantile(A, 0.3)", {{"A", {10, 1}}}},
      {"quantile(A, B)", {{"A", {10, 1}}, {"B", {4, 1}}}},
      {"weightedQuantile(A, round(B * 4), 0.4)", {{"A", {9, 1}}, {"B", {9, 1}}}},
      {"interQuartileMean(A)", {{"A", {9, 1}}}},
      {"interQuartileMean(A, round(B * 4))", {{"A", {9, 1}}, {"B", {9, 1}}}},
      {"table(round(3 * A), round(3 * A), W)", {{"A", {6, 2}}, {"W", {6, 2}}}},
      {"table(round(3 * A), 2, W, 2, 2)", {{"A", {6, 1}}, {"W", {6, 1}}}},
      {"table(round(3 * A), round(3 * A), w, 3, 3)", {{"A", {6, 1}}, {"w"}}},
      {"pnorm(x, m, s)", {{"x"}, {"m"}, {"s"}}},
      {"pnorm(x, m, s, none, none, none, none, FALSE)", {{"x"}, {"m"}, {"s"}}},
      {"qnorm(x, m, s)", {{"x"}, {"m"}, {"s"}}},
      {"pexp(x, none, none, none, none, none, k)", {{"x"}, {"k"}}},
      {"qexp(x, none, none, none, none, none, k)", {{"x"}, {"k"}}},
      {"pchisq(x, none, none, 3)", {{"x"}}},
      {"qchisq(x, none, none, 3)", {{"x"}}},
      {"pt(x, none, none, 3)", {{"x"}}},
      {"qt(x, none, none, 3)", {{"x"}}},
      {"pf(x, none, none, none, 3, 4)", {{"x"}}},
      {"qf(x, none, none, none, 3, 4)", {{"x"}}},
      {"cumsumprod(A)", {{"A", {5, 2}}}},
      {"upper.tri(A, TRUE, TRUE)", {{"A", {4, 4}}}},
      {"lower.tri(A, FALSE, TRUE)", {{"A", {4, 4}}}},
      {"order(A, 2, TRUE, FALSE)", {{"A", {5, 3}}}},
      {"replace(A * (A > 0.6), 0, b)", {{"A", {4, 3}}, {"b"}}},
      {"weightedMean(A, B)", {{"A", {4, 3}}, {"B", {4, 3}}}},
      {"cov(A, B)", {{"A", {5, 1}}, {"B", {5, 1}}}},
      {"moment(A, 0)", {{"A", {5, 1}}}},
      {"moment(A, 2)", {{"A", {5, 1}}}},
      {"moment(A, 3)", {{"A", {5, 1}}}},
      {"matrix(a, 3, 4)", {{"a"}}},
      {"matrix(A, 2, 6)", {{"A", {3, 4}}}},
      {"seq(a, a + 1, b)", {{"a"}, {"b"}}, 0.35, 0.4},
      {"as.scalar(A)", {{"A", {1, 1}}}},
      {"as.scalar(a)", {{"a"}}},
      {"as.matrix(a)", {{"a"}}},
      {"as.matrix(A)", {{"A", {3, 4}}}},
      {"as.double(a)", {{"a"}}},
      {"index(A, 2, 3, none, none)", {{"A", {4, 3}}}},
      {"index(A, 2, 2, 1, 2)", {{"A", {4, 3}}}},
      {"index(A, none, none, 1, 2) * index(A, none, none, 2, 3)", {{"A", {4, 3}}}},
      {"indexAssign(A, B, 2, 3, none, none)", {{"A", {4, 3}}, {"B", {2, 3}}}},
      {"indexAssign(A, B, 2, 3, 1, 2)", {{"A", {4, 3}}, {"B", {1, 1}}}},
      {"indexAssign(A, b, none, none, 2, 3)", {{"A", {4, 3}}, {"b"}}},
      {"solve(A + diag(matrix(4, 4, 1)), B)", {{"A", {4, 4}}, {"B", {4, 1}}}},
      {"inv(A + diag(matrix(4, 4, 1)))", {{"A", {4, 4}}}},
      {"cholesky(A %*% t(A) + diag(matrix(1, 4, 1)))", {{"A", {4, 3}}}},
      {"det(A + diag(matrix(1, 4, 1)))", {{"A", {4, 4}}}},
      {"sumTo(A, 1, 4)", {{"A", {3, 4}}}},
      {"sumTo(A, 3, 1)", {{"A", {3, 4}}}},
      {"spreadTo(A, 3, 4)", {{"A", {3, 1}}}},
      {"spreadTo(A, 3, 4)", {{"A", {1, 4}}}},
      {"conv2d(X, W, 2, 2, 5, 4, 3, 2, 3, 2, 1, 2, 1, 1)", {{"X", {2, 40}}, {"W", {3, 12}}}},
      {"max_pool(X, 2, 2, 5, 4, 2, 2, 1, 2, 0, 0)", {{"X", {2, 40}}}},
      {"avg_pool(X, 2, 2, 5, 4, 2, 2, 1, 2, 1, 1)", {{"X", {2, 40}}}},
      {"conv2d_backward_data(W, D, 2, 2, 5, 4, 3, 2, 3, 2, 1, 2, 1, 1)", {{"W", {3, 12}}, {"D", {2, 45}}}},
      {"conv2d_backward_filter(X, D, 2, 2, 5, 4, 3, 2, 3, 2, 1, 2, 1, 1)", {{"X", {2, 40}}, {"D", {2, 45}}}},
      {"max_pool_backward(X, D, 2, 2, 5, 4, 2, 2, 1, 2, 0, 0)", {{"X", {2, 40}}, {"D", {2, 16}}}},
      {"avg_pool_backward(X, D, 2, 2, 5, 4, 2, 2, 1, 2, 1, 1)", {{"X", {2, 40}}, {"D", {2, 36}}}},
      {"max_pool_at(X, Y, 2, 2, 5, 4, 2, 2, 1, 2, 0, 0)", {{"X", {2, 40}}, {"Y", {2, 40}}}},
      {"bias_add(X, B)", {{"X", {2, 12}}, {"B", {3, 1}}}},
      {"bias_multiply(X, B)", {{"X", {2, 12}}, {"B", {3, 1}}}},
  };
  cases.insert(cases.end(), others.begin(), others.end());
  return cases;
}

TEST(GradientTest, DerivativesAreNearDifferenceQuotients) {
  std::set<std::string> checked;
  for (const Case& given : AllCases()) {
    SCOPED_TRACE(given.formula);
    for (const Node& node : CompilePattern(given.formula).nodes) checked.insert(node.op);
    std::string shapes;
    for (const Operand& operand : given.operands)
      shapes += fmt::format(" {} {}", operand.name, operand.shape);
    SCOPED_TRACE(shapes);
    GradientCase(given).Run();
  }
  // Operators of several results and those that only the front end forms are differentiated by scripts
  // (tests/scripts/cases/gradient_*.dml), and so are those that an attribute of the call chooses.
  const std::set<std::string> in_scripts = {"lstm", "batch_norm2d", "as.declared", "removeEmpty", "eigen",
                                            "svd",  "aggregate",    "cdf",         "icdf"};
  for (const ops::Operator* op : ops::AllOperators()) {
    const std::string name(op->name);
    EXPECT_TRUE(!HasDerivative(*op) || in_scripts.contains(name) || checked.contains(name)) << name;
  }
}

// The derivative of a product of cells, one of which is zero, is that of the others.
TEST(GradientTest, ProductsMayHaveZeros) {
  for (const char* formula :
       {"prod(X * (X > 0.5))", "rowProds(X * (X > 0.45))", "colProds(X * (X > 0.45))",
        "cumprod(X * (X > 0.5))", "cumprod(X * (X > 0.8))", "cumsumprod(X * (X > 0.6))"}) {
    SCOPED_TRACE(formula);
    GradientCase({formula, {{"X", {3, 2}}}}).Run();
  }
}

}  // namespace
}  // namespace heddle::compiler
