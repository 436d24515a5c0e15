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

  // A matrix of so many rows and columns, with or without zeros.
  std::string Drawn(const std::string& rows, const std::string& columns) {
    return fmt::format("round(10 * rand(rows={}, cols={}, min=-1, max=1, seed={}, sparsity={}))", rows,
                       columns, Below(100), Below(3) == 0 ? "0.1" : "1.0");
  }
  // Few and many, of a product.
  std::string Rows() {
    static constexpr const char* kRows[] = {"1", "3", "20", "70", "300"};
    return kRows[Below(5)];
  }

  std::string Wide() {
    static constexpr const char* kColumns[] = {"100", "700", "2001"};
    return kColumns[Below(3)];
  }

  void AddStatement() {
    const std::string x = Some();
    switch (Below(50)) {
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
      case 38: {
        const size_t at = names_.size();
        text_ += fmt::format("[f{0}, g{0}] = fft_linearized({1})\n", at, x);
        return Assign(fmt::format("round(f{0} * 10) + round(g{0} * 10)", at));
      }
      case 39: return Assign(fmt::format("{} %*% {}", Drawn(Rows(), fmt::format("nrow({})", x)), x));
      case 40: return Assign(fmt::format("{} %*% {}", x, Drawn(fmt::format("ncol({})", x), Rows())));
      case 41: return Assign(fmt::format("(t({0}) * 2 + 1) %*% cbind({0}, {0} > 3)", x));
      case 42: {
        const std::string y = Drawn(fmt::format("ncol({})", x), "130");
        return Assign(fmt::format("({} %*% {}) %*% {}", x, y, Drawn("130", Rows())));
      }
      case 43: return Assign(fmt::format("{0} %*% t({0}[1:min(70, nrow({0})),])", x));
      // Wide ones, which ranks have by columns.
      case 44: return Assign(fmt::format("{} + 1", Drawn(Rows(), Wide())));
      case 45: return Assign(fmt::format("exp(matrix({}, {}, {}) / 9)", Below(9), Rows(), Wide()));
      case 46: return Assign(fmt::format("t({0})[,(1 + nrow({0}) %/% 3):nrow({0})]", x));
      case 47: {
        // Bounds that only the run tells, of as many columns as it knows before.
        const size_t at = names_.size();
        text_ += fmt::format("T{0} = t({1})\ni{0} = 1 + as.integer(sum(T{0}[,1]) < 0) * (ncol(T{0}) %/% 2)\n",
                             at, x);
        return Assign(fmt::format("T{0}[,i{0}] + T{0}[,1]", at));
      }
      case 48: return Assign(fmt::format("t({0}) %*% {1}", x, Drawn(fmt::format("nrow({})", x), Rows())));
      case 49: return Assign(fmt::format("t({0}) %*% cbind({0}, {0} > 3)", x));
      default: return;
    }
  }

  SeededRandom random_;
  std::string text_;
  std::vector<std::string> names_;
};

// A program of frames of three columns; every statement is right for every size and every type.
class RandomFrameProgram {
 public:
  explicit RandomFrameProgram(uint64_t seed) : random_(seed) {}

  std::string Make() {
    for (int i = 0; i < 2; ++i) Draw();
    const uint64_t statements = 3 + Below(6);
    for (uint64_t i = 0; i < statements; ++i) AddStatement();
    for (const std::string& name : names_)
      text_ += fmt::format(
          "print({0})\nprint(typeof({0}))\nprint(detectSchema({0}))\n"
          "[X, M] = transformencode(target={0}, spec=\"{{ids: true, recode: [1, 2, 3]}}\")\nprint(M)\n"
          "print(nrow(X) + \" \" + sum(X * (seq(1, nrow(X)) %% 7)))\n",
          name);
    return std::move(text_);
  }

 private:
  uint64_t Below(uint64_t bound) { return random_.Below(bound); }
  const std::string& Some() { return names_[Below(names_.size())]; }

  void Assign(const std::string& value) {
    const std::string name = fmt::format("f{}", names_.size());
    text_ += fmt::format("{} = {}\n", name, value);
    names_.push_back(name);
  }

  void Draw() {
    static constexpr int64_t kRows[] = {1, 3, 64, 65, 130, 500, 1000};
    static constexpr const char* kCells[] = {"round(9 * R)", "round(30 * R) / 2", "(R > 0.5) * 1", "R * 1e12",
                                             "ifelse(R > 0.8, NaN, round(3 * R))"};
    std::string columns;
    for (int j = 0; j < 3; ++j)
      columns += fmt::format("{}{}", j == 0 ? "" : ", ", kCells[Below(std::size(kCells))]);
    text_ += fmt::format("R = rand(rows={}, cols=1, seed={})\n", kRows[Below(7)], Below(100));
    Assign(fmt::format("as.frame(cbind({}))", columns));
  }

  // A frame of so many rows as `name` has, whose first column becomes a part of the result.
  void Encode(const std::string& name) {
    static constexpr const char* kSpecs[] = {
        "{ids: true, dummycode: [1], recode: [2, 3]}",
        "{ids: true, recode: [1, 3], hash: [2], K: 4, omit: [1, 2]}",
        "{ids: true, recode: [1, 2, 3], impute: [{id: 1, method: global_mode}, {id: 2, method: constant, "
        "value: none}]}",
        "{ids: true, bag_of_words: [1], hash: [2, 3], K: 5}"};
    text_ += fmt::format("s = \"{}\"\n[X, M] = transformencode(target={}, spec=s)\n", kSpecs[Below(4)], name);
    text_ += "print(nrow(X) + \" \" + ncol(X) + \" \" + sum(X * (seq(1, nrow(X)) %% 5)))\nprint(M)\n";
    text_ += fmt::format("X = transformapply(target={}, meta=M, spec=s)\nprint(sum(X^2))\n", name);
  }

  // Bins and means of columns of numbers.
  void Bin(const std::string& name) {
    const std::string codes = Codes(name);
    text_ += fmt::format(
        "s = \"{{ids: true, bin: [{{id: 1, method: equi-height, numbins: {}}}, {{id: 2, method: equi-width, "
        "numbins: 3}}], impute: [{{id: 3, method: global_mean}}]}}\"\n"
        "[X, M] = transformencode(target=as.frame({} / 3), spec=s)\n"
        "print(sum(X * (seq(1, nrow(X)) %% 5)))\nprint(M)\n",
        2 + Below(9), codes);
  }

  void AddStatement() {
    const std::string x = Some();
    switch (Below(23)) {
      case 0: return Draw();
      case 1: return Encode(x);
      case 2: return Assign(fmt::format("rbind({}, {})", x, Some()));
      case 3: return Assign(fmt::format("cbind({0}[,1:2], map({0}[,3], \"x -> x + x.length()\"))", x));
      case 4: return Assign(fmt::format("map({}, \"x -> x.equals(\\\"1\\\") ? null : x\")", x));
      case 5: return Assign(fmt::format("map({}, \"x -> new String[]{{x[2], x[0], x[1]}}\", margin=1)", x));
      case 6:
        return Assign(
            fmt::format("map({}, \"UtilFunctions.syntacticalPatternDiscovery(0.3, other)\")", Texts(x)));
      case 7: return Assign(fmt::format("applySchema({0}, detectSchema({0}))", x));
      case 8: return Assign(fmt::format("dropInvalidType({}, frame(\"FP64\", rows=1, cols=3))", x));
      case 9: return Assign(fmt::format("dropInvalidLength({}, matrix(\"1 3 -1\", 1, 3))", x));
      case 10:
        return Assign(fmt::format("replace(target={}, pattern=\"{}\", replacement=\"8\")", x, Below(3)));
      case 11: return Assign(fmt::format("{0}[1:(1 + nrow({0}) %/% {1}),]", x, 2 + Below(3)));
      case 12: return Assign(fmt::format("{0}[(1 + nrow({0}) %/% 2):nrow({0}), ]", x));
      case 13:
        text_ += fmt::format("{0}[1:(1 + nrow({0}) %/% 3), 2] = {0}[1:(1 + nrow({0}) %/% 3), 2]\n", x);
        return;
      case 14:
        return Assign(
            fmt::format("removeEmpty(target={0}, margin=\"rows\", select=(seq(1, nrow({0})) %% {1} != 0))", x,
                        2 + Below(4)));
      case 15: return Assign(fmt::format("removeEmpty(target={}, margin=\"rows\")", x));
      case 16: return Assign(fmt::format("({0} == {0})", x));
      case 17:
        return Assign(
            fmt::format("valueSwap({}, frame([\"INT32\", \"FP64\", \"STRING\"], rows=1, cols=3))", Texts(x)));
      case 18:
        text_ += fmt::format(
            "print(tokenize(target={0}, spec=\"{{algo: split, out: count, id_cols: [1], tokenize_col: 3}}\", "
            "max_tokens=2))\n",
            x);
        return;
      case 19: return Assign(fmt::format("as.frame({})", Codes(x)));
      case 20:
        text_ += fmt::format("print(toString({0}, rows={1}, cols=2))\nprint(colnames({0}))\n", x, Below(9));
        return;
      case 21: return Bin(x);
      case 22: return Assign(fmt::format("map({}, \"x -> x.equals(\\\"2\\\") ? \\\"\\\" : x\")", x));
      default: return;
    }
  }

  // The frame with columns of texts alone.
  static std::string Texts(const std::string& name) { return fmt::format("map({}, \"x -> x\")", name); }
  // Its cells as codes, three columns.
  std::string Codes(const std::string& name) {
    text_ +=
        fmt::format("[X, M] = transformencode(target={}, spec=\"{{ids: true, recode: [1, 2, 3]}}\")\n", name);
    return "replace(target=X, pattern=NaN, replacement=-1)";
  }

  SeededRandom random_;
  std::string text_;
  std::vector<std::string> names_;
};

// Seeds by the environment for long runs by hand: HEDDLE_SEEDS=100000.
template <typename Program>
void ExpectTheSameOnManyRanks() {
  const char* const wanted = std::getenv("HEDDLE_SEEDS");
  const uint64_t seeds = wanted == nullptr ? 60 : std::strtoull(wanted, nullptr, 10);
  uint64_t succeeded = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const std::string script = Program(seed).Make();
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << script);
    const ScriptOutcome one = RunScript(script);
    const ScriptOutcome many = RunScript(script, SplitOver(2 + static_cast<int>(seed % 4)));
    ASSERT_EQ(many.status.ok(), one.status.ok()) << many.status.ToString() << one.status.ToString();
    ASSERT_EQ(many.status.ToString(), one.status.ToString());
    ASSERT_EQ(many.output, one.output);
    succeeded += one.status.ok();
  }
  EXPECT_GT(succeeded, seeds / 2);
}

// So do plans in panels, spilled and kept, whatever their height, on one rank and on several.
template <typename Program>
void ExpectTheSameInPanels() {
  const char* const wanted = std::getenv("HEDDLE_SEEDS");
  const uint64_t seeds = wanted == nullptr ? 60 : std::strtoull(wanted, nullptr, 10);
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const std::string script = Program(seed).Make();
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

TEST(DistributedProgramsTest, PanelsGiveTheSameBytes) { ExpectTheSameInPanels<RandomProgram>(); }
TEST(DistributedProgramsTest, FramesInPanelsAreTheSame) { ExpectTheSameInPanels<RandomFrameProgram>(); }

TEST(DistributedProgramsTest, AnyNumberOfRanksGivesTheSameBytes) {
  ExpectTheSameOnManyRanks<RandomProgram>();
}
TEST(DistributedProgramsTest, FramesOnAnyNumberOfRanksAreTheSame) {
  ExpectTheSameOnManyRanks<RandomFrameProgram>();
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
