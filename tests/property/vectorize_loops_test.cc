// SPDX-License-Identifier: Apache-2.0
// Random loops over rows and columns: what they become against their rounds, one after the other.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/explain/explain.h"
#include "compiler/optimize/infer.h"
#include "compiler/optimize/vectorize_graph.h"
#include "tests/property/evaluate_graph.h"

namespace heddle::compiler {
namespace {

using testing_support::EvaluateGraph;
using testing_support::Variables;

constexpr int kFirst = 2, kLast = 8, kSize = 9,
              kWidth = 4;  // Of the loop, of a matrix along it and across it.

class LoopCase {
 public:
  explicit LoopCase(uint32_t seed) : random_(seed), by_rows_(Below(2) == 0) {
    for (const char* name : {"X", "Y", "B", "C", "W"}) {
      Matrix matrix = *Matrix::Dense(by_rows_ ? kSize : kWidth, by_rows_ ? kWidth : kSize);
      for (int64_t i = 0; i < matrix.cells(); ++i)
        matrix.mutable_data()[i] = Below(5) == 0 ? 0.0 : Uniform() + 0.5;
      variables_[name] = Value(std::move(matrix));
    }
    variables_["s"] = Value(Scalar(int64_t{2}));
    variables_["q"] = Value(Scalar(0.5));
    const int statements = 1 + static_cast<int>(Below(4));
    for (int k = 0; k < statements; ++k) body_ += "  " + Statement() + "\n";
  }

  // True if the loop became something; then both have been run.
  bool Run() const {
    const Graph body = Body();
    if (body.nodes.empty()) return false;
    Node bounds[2];
    for (int k = 0; k < 2; ++k) {
      bounds[k].op = "literal";
      bounds[k].info = ValueInfo::OfScalar(ValueType::kInteger);
      bounds[k].SetAttribute("value", Scalar(int64_t{k == 0 ? kFirst : kLast}));
    }
    SharedNames numbers;
    for (const char* name : {"s", "q"}) numbers.insert(name);
    const std::optional<Graph> whole = VectorizeBody(body, "i", bounds[0], bounds[1], numbers);
    if (!whole) return false;
    Variables expected = variables_;
    for (int64_t i = kFirst; i <= kLast; ++i) {
      expected["i"] = Value(Scalar(i));
      for (auto& [name, value] : EvaluateGraph(Inferred(body, expected), expected)) expected[name] = value;
    }
    Variables actual = variables_;
    for (auto& [name, value] : EvaluateGraph(Inferred(*whole, variables_), variables_)) actual[name] = value;
    EXPECT_EQ(expected.size(), actual.size());
    for (const auto& [name, value] : expected)
      EXPECT_TRUE(actual.contains(name) && AreClose(value, actual.at(name))) << name << " of\n"
                                                                             << body_ << "became\n"
                                                                             << ExplainGraph(*whole);
    return true;
  }
  const std::string& body() const { return body_; }

 private:
  size_t Below(size_t limit) { return random_() % limit; }
  double Uniform() { return static_cast<double>(random_()) / 4294967296.0; }
  template <size_t kCount>
  const char* Any(const char* const (&words)[kCount]) {
    return words[Below(kCount)];
  }

  std::string At(const std::string& name, const std::string& counter, const std::string& other) const {
    return by_rows_ ? fmt::format("{}[{},{}]", name, counter, other)
                    : fmt::format("{}[{},{}]", name, other, counter);
  }
  // Rows of one cell, or of two.
  std::string Rows(bool wide, int depth) {
    if (depth == 0 || Below(3) == 0) {
      const std::string other = wide ? Any({"1:2", "2:3", "3:4"}) : Any({"1", "2", "3", "4"});
      return At(Any({"X", "Y", "X", "Y", "B", "W"}), Any({"i", "i", "i", "i-1", "i+1"}), other);
    }
    switch (Below(6)) {
      case 0: return fmt::format("{}({})", Any({"abs", "exp", "sqrt", "round", "!"}), Rows(wide, depth - 1));
      case 1:
        return fmt::format("({} {} {})", Rows(wide, depth - 1), Any({"+", "*", "-"}),
                           Any({"q", "0.25", "3", "as.scalar(Y[1,1])"}));
      case 4:
        return fmt::format("({} {} {})", Rows(wide, depth - 1), Any({"-", "/", "*"}), Number(depth - 1));
      case 2:
        return fmt::format("({} {} {})", Any({"q", "2"}), Any({"+", "*", "/", ">"}), Rows(wide, depth - 1));
      default:
        return fmt::format("({} {} {})", Rows(wide, depth - 1), Any({"+", "*", "-", "<", "==", "%%", "^"}),
                           Rows(wide, depth - 1));
    }
  }
  std::string Number(int depth) {
    switch (Below(4)) {
      case 0: return fmt::format("{}({})", Any({"sum", "max", "min", "mean"}), Rows(true, depth));
      case 1: return fmt::format("({} * {})", Number(depth), Any({"q", "1.5"}));
      default: return fmt::format("as.scalar({})", Rows(false, depth));
    }
  }
  std::string Statement() {
    switch (Below(7)) {
      case 6: return Any({"W = X * 2", "w = X * q"});
      case 0: return fmt::format("s = s {} {}", Any({"+", "-", "*"}), Number(1));
      case 1: return fmt::format("s = {}(s, {})", Any({"min", "max"}), Number(1));
      case 2: return fmt::format("v = {}", Below(2) == 0 ? Number(1) : Rows(Below(2) == 0, 2));
      case 3: return fmt::format("{} = {}", At("B", Any({"i", "i", "i", "i+1"}), "1:2"), Rows(true, 2));
      case 4:
        return fmt::format("{} = {}", At("C", Any({"i", "i", "i-1"}), Any({"1", "4"})),
                           Below(3) == 0 ? "q" : Rows(false, 2));
      default: return fmt::format("{} = {}", At(Any({"B", "C"}), "i", Any({"2", "3", "2:3", ""})), Number(1));
    }
  }

  static Graph Inferred(Graph graph, const Variables& variables) {
    LiveIns live_in;
    for (const auto& [name, value] : variables)
      live_in[name] = {value.IsMatrix() ? ValueInfo::OfMatrix(value.matrix().shape())
                                        : ValueInfo::OfScalar(value.scalar().type()),
                       std::nullopt};
    InferOutcome outcome = InferShapes(std::move(graph), live_in, nullptr);
    EXPECT_TRUE(outcome.error.ok()) << outcome.error.ToString();
    return std::move(outcome.graph);
  }

  // The body as the compiler has it before its passes; empty if there is none.
  Graph Body() const {
    std::string script = "s = 2\nq = 0.5\n";
    for (const auto& [name, value] : variables_)
      if (value.IsMatrix())
        script += fmt::format("{} = rand(rows={}, cols={})\n", name, value.matrix().rows(),
                              value.matrix().columns());
    Graph body;
    CompileOptions options;
    options.observe = [&](std::string_view stage, const Program& program) {
      if (stage != "shapes") return;
      for (const Block& block : program.main)
        if (block.kind == Block::Kind::kFor && block.body.size() == 1) body = block.body[0].graph;
    };
    Diagnostics diagnostics;
    const Result<Program> program =
        CompileScript(fmt::format("{}for (i in {}:{}) {{\n{}}}\nprint(s + sum(B) + sum(C))\n", script, kFirst,
                                  kLast, body_),
                      options, &diagnostics);
    EXPECT_TRUE(program.ok()) << program.status().ToString() << body_;
    return body;
  }

  // Sums may be added in another order, products multiplied.
  static bool AreClose(const Value& a, const Value& b) {
    if (a.IsScalar() != b.IsScalar()) return false;
    const auto is_close = [](double x, double y) {
      return x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= 1e-12 * (1 + std::abs(x));
    };
    if (a.IsScalar()) return is_close(a.scalar().AsDouble(), b.scalar().AsDouble());
    const Matrix &x = a.matrix(), &y = b.matrix();
    bool close = x.shape() == y.shape();
    for (int64_t i = 0; close && i < x.rows(); ++i)
      for (int64_t j = 0; close && j < x.columns(); ++j) close = is_close(x.At(i, j), y.At(i, j));
    return close;
  }

  std::mt19937 random_;
  const bool by_rows_;
  Variables variables_;
  std::string body_;
};

TEST(VectorizeLoopsProperty, RandomLoopsDoWhatTheirRoundsDo) {
  int applied = 0;
  for (uint32_t seed = 1; seed <= 1500; ++seed) {
    const LoopCase test(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << test.body());
    applied += test.Run() ? 1 : 0;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(applied, 500);
}

}  // namespace
}  // namespace heddle::compiler
