// SPDX-License-Identifier: Apache-2.0
// Random programs give the same bytes on one rank and on several, whatever the cuts that come out on the way.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/environment/random.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

// A program of matrices whose sizes are known to it or not; every statement is right for every size.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed) {}

  std::string Make() {
    for (int i = 0; i < 2; ++i) Draw();
    const uint64_t statements = 3 + random_.Below(7);
    for (uint64_t i = 0; i < statements; ++i) AddStatement();
    for (const std::string& name : names_)
      text_ += fmt::format(
          "print(nrow({0}) + \" \" + ncol({0}) + \" \" + toString(sum({0}), decimal=17) + \" \" + "
          "sum({0} * (seq(1, nrow({0})) %% 7)) + \" \" + sum(colSums({0})^2) + \" \" + sum(t({0}) %*% {0}))\n",
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
    static constexpr int64_t kRows[] = {1, 3, 64, 65, 130, 500, 1000, 2001};
    static constexpr int64_t kColumns[] = {1, 2, 5, 9};
    Assign(fmt::format("round(100 * rand(rows={}, cols={}, min=-1, max=1, seed={}, sparsity={})) / 10",
                       kRows[Below(8)], kColumns[Below(4)], Below(100), Below(3) == 0 ? "0.2" : "1.0"));
  }

  void AddStatement() {
    const std::string x = Some();
    switch (Below(38)) {
      case 0: return Draw();
      case 1: return Assign(fmt::format("{} * 2 + 1", x));
      case 2: return Assign(fmt::format("{0} - colMeans({0})", x));
      case 3: return Assign(fmt::format("cbind({0}, rowSums({0}))", x));
      case 4: return Assign(fmt::format("rbind({0}, {0} * 3)", x));
      case 5: return Assign(fmt::format("rbind({0}[1,], {0}, colSums({0}))", x));
      case 6: return Assign(fmt::format("rev({})", x));
      case 7: return Assign(fmt::format("t({})", x));
      case 8: return Assign(fmt::format("t({0}) %*% {0}", x));
      case 9: return Assign(fmt::format("{0} %*% (t({0}) %*% rowSums({0}))", x));
      case 10: return Assign(fmt::format("{0}[1:(1 + nrow({0}) %/% {1}),]", x, 2 + Below(3)));
      case 11: return Assign(fmt::format("{0}[(1 + nrow({0}) %/% {1}):nrow({0}), 1]", x, 2 + Below(3)));
      case 12:
        text_ += fmt::format("{0}[1:(1 + nrow({0}) %/% 3),] = matrix({1}, 1 + nrow({0}) %/% 3, ncol({0}))\n",
                             x, Below(9));
        return;
      case 13:
        return Assign(
            fmt::format("removeEmpty(target={0}, margin=\"rows\", select=({0}[,1] > {1}))", x, Below(6)));
      case 14: return Assign(fmt::format("removeEmpty(target={0} * ({0} > 4), margin=\"rows\")", x));
      case 15: return Assign(fmt::format("removeEmpty(target={0} * (colSums({0}) > 0), margin=\"cols\")", x));
      case 16:
        return Assign(fmt::format("order(target={}, by=1, decreasing={})", x, Below(2) ? "TRUE" : "FALSE"));
      case 17: return Assign(fmt::format("order(target={}, by=1, index.return=TRUE)", x));
      case 18: return Assign(fmt::format("cumsum({})", x));
      case 19: return Assign(fmt::format("table({0}[,1] + 11, ({0}[,1] > 0) + 1)", x));
      case 20: return Assign(fmt::format("unique({})", x));
      case 21: return Assign(fmt::format("roll({}, {})", x, Below(5)));
      case 22: return Assign(fmt::format("matrix({0}, ncol({0}), nrow({0}))", x));
      case 23: return Assign(fmt::format("matrix(quantile({0}[,1], 0.3) + median({0}[,1]), 2, 2)", x));
      case 24: return Assign(fmt::format("matrix(cov({0}, {0} * {0} + 1) + moment({0}, 3), 2, 2)", x));
      case 25: return Assign(fmt::format("matrix(moment({0}, abs({0}) + 1, 2), 2, 2)", x));
      case 26: return Assign(fmt::format("cumsumprod(cbind({0}[,1], {0}[,1] / 100))", x));
      case 27:
        text_ += fmt::format("print(toString({0}, rows={1}, decimal=10))\n", x, 1 + Below(300));
        return;
      case 28: return Assign(fmt::format("matrix(mean({0}, abs({0}) + 1), 1, 2)", x));
      case 29: return Assign(fmt::format("einsum(\"ij,ik->jk\", {0}, {0})", x));
      case 30: return Assign(fmt::format("einsum(\"ij,jk->ki\", {0}, t({0})[,1:1])", x));
      case 31: return Assign(fmt::format("sample(nrow({0}), nrow({0}), {1})", x, Below(90)));
      case 32: {
        const size_t at = names_.size();
        text_ += fmt::format("[f{0}, g{0}] = fft({1})\n", at, x);
        return Assign(fmt::format("round(f{0} * 10) + round(g{0} * 10)", at));
      }
      case 33:
        return Assign(fmt::format("histograms(({0}[,1] > 0) + 1, abs(round({0})) + 1, {0}[,1:1], 2, 4)", x));
      case 34: {
        const size_t at = names_.size();
        text_ += fmt::format(
            "[y{0}, m{0}, v{0}, s{0}, w{0}] = batch_norm2d({1}, matrix(2, 1, 1), matrix(1, 1, 1), "
            "matrix(0, 1, 1), matrix(1, 1, 1), \"train\", 0.1, 0.9)\n",
            at, x);
        return Assign(fmt::format("y{0} * as.scalar(w{0}) + as.scalar(m{0})", at));
      }
      case 35: {
        const size_t at = names_.size();
        text_ += fmt::format(
            "[dx{0}, dg{0}, db{0}] = batch_norm2d_backward({1}, {1} * 2, matrix(2, 1, 1), 0.1, "
            "matrix(1, 1, 1), matrix(0.5, 1, 1))\n",
            at, x);
        return Assign(fmt::format("dx{0} + as.scalar(dg{0}) / 1e6 + as.scalar(db{0}) / 1e6", at));
      }
      case 36:
      case 37: {
        // The last of them asks for what each step has left.
        const size_t at = names_.size();
        const bool asks = Below(2) == 0;
        text_ += fmt::format(
            "W{0} = (matrix(seq(1, 4 * (ncol({1}) + 1)), ncol({1}) + 1, 4) %% 7 - 3) / 10\n"
            "X{0} = cbind({1}, {1} / 2)\nZ{0} = matrix(0.1, nrow({1}), 1)\n"
            "[o{0}, c{0}, O{0}, C{0}, G{0}] = lstm(X{0}, W{0}, matrix(0.1, 1, 4), Z{0}, Z{0}, TRUE)\n"
            "[dX{0}, dW{0}, db{0}, do{0}, dc{0}] = lstm_backward(X{0}, W{0}, matrix(0.1, 1, 4), Z{0}, Z{0}, "
            "TRUE, o{0}, c{0}{2})\n",
            at, x, asks ? fmt::format(", O{0}, C{0}, G{0}", at) : "");
        if (asks) text_ += fmt::format("print(sum(O{0} * (seq(1, 2))) + sum(G{0}) + sum(dW{0}))\n", at);
        return Assign(fmt::format("dX{0} + do{0} + sum(dW{0}) + sum(db{0}) + sum(dc{0})", at));
      }
      default: return;
    }
  }

  SeededRandom random_;
  std::string text_;
  std::vector<std::string> names_;
};

// Seeds by the environment for long runs by hand: HEDDLE_SEEDS=100000.
TEST(DistributedProgramsTest, AnyNumberOfRanksGivesTheSameBytes) {
  const char* const wanted = std::getenv("HEDDLE_SEEDS");
  const uint64_t seeds = wanted == nullptr ? 60 : std::strtoull(wanted, nullptr, 10);
  uint64_t succeeded = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const std::string script = RandomProgram(seed).Make();
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << script);
    const ScriptOutcome one = RunScript(script);
    const ScriptOutcome many = RunScript(script, SplitOver(2 + static_cast<int>(seed % 4)));
    ASSERT_EQ(many.status.ok(), one.status.ok()) << many.status.ToString() << one.status.ToString();
    ASSERT_EQ(many.output, one.output);
    succeeded += one.status.ok();
  }
  EXPECT_GT(succeeded, seeds / 2);
}

// What stays on the ranks where it is, is in no list of operators that ran whole.
TEST(DistributedProgramsTest, NothingRunsWholeButWhatMust) {
  const ScriptOutcome outcome = RunScript(
      "X = rand(rows=2000, cols=6, min=-1, max=1, seed=3)\n"
      "Y = removeEmpty(target=X, margin=\"rows\", select=(X[,1] > 0))\n"
      "Z = rbind(X, Y)\nZ = rev(Z)\nZ = cumsum(Z)\nZ[5:9,] = matrix(1, 5, 6)\nW = Z[100:1500,]\n"
      "print(sum(W) + sum(colSums(t(Y))) + sum(solve(t(X) %*% X, t(X) %*% X[,1])))",
      SplitOver(3));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  for (const SessionStatistics& rank : outcome.statistics)
    for (const auto& [place, times] : rank.ran_whole) ADD_FAILURE() << place << " " << times;
}

}  // namespace
}  // namespace heddle::engine
