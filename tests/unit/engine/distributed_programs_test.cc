// SPDX-License-Identifier: Apache-2.0
// Random programs give the same bytes on one rank and on several, whatever the cuts that come out on the way.
#include <gtest/gtest.h>

#include "tests/support/seeds.h"
#include "tests/unit/engine/random_programs.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

using testing_support::Seeds;
using testing_support::SeedsOf;

std::string MatrixProgram(uint64_t seed) { return RandomMatrixProgram(seed); }

void ExpectTheSameOnManyRanks(std::string (*program)(uint64_t seed)) {
  const Seeds seeds = SeedsOf(20);
  uint64_t succeeded = 0;
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const std::string script = program(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << script);
    const ScriptOutcome one = RunScript(script);
    const ScriptOutcome many = RunScript(script, SplitOver(2 + static_cast<int>(seed % 4)));
    ASSERT_EQ(many.status.ok(), one.status.ok()) << many.status.ToString() << one.status.ToString();
    ASSERT_EQ(many.status.ToString(), one.status.ToString());
    ASSERT_EQ(many.output, one.output);
    succeeded += one.status.ok();
  }
  EXPECT_GT(succeeded, seeds.count() / 2);
}

// So do plans in panels, spilled and kept, whatever their height, on one rank and on several.
void ExpectTheSameInPanels(std::string (*program)(uint64_t seed)) {
  const Seeds seeds = SeedsOf(20);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const std::string script = program(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << script);
    const ScriptOutcome whole = RunScript(script);
    const int ranks = 1 + static_cast<int>(seed % 3);
    SessionOptions options = ranks == 1 ? SessionOptions() : SplitOver(ranks);
    options.panel_bytes = int64_t{1} << (seed % 17);
    const ScriptOutcome panels = RunScript(script, options);
    ASSERT_EQ(panels.status.ToString(), whole.status.ToString());
    ASSERT_EQ(panels.output, whole.output);
  }
}

TEST(DistributedProgramsTest, PanelsGiveTheSameBytes) { ExpectTheSameInPanels(MatrixProgram); }
TEST(DistributedProgramsTest, FramesInPanelsAreTheSame) { ExpectTheSameInPanels(RandomFrameProgram); }

TEST(DistributedProgramsTest, AnyNumberOfRanksGivesTheSameBytes) { ExpectTheSameOnManyRanks(MatrixProgram); }
TEST(DistributedProgramsTest, FramesOnAnyNumberOfRanksAreTheSame) {
  ExpectTheSameOnManyRanks(RandomFrameProgram);
}

// What stays on the ranks where it is, is in no list of operators that ran whole.
TEST(DistributedProgramsTest, NothingRunsWholeButWhatMust) {
  const ScriptOutcome outcome = RunScript(
      "X = rand(rows=2000, cols=6, min=-1, max=1, seed=3)\n"
      "Y = removeEmpty(target=X, margin=\"rows\", select=(X[,1] > 0))\n"
      "Z = rbind(X, Y)\nZ = rev(Z)\nZ = cumsum(Z)\nZ[5:9,] = matrix(1, 5, 6)\nW = Z[100:1500,]\n"
      "V = rand(rows=3, cols=nrow(Z), seed=4) %*% Z\n"
      "U = rand(rows=300, cols=nrow(Z), seed=5) %*% cbind(Z, Z, Z)\n"
      "print(sum(W) + sum(V) + sum(U) + sum(colSums(t(Y))) + sum(solve(t(X) %*% X, t(X) %*% X[,1])))",
      SplitOver(3));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  for (const SessionStatistics& rank : outcome.statistics)
    for (const auto& [place, times] : rank.ran_whole) ADD_FAILURE() << place << " " << times;
}

// Neither do operators on frames and transforms.
TEST(DistributedProgramsTest, NoOperatorOnFramesRunsWhole) {
  const std::string script = R"dml(
R = rand(rows=2000, cols=3, min=0, max=30, seed=3)
F = as.frame(cbind(round(R[,1:2]), R[,3]))
F = cbind(F, map(F[,1], "x -> x + \"k\""))
print(typeof(F))
print(colnames(F))
print(detectSchema(F))
H = applySchema(F, detectSchema(F))
H = dropInvalidType(H, frame(["INT32", "FP64", "FP64", "STRING"], rows=1, cols=4))
H = dropInvalidLength(H, matrix("2 -1 5 3", 1, 4))
H = replace(target=H, pattern="3k", replacement="4k")
H[5:9, 1] = as.frame(matrix(3, 5, 1))
print(sum(as.matrix(H == F)))
G = H[,2]
H = rbind(H, cbind(F[,4], G, G, F[,4]))
H = removeEmpty(target=H, margin="rows", select=(seq(1, nrow(H)) %% 3 != 0))
P = removeEmpty(target=H, margin="cols")
print(typeof(P))
H = H[1:900,]
spec = "{ids: true, recode: [4], dummycode: [1], bin: [{id: 2, method: equi-height, numbins: 4}], " +
  "impute: [{id: 3, method: global_mean}], omit: [4]}"
[X, M] = transformencode(target=H, spec=spec)
Y = transformapply(target=H, meta=M, spec=spec)
print(sum(X) + " " + sum(Y != X))
print(transformdecode(target=Y, meta=M, spec=spec))
print(transformcolmap(target=M, spec=spec))
print(getCategoricalMask(M, spec))
T = tokenize(target=H, spec="{algo: split, out: count, id_cols: [1], tokenize_col: 4}", max_tokens=5)
print(toString(T, rows=5))
V = valueSwap(map(H, "x -> x"), frame(["INT32", "FP64", "FP64", "STRING"], rows=1, cols=4))
print(V[3,])
Q = map(H[,1:2], "x -> new String[]{x[1], x[0]}", margin=1)
Q = map(Q, "UtilFunctions.syntacticalPatternDiscovery(0.3, other)")
print(freplicate(Q, Q[1,]))
print(frame("z", rows=3000, cols=2))
)dml";
  const ScriptOutcome one = RunScript(script);
  ASSERT_TRUE(one.status.ok()) << one.status.ToString();
  for (const int ranks : {2, 3, 5}) {
    const ScriptOutcome many = RunScript(script, SplitOver(ranks));
    ASSERT_TRUE(many.status.ok()) << many.status.ToString();
    EXPECT_EQ(many.output, one.output);
    for (const SessionStatistics& rank : many.statistics)
      for (const auto& [place, times] : rank.ran_whole) ADD_FAILURE() << place << " " << times;
  }
}

// Cells of two ranks are wrong: the message is that of one process.
TEST(DistributedProgramsTest, FramesFailAsOnOneRank) {
  const std::string frame =
      "n = seq(1, 2000)\nA = as.frame(n)\n"
      "F = cbind(map(A, \"x -> x.equals(\\\"1500\\\") ? \\\"late\\\" : x\"), "
      "map(A, \"x -> x.equals(\\\"3\\\") ? \\\"early\\\" : x\"))\n";
  for (
      const char* const statement :
      {"X = as.matrix(F)", "[X, M] = transformencode(target=F, spec=\"{ids: true, hash: [1], K: 3}\")",
       "[X, M] = transformencode(target=F, spec=\"{ids: true, bin: [{id: 1, method: equi-height, numbins: 2}]}\")",
       "X = as.matrix(applySchema(F, frame(\"INT32\", rows=1, cols=2)))",
       "X = as.matrix(map(F, \"x -> Integer.parseInt(x)\"))",
       "X = as.matrix(map(F, \"x -> new String[]{Integer.toString(Integer.parseInt(x[1])), x[0]}\", margin=1))",
       "A = cbind(A, A)\nA[,] = F\nX = as.matrix(A)"}) {
    const std::string script = frame + statement + "\nprint(sum(X))\n";
    SCOPED_TRACE(script);
    const ScriptOutcome one = RunScript(script);
    EXPECT_FALSE(one.status.ok());
    for (const int ranks : {2, 3, 5})
      EXPECT_EQ(RunScript(script, SplitOver(ranks)).status.ToString(), one.status.ToString());
  }
}

// So do the rows of two ranks: the first row's message, with its number among all rows.
TEST(DistributedProgramsTest, MatricesFailAsOnOneRank) {
  const std::string keys =
      "n = 2000\nX = rand(rows=n, cols=3, seed=1)\nk = round(9 * rand(rows=n, cols=1, seed=2)) + 1\n"
      "low = k\nlow[1001, 1] = matrix(-7, 1, 1)\nlow[1999, 1] = matrix(-8, 1, 1)\n"
      "wide = k\nwide[701, 1] = matrix(1e30, 1, 1)\nwide[1999, 1] = matrix(-8, 1, 1)\n";
  for (const char* const statement :
       {"Y = table(low, k)", "Y = table(k, low)", "Y = table(low, k, 20, 20)", "Y = table(wide, k)",
        "Y = table(k, wide, X[,1])", "Y = aggregate(target=X, groups=low, fn=\"mean\")",
        "Y = aggregate(target=X, groups=low, fn=\"variance\", ngroups=12)",
        "Y = aggregate(target=X[,1], groups=low, fn=\"count\", ngroups=12)",
        "Y = aggregate(target=X, groups=wide, fn=\"sum\")", "Y = matrix(quantile(X[,1], low, 0.5), 1, 1)",
        "Y = matrix(interQuartileMean(X[,1], low), 1, 1)", "Y = matrix(median(X[,1], wide), 1, 1)"}) {
    const std::string script = keys + statement + "\nprint(sum(Y))\n";
    SCOPED_TRACE(script);
    const ScriptOutcome one = RunScript(script);
    EXPECT_FALSE(one.status.ok());
    for (const int ranks : {2, 3, 5})
      EXPECT_EQ(RunScript(script, SplitOver(ranks)).status.ToString(), one.status.ToString());
  }
}

}  // namespace
}  // namespace heddle::engine
