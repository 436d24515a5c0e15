// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "compiler/compile.h"

namespace heddle::compiler {
namespace {

Program Compile(const std::string& script, std::set<std::string, std::less<>> disabled = {}) {
  CompileOptions options;
  options.disabled_passes = std::move(disabled);
  Diagnostics diagnostics;
  Result<Program> program = CompileScript(script, options, &diagnostics);
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  return program.ok() ? *std::move(program) : Program();
}

// Runs the control flow with random decisions and watches the variables only.
class RandomWalk {
 public:
  RandomWalk(const Program& program, uint32_t seed) : program_(program), random_(seed) {}

  void RunMain() {
    std::set<std::string> variables;
    Run(program_.main, variables);
    EXPECT_EQ(variables, std::set<std::string>()) << "left over at the end of the script";
  }

 private:
  bool Flip() { return random_() % 2 == 0; }

  void Read(const std::string& name, const std::set<std::string>& variables) {
    EXPECT_TRUE(variables.contains(name)) << name << " was freed before it was read";
  }

  void RunGraph(const Graph& graph, std::set<std::string>& variables, bool assigns) {
    for (const Node& node : graph.nodes)
      if (node.Is("variable")) Read(node.Text("name"), variables);
    for (const Node& node : graph.nodes)
      if (assigns && node.Is("assign")) variables.insert(node.Text("name"));
  }

  void Run(const std::vector<Block>& blocks, std::set<std::string>& variables) {
    const Block* previous = nullptr;
    for (const Block& block : blocks) {
      // What moved before a loop stands behind the loop's predicate, which is the same the first time.
      const bool is_guarded = previous != nullptr && previous->kind == Block::Kind::kIf &&
                              block.kind == Block::Kind::kWhile &&
                              previous->graph.ToText() == block.graph.ToText();
      if (!is_guarded) decision_ = Flip();
      RunBlock(block, variables);
      previous = &block;
    }
  }

  void RunBlock(const Block& block, std::set<std::string>& variables) {
    switch (block.kind) {
      case Block::Kind::kBasic: RunGraph(block.graph, variables, true); break;
      case Block::Kind::kIf: {
        RunGraph(block.graph, variables, false);
        const bool taken = decision_;
        Run(taken ? block.body : block.otherwise, variables);
        decision_ = taken;
        break;
      }
      case Block::Kind::kWhile:
        RunGraph(block.graph, variables, false);
        for (bool goes_on = decision_; goes_on; goes_on = Flip()) {
          Run(block.body, variables);
          RunGraph(block.graph, variables, false);
        }
        break;
      case Block::Kind::kFor:
      case Block::Kind::kParallelFor:
        RunGraph(block.graph, variables, false);
        while (Flip()) {
          variables.insert(block.variable);
          Run(block.body, variables);
        }
        break;
      case Block::Kind::kCall: {
        const Function& function = program_.functions.at(block.function);
        std::set<std::string> inside;
        for (const auto& [parameter, variable] : block.arguments) {
          Read(variable, variables);
          inside.insert(parameter);
        }
        if (++depth_ < 5) {
          Run(function.body, inside);
          for (const Parameter& result : function.results) Read(result.name, inside);
        }
        --depth_;
        for (const std::string& result : block.results)
          if (!result.empty()) variables.insert(result);
        break;
      }
      case Block::Kind::kList:
        for (const auto& [name, variable] : block.arguments) Read(variable, variables);
        for (const std::string& result : block.results)
          if (!result.empty()) variables.insert(result);
        break;
    }
    for (const std::string& name : block.dead_after) variables.erase(name);
  }

  const Program& program_;
  std::mt19937 random_;
  bool decision_ = false;  // of an if, and of a while the first time
  int depth_ = 0;
};

constexpr const char* kScripts[] = {
    // Elements of lists, in the predicate and in the body of a loop.
    R"(
l = list(1, 2)
x = 3
while (as.scalar(l[1]) < sum(rand(rows=2, cols=2))) {
  l[1] = x
  x = as.scalar(l[2]) + 1
  unread = append(l, x)
}
print(toString(l))
)",
    // A variable is read in the next round only.
    R"(
p = 0
x = 1
while (sum(rand(rows=2, cols=2)) > 1) {
  print(p)
  p = x * 2
}
)",
    // Read in one branch, in a later loop, behind it.
    R"(
X = rand(rows=4, cols=4)
Y = X * 2
z = 0
for (i in 1:3) {
  if (sum(X) > i) { z = z + sum(Y) } else { z = i }
  for (j in i:5) {
    w = z + j
    if (w > 3) { print(w) }
  }
}
print(z)
if (z > 2) print(sum(Y))
)",
    // Loop variables behind their loop, also after no round.
    R"(
i = 7
for (i in 1:3) { k = i }
for (j in 1:3) { i = j + i }
print(i)
)",
    // Calls: arguments by name, results dropped, recursion, a result that is a parameter.
    R"(
f = function(matrix[double] X, double s, double unused) return (matrix[double] Y, double t) {
  t = s
  Y = X
  if (s > 0) {
    [Y, t] = f(X * 2, s - 1, 0)
    while (t < 3) { t = t + sum(Y) }
  }
}
A = rand(rows=3, cols=3)
B = f(A, 3, 1)
[C, c] = f(B, sum(A) + f2(2), 1)
f(C, 1, 1)
print(sum(C) + c)
f2 = function(double a) return (double b) { b = a }
)",
    // What moves before a loop that may not run.
    R"(
X = rand(rows=4, cols=4)
w = sum(rand(rows=1, cols=1))
while (w > 0.5) {
  if (w > 0.7) { print(w) }
  w = w * 0.9 - sum(X) / 1000
  v = w
  while (v > 0.1) { v = v - sum(exp(X)) - mean(X %*% X) }
}
print(w)
)",
    // Swaps and self assignments.
    R"(
a = rand(rows=2, cols=1)
b = rand(rows=2, cols=1)
for (i in 1:4) {
  c = a
  a = b
  b = c
  if (i > 2) { a = a }
}
print(sum(a))
)",
    R"(
R = matrix(0, 5, 2)
parfor (i in 1:5) {
  t = i * 2
  R[i, 1] = t
  parfor (j in 1:1) { R[i, j + 1] = t + j }
}
print(R)
)",
};

TEST(LivenessTest, NothingIsFreedTooEarlyAndNothingIsLeft) {
  for (const char* script : kScripts) {
    SCOPED_TRACE(script);
    for (const std::set<std::string, std::less<>>& disabled :
         {std::set<std::string, std::less<>>{},
          std::set<std::string, std::less<>>{"remove-unread", "remove-dead", "share"}}) {
      const Program program = Compile(script, disabled);
      for (uint32_t seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
        RandomWalk(program, seed).RunMain();
        if (HasFailure()) return;
      }
    }
  }
}

TEST(LivenessTest, UnreadAssignmentsAndWhatOnlyTheyNeedAreRemoved) {
  const Program program = Compile("a = rand(rows=2, cols=2, seed=1)\nb = a * 2\nc = sum(b)\nprint(1)\n");
  ASSERT_EQ(program.main.size(), 1u);
  EXPECT_EQ(program.main[0].graph.size(), 2) << program.main[0].graph.ToText();  // 1 and print
}

// A for loop that does nothing leaves its variable, a while loop its predicate.
TEST(LivenessTest, LoopsThatAreLeftEmptyGo) {
  EXPECT_EQ(Compile("for (i in 1:10) { x = i * 2 }\nprint(1)").main.size(), 1u);
  EXPECT_EQ(Compile("for (i in 1:10) { for (j in seq(1, i, 1)) { x = i * j } }\nprint(1)").main.size(), 2u);
  EXPECT_EQ(Compile("for (i in 1:10) { for (j in 1:i) { for (k in 1:3) { x = j } } }\nprint(1)").main.size(),
            1u);
  EXPECT_EQ(Compile("parfor (i in 1:10) { x = i * 2 }\nprint(1)").main.size(), 1u);
  const char* coin = "s = sum(rand(rows=1, cols=1, seed=1))\n";
  // Bounds that may be NaN, or fail.
  EXPECT_EQ(Compile(std::string(coin) + "for (i in 1:s) { x = i }\nprint(1)").main.size(), 3u);
  EXPECT_EQ(Compile(std::string(coin) + "for (i in seq(1, 10, s)) { x = i }\nprint(1)").main.size(), 3u);
  // An increment of zero, and NaN, make no round.
  EXPECT_EQ(Compile("for (i in seq(1, 10, 0)) { x = i }\nprint(1)").main.size(), 1u);
  EXPECT_EQ(Compile("for (i in seq(NaN, 10)) { x = i }\nprint(1)").main.size(), 1u);
  const Program fails =
      Compile(std::string(coin) + "for (i in 1:as.integer(toString(s))) { x = i }\nprint(1)");
  ASSERT_EQ(fails.main.size(), 3u);
  EXPECT_EQ(fails.main[1].kind, Block::Kind::kBasic);
  EXPECT_NE(fails.main[1].graph.ToText().find("as.integer"), std::string::npos);
  // Whether it ends is for the run to find out.
  const Program waits = Compile(std::string(coin) + "while (s > 2) { x = s * 2 }\nprint(1)");
  ASSERT_EQ(waits.main.size(), 3u);
  EXPECT_EQ(waits.main[1].kind, Block::Kind::kWhile);
}

TEST(LivenessTest, TheVariableOfAnEmptyLoopKeepsItsLastValue) {
  const struct {
    const char* range;
    int64_t last;
  } kCases[] = {{"1:10", 10},         {"10:1", 1},           {"3:3", 3},          {"1:2.5", 2},
                {"seq(1, 10, 4)", 9}, {"seq(10, 1, -4)", 2}, {"seq(5, 1, 1)", 7}, {"seq(-3, 3, 2)", 3}};
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.range);
    const Program program = Compile(
        std::string("i = 7\nfor (i in ") + test.range + ") { x = i * 2 }\nprint(i * 1)", {"merge-blocks"});
    ASSERT_FALSE(program.main.empty());
    for (const Block& block : program.main) EXPECT_EQ(block.kind, Block::Kind::kBasic);
    const Graph& graph = program.main[program.main.size() - 2].graph;
    ASSERT_EQ(graph.size(), 2) << graph.ToText();
    EXPECT_EQ(graph[0].FindAttribute("value")->ToLiteral(), std::to_string(test.last));
    EXPECT_EQ(graph[1].Text("name"), "i");
  }
  const Program program =
      Compile("n = as.integer(toString(sum(rand(rows=1, cols=1))))\nfor (i in 1:n) { x = i }\nprint(i)",
              {"merge-blocks"});
  ASSERT_EQ(program.main.size(), 3u);
  EXPECT_EQ(program.main[1].graph.ToText().find("%from"), std::string::npos);
  EXPECT_EQ(program.main[1].graph.nodes.back().Text("name"), "i");
}

TEST(LivenessTest, DeeplyNestedLoopsDoNotTakeExponentialTime) {
  std::string script = "x = 1\n";
  constexpr int kDepth = 100;
  for (int i = 0; i < kDepth; ++i) script += fmt::format("for (i{} in 1:2) {{\n", i);
  script += "x = x + 1\n";
  for (int i = 0; i < kDepth; ++i) script += "}\n";
  script += "print(x)\n";
  const Program program = Compile(script);
  EXPECT_EQ(program.main.size(), 3u);
}

}  // namespace
}  // namespace heddle::compiler
