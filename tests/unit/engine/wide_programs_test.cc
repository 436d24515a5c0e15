// SPDX-License-Identifier: Apache-2.0
// Random programs of wide matrices, which ranks have by columns, give the same bytes on one rank and on
// several.
#include <gtest/gtest.h>

#include "core/environment/random.h"
#include "tests/support/seeds.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

// Wide matrices and transposed tall ones; every statement is right for every size.
class WideProgram {
 public:
  explicit WideProgram(uint64_t seed) : random_(seed) {}

  std::string Make() {
    Draw();
    Draw();
    const uint64_t statements = 3 + Below(6);
    for (uint64_t i = 0; i < statements; ++i) AddStatement();
    for (const std::string& name : names_)
      text_ += fmt::format(
          "print(nrow({0}) + \" \" + ncol({0}) + \" \" + toString(sum({0}), decimal=17) + \" \" + "
          "sum(rowSums({0})^2) + \" \" + sum(colSums({0}) * (t(seq(1, ncol({0}))) %% 7)))\n",
          name);
    return std::move(text_);
  }

 private:
  uint64_t Below(uint64_t bound) { return random_.Below(bound); }
  const std::string& Some() { return names_[Below(names_.size())]; }

  void Assign(const std::string& value) {
    const std::string name = fmt::format("v{}", names_.size());
    text_ += fmt::format("{} = {}\n", name, value);
    names_.push_back(name);
  }

  void Draw() {
    static constexpr int64_t kRows[] = {1, 2, 5, 63, 64, 65, 120};
    static constexpr int64_t kColumns[] = {65, 128, 300, 1001};
    const std::string cells = fmt::format("rand(rows={}, cols={}, min=-1, max=1, seed={}, sparsity={})",
                                          Below(2) == 0 ? kColumns[Below(4)] : kRows[Below(7)],
                                          kColumns[Below(4)], Below(100), Below(3) == 0 ? "0.2" : "1.0");
    Assign(Below(2) == 0 ? cells : fmt::format("round(100 * {}) / 10", cells));
  }

  void AddStatement() {
    const std::string x = Some();
    switch (Below(33)) {
      case 0: return Draw();
      case 1: return Assign(fmt::format("t({})", x));
      case 2: return Assign(fmt::format("t({}) * 2 + 1", x));
      case 3: return Assign(fmt::format("exp(-abs({0})) - colMeans({0})", x));
      case 4: return Assign(fmt::format("{0} / (1 + rowSums(abs({0})))", x));
      case 5: return Assign(fmt::format("colSums({})", x));
      case 6: return Assign(fmt::format("colMaxs(t({}))", x));
      case 7: return Assign(fmt::format("colVars({})", x));
      case 8: return Assign(fmt::format("cumsum({})", x));
      case 9: return Assign(fmt::format("rev(t({}))", x));
      case 10: return Assign(fmt::format("roll({}, {})", x, Below(4)));
      case 11: return Assign(fmt::format("rbind({0}, {0} * 3, colSums({0}))", x));
      case 12: return Assign(fmt::format("cbind({0}, t(t({0}) + 1))", x));
      case 13: return Assign(fmt::format("cbind(rowSums({0}), {0})", x));
      case 14: return Assign(fmt::format("{0}[1:(1 + nrow({0}) %/% 2),]", x));
      case 15: return Assign(fmt::format("{0}[,1:(1 + ncol({0}) %/% {1})]", x, 2 + Below(3)));
      case 16: text_ += fmt::format("{0}[1,] = colSums({0})\n", x); return;
      case 17:
        return Assign(
            fmt::format("rand(rows=3, cols=nrow({0}), min=-1, max=1, seed={1}) %*% {0}", x, Below(9)));
      case 18:
        return Assign(
            fmt::format("rand(rows=70, cols=nrow({0}), min=-1, max=1, seed={1}) %*% {0}", x, Below(9)));
      case 19: return Assign(fmt::format("ifelse({0} > 0, {0}, 0.1 * {0})", x));
      case 20: return Assign(fmt::format("t({0}) %*% rowSums({0})", x));
      case 21: return Assign(fmt::format("removeEmpty(target={0} * (colSums({0}) > 0), margin=\"cols\")", x));
      case 22: return Assign(fmt::format("order(target=t({0}), by=1)", x));
      case 23: text_ += fmt::format("for (i in 1:2) {{ {0} = t({0}) * 0.5 }}\n", x); return;
      case 24: return Assign(fmt::format("replace(target={}, pattern=0, replacement=2)", x));
      case 25: return Assign(fmt::format("outer(rowSums({0}), colSums({0}), \"+\")", x));
      case 26:
        return Assign(fmt::format("{0} %*% rand(rows=ncol({0}), cols={1}, min=-1, max=1, seed={2})", x,
                                  1 + Below(12), Below(9)));
      case 27:
        return Assign(fmt::format("t({0}) %*% rand(rows=nrow({0}), cols={1}, min=-1, max=1, seed={2})", x,
                                  1 + Below(20), Below(9)));
      case 28: return Assign(fmt::format("t({0}) %*% {0}[,1:min(30, ncol({0}))]", x));
      case 29: {
        // A column that only the run tells.
        const size_t at = names_.size();
        text_ += fmt::format("i{0} = 1 + as.integer(sum({1}[,1]) < 0) * (ncol({1}) %/% 2)\n", at, x);
        return Assign(fmt::format("{0}[,i{1}] + {0}[1,i{1}]", x, at));
      }
      case 30: return Assign(fmt::format("matrix(0.5, nrow({0}), ncol({0})) * {0}", x));
      case 31: return Assign(fmt::format("{0}[1:(1 + nrow({0}) %/% 2),(1 + ncol({0}) %/% 3):ncol({0})]", x));
      case 32: return Assign(fmt::format("{} %*% t({})", x, x));
      default: return;
    }
  }

  SeededRandom random_;
  std::string text_;
  std::vector<std::string> names_;
};

TEST(WideProgramsTest, AnyNumberOfRanksGivesTheSameBytes) {
  const testing_support::Seeds seeds = testing_support::SeedsOf(20);
  uint64_t succeeded = 0;
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const std::string script = WideProgram(seed).Make();
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << script);
    const ScriptOutcome one = RunScript(script);
    SessionOptions options = SplitOver(2 + static_cast<int>(seed % 5));
    options.fusion = seed % 3 == 0 ? "all" : seed % 3 == 1 ? "cost" : "off";
    const ScriptOutcome many = RunScript(script, options);
    ASSERT_EQ(many.status.ok(), one.status.ok()) << many.status.ToString() << one.status.ToString();
    ASSERT_EQ(many.output, one.output);
    succeeded += one.status.ok();
  }
  EXPECT_GT(succeeded, seeds.count() / 2);
}

// Full aggregates of rows of several chunks, whose leaves ranks have by columns.
TEST(WideProgramsTest, SumsOfLongRows) {
  const std::string script =
      "X = rand(rows=200000, cols=3, min=-1, max=1, seed=5)\n"
      "if (nrow(X) < 2) print(\"no\")\n"
      "Y = t(X)\n"
      "if (nrow(Y) > 5) print(\"no\")\n"
      "print(toString(sum(Y), decimal=17) + \" \" + mean(Y) + \" \" + max(Y) + \" \" + var(Y))\n"
      "print(sum(exp(Y) * 2) + \" \" + min(Y + 1) + \" \" + sum(rowSums(Y)^2))";
  const ScriptOutcome one = RunScript(script), many = RunScript(script, SplitOver(3));
  ASSERT_TRUE(many.status.ok()) << many.status.ToString();
  EXPECT_EQ(many.output, one.output);
  for (const SessionStatistics& rank : many.statistics)
    for (const auto& [place, times] : rank.ran_whole) ADD_FAILURE() << place << " " << times;
}

// Products along the columns that ranks have: nodes of trees to all, chains from rank to rank, and rows of a
// result where the columns are.
TEST(WideProgramsTest, ProductsAlongTheColumnsOfRanks) {
  for (const int64_t length : {1000, 200'000}) {
    const std::string script = fmt::format(
        "X = rand(rows={0}, cols=5, min=-1, max=1, seed=5)\n"
        "v = rand(rows={0}, cols=1, min=-1, max=1, seed=6)\n"
        "W = rand(rows={0}, cols=12, min=-1, max=1, seed=7)\n"
        "A = rand(rows=5, cols=11, min=-1, max=1, seed=8)\n"
        "if (nrow(X) < 2) print(\"no\")\n"
        "Y = t(X)\n"
        "if (nrow(Y) > 5) print(\"no\")\n"
        "print(toString(Y %*% v, decimal=17))\n"
        "print(toString(Y %*% W, decimal=17))\n"
        "B = t(Y) %*% A\nC = t(Y) %*% A[,1]\n"
        "print(sum(B * (seq(1, nrow(B)) %% 7)) + \" \" + sum(C * (seq(1, nrow(C)) %% 7)))",
        length);
    const ScriptOutcome one = RunScript(script);
    for (const int ranks : {2, 3, 5}) {
      const ScriptOutcome many = RunScript(script, SplitOver(ranks));
      ASSERT_TRUE(many.status.ok()) << many.status.ToString();
      EXPECT_EQ(many.output, one.output) << length << ", " << ranks << " ranks";
      for (const SessionStatistics& rank : many.statistics)
        for (const auto& [place, times] : rank.ran_whole) ADD_FAILURE() << place << " " << times;
    }
  }
}

// A tall matrix that is turned stays where it is, and so does what is computed of its columns: no rank has
// all.
TEST(WideProgramsTest, TransposesOfTallMatricesStayOnTheirRanks) {
  const ScriptOutcome outcome = RunScript(
      "X = rand(rows=4000, cols=30, min=-1, max=1, seed=3)\n"
      "if (sum(X) > 1e9) print(\"no\")\n"
      "Y = t(X)\n"
      "if (ncol(Y) < 2) print(\"no\")\n"
      "Z = exp(Y) + colMeans(Y)\nZ = cumsum(Z)\nZ[1,] = colSums(Y)\nZ = rbind(Z, Y)\n"
      "W = cbind(Z, Z)\n"
      "print(sum(colSums(W)) + sum(t(Z)))",
      SplitOver(3));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  for (const SessionStatistics& rank : outcome.statistics)
    for (const auto& [place, times] : rank.ran_whole) ADD_FAILURE() << place << " " << times;
}

}  // namespace
}  // namespace heddle::engine
