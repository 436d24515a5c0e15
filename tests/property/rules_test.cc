// SPDX-License-Identifier: Apache-2.0
// Every rule, both sides, on random matrices of random shapes and formats: the same bits for an exact rule,
// the same number for one that reorders a sum. A rule that no shape makes apply fails as well.
#include "compiler/rules/rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "compiler/explain/explain.h"
#include "compiler/optimize/infer.h"
#include "compiler/optimize/pass.h"
#include "tests/property/evaluate_graph.h"

namespace heddle::compiler {
namespace {

using testing_support::EvaluateGraph;
using testing_support::Variables;

constexpr int kMostTries = 40000;
constexpr int kEnough = 25;

class RuleCase {
 public:
  RuleCase(const Rule& rule, bool exact, uint32_t seed) : rule_(rule), exact_(exact), random_(seed) {
    for (int64_t& size : sizes_) size = kSizes[Below(std::size(kSizes))];
    options_.infos_are_exact = true;
    for (const std::span<const Rule> rules : {ExactRules(), OrderRules()})
      for (const Rule& other : rules)
        if (other.name != rule.name) options_.disabled.emplace(other.name);
  }

  // True if the rule applied; then both sides have been compared.
  bool Run() {
    const InferOutcome before = InferShapes(MakeScript(), live_in_, nullptr);
    if (!before.error.ok() || !before.complete) return false;
    Result<Graph> after =
        exact_ ? ApplyExactRules(before.graph, options_) : ApplyOrderRules(before.graph, options_);
    EXPECT_TRUE(after.ok());
    if (Operators(*after) == Operators(before.graph)) return false;
    const Value expected = EvaluateGraph(before.graph, variables_).at("r");
    const Value actual = EvaluateGraph(*after, variables_).at("r");
    EXPECT_TRUE(AreEqual(expected, actual)) << ExplainGraph(before.graph) << "became\n"
                                            << ExplainGraph(*after);
    return true;
  }

 private:
  static constexpr int64_t kSizes[] = {1, 2, 3, 5, 8, 9, 13, 70};

  size_t Below(size_t limit) { return random_() % limit; }
  double Uniform() { return static_cast<double>(random_()) / 4294967296.0; }

  double Cell() {
    if (!exact_) return 0.5 + Uniform();
    static constexpr double kSpecial[] = {0.0,
                                          -0.0,
                                          std::numeric_limits<double>::infinity(),
                                          -std::numeric_limits<double>::infinity(),
                                          std::numeric_limits<double>::quiet_NaN(),
                                          5e-324,
                                          1e308,
                                          -1.0};
    return Below(6) == 0 ? kSpecial[Below(std::size(kSpecial))] : Uniform() * 4 - 2;
  }

  void MakeScalar(const std::string& name, const Scalar& value) {
    variables_[name] = Value(value);
    live_in_[name] = {ValueInfo::OfScalar(value.type()), value};
  }

  void MakeVariable(const std::string& name, bool is_matrix, Shape shape) {
    if (!is_matrix) {
      // Sizes of filled matrices are letters too.
      if (Below(2) == 0) {
        MakeScalar(name, Scalar(sizes_[Below(3)]));
      } else {
        MakeScalar(name, Scalar(exact_ ? Cell() : 0.5 + Uniform()));
      }
      return;
    }
    Matrix matrix = *Matrix::Dense(shape.rows, shape.columns);
    const bool is_sparse = Below(2) == 0;
    for (int64_t i = 0; i < matrix.cells(); ++i)
      matrix.mutable_data()[i] = is_sparse && Below(3) != 0 ? 0.0 : Cell();
    if (is_sparse) matrix = *ToSparse(matrix);
    live_in_[name] = {ValueInfo::OfMatrix(shape, FormatOf(matrix.storage())), std::nullopt};
    variables_[name] = Value(std::move(matrix));
  }

  // `before` with its letters as variables, small ones as literals too, and a random chain for f.
  Graph MakeScript() {
    const Graph pattern = CompilePattern(rule_.before);
    Graph graph;
    std::vector<NodeId> ids;
    for (const Node& node : pattern.nodes) {
      if (node.op == kContext) {
        ids.push_back(AddChain(&graph, ids[static_cast<size_t>(node.inputs[0])]));
        continue;
      }
      if (node.Is("variable"))
        MakeVariable(node.Text("name"), node.info.IsMatrix(), {sizes_[Below(3)], sizes_[Below(3)]});
      Node copy = node;
      if (node.Is("variable") && !node.info.IsMatrix() && Below(2) == 0) {
        copy.op = "literal";
        copy.attributes.clear();
        copy.SetAttribute("value", variables_[node.Text("name")].scalar());
      }
      for (NodeId& input : copy.inputs)
        if (input != kNoNode) input = ids[static_cast<size_t>(input)];
      ids.push_back(graph.Add(std::move(copy)));
    }
    return graph;
  }

  NodeId Add(Graph* graph, std::string op, std::vector<NodeId> inputs) {
    Node node;
    node.op = std::move(op);
    node.inputs = std::move(inputs);
    return graph->Add(std::move(node));
  }

  NodeId AddChain(Graph* graph, NodeId inside) {
    for (size_t length = Below(4); length > 0; --length) {
      Node constant;
      constant.op = "literal";
      constant.SetAttribute("value", Scalar(1.5));
      const NodeId number = graph->Add(std::move(constant));
      switch (Below(5)) {
        case 0:
          inside = Add(graph, "exp", {Add(graph, "/", {inside, Add(graph, "+", {number, inside})})});
          break;
        case 1: inside = Add(graph, "+", {inside, number}); break;
        case 2: inside = Add(graph, "*", {number, inside}); break;
        case 3: inside = Add(graph, "log", {inside}); break;
        default: {
          MakeVariable("E", true, {sizes_[Below(3)], sizes_[Below(3)]});
          Node other;
          other.op = "variable";
          other.SetAttribute("name", "E");
          inside = Add(graph, "-", {graph->Add(std::move(other)), inside});
        }
      }
    }
    return inside;
  }

  static std::vector<std::string> Operators(const Graph& graph) {
    std::vector<std::string> operators;
    for (const Node& node : graph.nodes)
      if (!node.Is("literal") && !node.Is("variable")) operators.push_back(node.op);
    return operators;
  }

  bool AreEqual(const Value& a, const Value& b) const {
    if (a.IsScalar() != b.IsScalar()) return false;
    if (a.IsScalar())
      return exact_ ? a.scalar().ToLiteral() == b.scalar().ToLiteral()
                    : IsClose(a.scalar().AsDouble(), b.scalar().AsDouble());
    const Matrix &x = a.matrix(), &y = b.matrix();
    if (exact_) return x.storage() == y.storage() && Matrix::SameCells(x, y);
    bool close = x.shape() == y.shape();
    for (int64_t i = 0; close && i < x.rows(); ++i)
      for (int64_t j = 0; close && j < x.columns(); ++j) close = IsClose(x.At(i, j), y.At(i, j));
    return close;
  }

  // Cells are near 1, so sums of absolute values are at most a few thousand.
  // A chain of f may be a logarithm of what is negative.
  static bool IsClose(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-10 * (1 + std::abs(a));
  }

  const Rule& rule_;
  const bool exact_;
  std::mt19937 random_;
  int64_t sizes_[3];
  PassOptions options_;
  LiveIns live_in_;
  Variables variables_;
};

void Check(std::span<const Rule> rules, bool exact) {
  for (const Rule& rule : rules) {
    SCOPED_TRACE(rule.name);
    int applied = 0;
    for (uint32_t seed = 0; seed < kMostTries && applied < kEnough && !testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
      applied += RuleCase(rule, exact, seed).Run() ? 1 : 0;
    }
    EXPECT_GE(applied, kEnough) << "of " << rule.before;
  }
}

TEST(RulesTest, ExactRulesKeepEveryBit) { Check(ExactRules(), true); }
TEST(RulesTest, RulesThatReorderSumsKeepTheNumber) { Check(OrderRules(), false); }

// Products of two to seven random factors in the chosen order and as written.
TEST(OrderProductsTest, EveryOrderIsTheSameProduct) {
  int reordered = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    std::mt19937 random(seed);
    const size_t count = 2 + random() % 6;
    std::vector<int64_t> sizes;
    for (size_t i = 0; i <= count; ++i) sizes.push_back(1 + random() % 20);
    Graph graph;
    LiveIns live_in;
    Variables variables;
    std::vector<NodeId> products;
    for (size_t i = 0; i < count; ++i) {
      const bool transposed = random() % 3 == 0, sparse = random() % 3 == 0;
      const Shape shape = transposed ? Shape{sizes[i + 1], sizes[i]} : Shape{sizes[i], sizes[i + 1]};
      Matrix matrix = *Matrix::Dense(shape.rows, shape.columns);
      for (int64_t c = 0; c < matrix.cells(); ++c)
        matrix.mutable_data()[c] =
            sparse && random() % 2 == 0 ? 0.0 : static_cast<double>(random() % 1000) / 500;
      if (sparse) matrix = *ToSparse(matrix);
      Node variable;
      variable.op = "variable";
      variable.SetAttribute("name", fmt::format("X{}", i));
      live_in[fmt::format("X{}", i)] = {ValueInfo::OfMatrix(shape, FormatOf(matrix.storage())), std::nullopt};
      variables[fmt::format("X{}", i)] = Value(std::move(matrix));
      Node factor;
      factor.op = "t";
      factor.inputs = {graph.Add(std::move(variable))};
      products.push_back(transposed ? graph.Add(std::move(factor)) : factor.inputs[0]);
    }
    // Random brackets; t(X) %*% Y where the text says so.
    while (products.size() > 1) {
      const size_t i = random() % (products.size() - 1);
      Node product;
      product.op = graph[products[i]].Is("t") ? "t%*%" : "%*%";
      product.inputs = {graph[products[i]].Is("t") ? graph[products[i]].inputs[0] : products[i],
                        products[i + 1]};
      products[i] = graph.Add(std::move(product));
      products.erase(products.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    Node assign;
    assign.op = "assign";
    assign.inputs = {products[0]};
    assign.SetAttribute("name", "r");
    graph.Add(std::move(assign));

    const InferOutcome before = InferShapes(std::move(graph), live_in, nullptr);
    ASSERT_TRUE(before.error.ok()) << before.error.ToString();
    PassOptions options;
    options.infos_are_exact = true;
    Result<Graph> after = OrderProducts(before.graph, options);
    ASSERT_TRUE(after.ok());
    ASSERT_TRUE(Verify(*after).ok());
    const Matrix expected = EvaluateGraph(before.graph, variables).at("r").matrix();
    const Matrix actual = EvaluateGraph(*after, variables).at("r").matrix();
    ASSERT_EQ(expected.shape(), actual.shape());
    for (int64_t i = 0; i < expected.rows(); ++i)
      for (int64_t j = 0; j < expected.columns(); ++j)
        ASSERT_NEAR(expected.At(i, j), actual.At(i, j), 1e-10 * (1 + std::abs(expected.At(i, j))));
    reordered += ExplainGraph(before.graph) != ExplainGraph(*after) ? 1 : 0;
  }
  EXPECT_GE(reordered, 100);
}

}  // namespace
}  // namespace heddle::compiler
