// SPDX-License-Identifier: Apache-2.0
// Scripts whose values do not fit into the memory of a rank: the bytes of those that have it, or a refusal.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "tests/support/all_plans.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

constexpr int64_t kMemory = int64_t{1} << 20;  // A third of the matrices below.

SessionOptions WithMemory(int64_t bytes) {
  SessionOptions options;
  options.memory_bytes = bytes;
  return options;
}

// While it lives, the process may hold so many bytes beside what it holds when it begins.
class LimitBeside {
 public:
  explicit LimitBeside(int64_t bytes) : before_(MemoryBudget::Process().limit()) {
    BlockPool::Process().Trim();
    MemoryBudget::Process().SetLimit(MemoryBudget::Process().used() + bytes);
  }
  ~LimitBeside() { MemoryBudget::Process().SetLimit(before_); }
  LimitBeside(const LimitBeside&) = delete;
  LimitBeside& operator=(const LimitBeside&) = delete;

 private:
  const int64_t before_;
};

void ExpectTheSame(const std::string& script, const SessionOptions& options = WithMemory(kMemory)) {
  SCOPED_TRACE(script);
  const ScriptOutcome whole = RunScript(script);
  ASSERT_TRUE(whole.status.ok()) << whole.status.ToString();
  const ScriptOutcome panels = RunScript(script, options);
  EXPECT_EQ(panels.status.ToString(), "ok");
  EXPECT_EQ(panels.output, whole.output);
}

const char* const kDraw = "X = rand(rows=20000, cols=20, min=-1, max=1, seed=3)\n";

TEST(PanelsTest, RowsReductionsAndWritesOfWhatDoesNotFit) {
  ExpectTheSame(std::string(kDraw) +
                "Y = (X - colMeans(X)) / sqrt(colVars(X))\n"
                "print(sum(Y^2) + \" \" + sum(t(X) %*% Y) + \" \" + sum(rowSums(Y) > 1))\n");
}

// A pass that reads what an earlier one has made has panels as low as the others.
TEST(PanelsTest, RowsThatALaterPassReads) {
  ExpectTheSame(std::string(kDraw) +
                "Y = X * 2 + 1\nZ = (Y - colMeans(Y)) / sqrt(colVars(Y))\n"
                "print(sum(Z^2) + \" \" + sum(t(Z) %*% Y))\n");
}

// Few rows of floats below many that are panels stay floats.
TEST(PanelsTest, RowsBelowOthersInSinglePrecision) {
  const std::string script =
      "X = rand(rows=300, cols=4, seed=1)\nr = rand(rows=7, cols=4, seed=3)\n"
      "write(rbind(X, r), \"panels_below\", format=\"binary\")\n"
      "print(sum(read(\"panels_below\") * rbind(X, r)))\n";
  SessionOptions options;
  options.element_type = ElementType::kFloat32;
  const ScriptOutcome whole = RunScript(script, options);
  options.panel_bytes = 1024;
  const ScriptOutcome panels = RunScript(script, options);
  EXPECT_EQ(panels.status.ToString(), "ok");
  EXPECT_EQ(panels.output, whole.output);
}

// A variable that is panels goes into functions, through loops and conditions.
TEST(PanelsTest, VariablesOfPanels) {
  ExpectTheSame(std::string("f = function(matrix[double] X, int k) return (matrix[double] Y) {\n"
                            "  Y = X\n  if (nrow(X) > 10)\n    for (i in 1:k) Y = Y * 0.5 + X\n}\n") +
                kDraw + "Z = f(X, 3)\nprint(sum(Z) + \" \" + sum(Z[,2]))\n");
}

// The rows of a file are read when they are needed, and that may be when the file has been replaced.
TEST(PanelsTest, AFileThatIsReplacedWhileAVariableHasItsRows) {
  for (const char* const format : {"binary", "csv"}) {
    const std::string write = fmt::format(", \"panels_replaced\", format=\"{}\")\n", format);
    ExpectTheSame(std::string(kDraw) + "write(round(X * 100)" + write + "Y = read(\"panels_replaced\")\n" +
                  "write(Y * 2" + write +
                  "Z = read(\"panels_replaced\")\nprint(sum(Y) + \" \" + sum(Z - Y))\n");
  }
}

// So it is where other ranks have some of the rows, also when a rank writes alone, or the run tells the path.
TEST(PanelsTest, AFileThatIsReplacedWhileOtherRanksHaveItsRows) {
  for (const char* const path : {"\"panels_replaced\"", "\"panels_replaced\" + nrow(unique(round(X[,1])))"}) {
    const std::string script = std::string(kDraw) + "path = " + path +
                               "\nwrite(X, path, format=\"binary\")\nY = read(path)\n"
                               "if (nrow(Y) > 3) print(sum(Y[1:3,]))\n"
                               "write(Y * 2, path, format=\"binary\")\nZ = read(path)\n"
                               "print(sum(Y) + \" \" + sum(Z - Y))\n"
                               "write(X[1:5,], path, format=\"binary\")\n"
                               "print(sum(Z) + \" \" + sum(Z - Y))\n";
    SCOPED_TRACE(script);
    const ScriptOutcome whole = RunScript(script);
    ASSERT_TRUE(whole.status.ok()) << whole.status.ToString();
    SessionOptions options = SplitOver(3);
    options.panel_bytes = 1;
    const ScriptOutcome panels = RunScript(script, options);
    EXPECT_EQ(panels.status.ToString(), "ok");
    EXPECT_EQ(panels.output, whole.output);
  }
}

// A share of exactly the memory leaves nothing for the kernel that reads it.
TEST(PanelsTest, AShareThatIsAllOfTheMemoryStreams) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("heddle-share-{}.csv", getpid());
  std::ofstream lines(path);
  for (int row = 0; row < 262144; ++row) lines << row % 10 << ",1,2,3,4,5,6,7,8,9,0,1,2,3,4,5\n";
  lines.close();
  const std::string script =
      fmt::format("X = read(\"{}\", format=\"csv\", rows=262144, cols=16)\n", path.string()) +
      "if (nrow(X) > 3) print(sum(X * seq(1, nrow(X))))\n";
  SessionOptions options = SplitOver(2);
  options.memory_bytes = int64_t{16} << 20;
  ExpectTheSame(script, options);
  std::filesystem::remove(path);
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Of a variable whose rows pass, of rows that are made in the pass, and of rows of a file: no row is kept.
TEST(PanelsTest, AWriteAppendsToItsFileAsPanelsPass) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("heddle-appended-{}", getpid());
  std::filesystem::create_directories(folder);
  // Half of the cells are 0 behind the first third of the rows.
  const std::string begin =
      std::string(kDraw) +
      "Y = round(X * 100 - seq(1, 20000) / 300) * (X > 0) + 0.25 * (seq(1, 20000) < 7000)\n";
  for (const char* const format : {"binary", "csv", "text", "mm", "libsvm", "npy"}) {
    SCOPED_TRACE(format);
    const auto script = [&](const std::string& name) {
      return begin + fmt::format("write(Y, \"{}/{}\", format=\"{}\")\nprint(\"done\")\n", folder.string(),
                                 name, format);
    };
    const ScriptOutcome whole = RunScript(script("whole"));
    ASSERT_TRUE(whole.status.ok()) << whole.status.ToString();
    SessionOptions options = WithMemory(kMemory);
    options.require_streaming = true;
    const ScriptOutcome panels = RunScript(script("panels"), options);
    ASSERT_EQ(panels.status.ToString(), "ok");
    EXPECT_EQ(panels.statistics[0].spilled_bytes, 0);
    EXPECT_TRUE(BytesOf(folder / "whole") == BytesOf(folder / "panels"));
    EXPECT_EQ(BytesOf(folder / "whole.mtd"), BytesOf(folder / "panels.mtd"));
  }
  std::filesystem::remove_all(folder);
}

// A run that fails behind the first panels leaves what was there.
TEST(PanelsTest, AWriteThatFailsLeavesTheOlderFile) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("heddle-appended-{}", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "out.csv") << "older\n";
  std::ofstream lines(folder / "in.csv");
  for (int row = 0; row < 40000; ++row) lines << row << ",1,2,3,4,5\n";
  lines << "1,2,3,4,5,text\n";
  lines.close();
  for (const int ranks : {1, 3}) {
    SCOPED_TRACE(ranks);
    SessionOptions options = SplitOver(ranks);
    options.memory_bytes = ranks == 1 ? kMemory : 16 * kMemory;
    options.panel_bytes = 5000;        // About a hundred rows.
    options.require_streaming = true;  // Rows that were kept for the write would be refused.
    const ScriptOutcome outcome =
        RunScript(fmt::format("X = read(\"{0}/in.csv\", format=\"csv\", rows=40001, cols=6)\n"
                              "write(X * 2, \"{0}/out.csv\", format=\"csv\")\n",
                              folder.string()),
                  options);
    EXPECT_EQ(outcome.status.code(), StatusCode::kDataLoss) << outcome.status.ToString();
    EXPECT_EQ(BytesOf(folder / "out.csv"), "older\n");
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      names.insert(entry.path().filename().string());
    EXPECT_EQ(names, (std::set<std::string>{"in.csv", "out.csv"}));
  }
  std::filesystem::remove_all(folder);
}

struct SharedWrite {
  const char* options;
  bool is_frame = false;
  bool is_uneven = false;  ///< Only the first rows are left, so that the last ranks have none.
};
constexpr SharedWrite kSharedWrites[] = {{"format=\"binary\""},
                                         {"format=\"csv\", sep=\";\", header=TRUE"},
                                         {"format=\"csv\", sparse=TRUE"},
                                         {"format=\"text\""},
                                         {"format=\"mm\""},
                                         {"format=\"libsvm\""},
                                         {"format=\"npy\""},
                                         {"format=\"csv\", compression=\"gzip\""},
                                         {"format=\"text\", compression=\"zstd\""},
                                         {"format=\"binary\", compression=\"zstd\""},
                                         {"format=\"csv\", parts=5"},
                                         {"format=\"binary\", parts=2"},
                                         {"format=\"csv\"", true},
                                         {"format=\"binary\"", true},
                                         {"format=\"jsonl\"", true},
                                         {"format=\"arff\"", true},
                                         {"format=\"text\", compression=\"gzip\"", true},
                                         {"format=\"jsonl\", parts=3", true},
                                         {"format=\"csv\"", false, true},
                                         {"format=\"binary\"", false, true},
                                         {"format=\"npy\", parts=3", false, true}};

// The bytes of a file, or of all files of a folder, and of the metadata.
std::string AllBytesOf(const std::filesystem::path& path) {
  std::string bytes = BytesOf(path.string() + ".mtd");
  if (!std::filesystem::is_directory(path)) return bytes + BytesOf(path);
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) files.insert(entry.path());
  for (const std::filesystem::path& file : files) bytes += file.filename().string() + BytesOf(file);
  return bytes;
}

// Several ranks write rows that do not fit where they belong, and so does one that makes a folder: of values
// that pass, of files that are read as they pass, with panels of any height down to a row, and where a rank
// has no rows.
TEST(PanelsTest, SeveralRanksWriteTheirRowsToOneFile) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("heddle-shared-write-{}", getpid());
  const char* const kMatrix =
      "X = rand(rows={0}, cols=20, min=-1, max=1, seed=3)\n"
      "Y = round(X * 100 - seq(1, {0}) / {0} * 66) * (X > 0) + 0.25 * (seq(1, {0}) < {0} * 0.35)\n";
  const char* const kFirstRows =
      "Y = removeEmpty(target=Y, margin=\"rows\", select=(seq(1, {0}) < {0} * 0.45) * (X[,1] > 0))\n"
      "if (nrow(Y) > 3) print(nrow(Y))\n";
  struct Way {
    int rows, ranks, panel_bytes;
  };
  constexpr Way kWays[] = {{20000, 1, 3000}, {20000, 2, 7000}, {20000, 3, 100'000},
                           {20000, 4, 5000}, {1500, 1, 1},     {1500, 3, 1}};
  for (const SharedWrite& write : kSharedWrites) {
    SCOPED_TRACE(std::string(write.options) + (write.is_frame ? " of a frame" : "") +
                 (write.is_uneven ? " of the first rows" : ""));
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const auto script = [&](int rows, const std::string& name) {
      return fmt::format(fmt::runtime(kMatrix), rows) + (write.is_frame ? "Y = as.frame(Y)\n" : "") +
             (write.is_uneven ? fmt::format(fmt::runtime(kFirstRows), rows) : "") +
             fmt::format("write(Y, \"{}/{}\", {})\nprint(\"done\")\n", folder.string(), name, write.options);
    };
    int written_rows = 0;  // Of the file that is written whole.
    for (size_t w = 0; w < std::size(kWays); ++w) {
      const Way& way = kWays[w];
      // Each format in two of the ways, and each way with a third of the formats.
      const auto format = static_cast<size_t>(&write - kSharedWrites);
      if (!testing_support::RunsAllPlans() && (w + format) % 3 != 0) continue;
      SCOPED_TRACE(testing::Message() << way.ranks << " ranks, panels of " << way.panel_bytes);
      if (std::exchange(written_rows, way.rows) != way.rows) {
        const ScriptOutcome whole = RunScript(script(way.rows, "whole"));
        ASSERT_TRUE(whole.status.ok()) << whole.status.ToString();
      }
      SessionOptions options = SplitOver(way.ranks);
      options.memory_bytes = 16 * kMemory;
      options.panel_bytes = way.panel_bytes;
      options.require_streaming = true;
      const ScriptOutcome panels = RunScript(script(way.rows, "panels"), options);
      ASSERT_EQ(panels.status.ToString(), "ok");
      EXPECT_TRUE(AllBytesOf(folder / "whole") == AllBytesOf(folder / "panels"));
      for (const auto& entry : std::filesystem::directory_iterator(folder))
        EXPECT_NE(entry.path().filename().string()[0], '.') << entry.path();
    }
  }
  std::filesystem::remove_all(folder);
}

// Rows that a write reads from a handle are as few as the memory allows.
TEST(PanelsTest, AWriteFromAHandleFitsIntoLittleMemory) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("heddle-little-write-{}", getpid());
  std::filesystem::create_directories(folder);
  const auto script = [&](const std::string& name) {
    return fmt::format(
        "X = rand(rows=100000, cols=20, min=-1, max=1, seed=3)\nwrite(X, \"{}/{}\", format=\"csv\", parts=3)\n",
        folder.string(), name);
  };
  const ScriptOutcome whole = RunScript(script("whole"));
  ASSERT_TRUE(whole.status.ok()) << whole.status.ToString();
  {
    SessionOptions options = WithMemory(3 * kMemory);
    options.require_streaming = true;
    const LimitBeside limit(3 * kMemory);
    const ScriptOutcome panels = RunScript(script("panels"), options);
    ASSERT_EQ(panels.status.ToString(), "ok");
  }
  EXPECT_TRUE(AllBytesOf(folder / "whole") == AllBytesOf(folder / "panels"));
  std::filesystem::remove_all(folder);
}

// What is alive beside a plan that does not read it leaves less for the plan.
TEST(PanelsTest, PlansLeaveRoomForVariablesThatTheyDoNotRead) {
  constexpr int64_t kRoom = 13 * kMemory;  // U takes 8 MiB of it.
  const std::string script =
      "U = rand(rows=48000, cols=20, min=-1, max=1, seed=5)\nif (sum(U) > 0) print(\"positive\")\n"
      "X = rand(rows=200000, cols=20, min=-1, max=1, seed=3)\nY = X * 2 + 1\nW = X * 3 - 1\n"
      "if (sum(Y * W) > 0) print(\"positive\")\n"
      "Z = (Y - W) * X\nprint(sum(t(Y * W) %*% Z) + sum(Z))\nprint(sum(U))\n";
  const ScriptOutcome whole = RunScript(script);
  ASSERT_TRUE(whole.status.ok()) << whole.status.ToString();
  const LimitBeside limit(kRoom);
  const ScriptOutcome panels = RunScript(script, WithMemory(kRoom));
  EXPECT_EQ(panels.status.ToString(), "ok");
  EXPECT_EQ(panels.output, whole.output);
}

// What has stages runs in them, whatever is in memory meanwhile.
TEST(PanelsTest, WhatNeedsRowsOfAllPanelsRunsInStages) {
  const std::string script =
      std::string(kDraw) +
      "O = order(target=X, by=1)\n"
      "C = cumsum(O)\n"
      "R = removeEmpty(target=C, margin=\"rows\", select=X[,1] > 0)\n"
      "B = rbind(R, X)\n"
      "print(sum(O[1:3,]) + \" \" + sum(C) + \" \" + nrow(R) + \" \" + sum(B[5:2000,2]))\n"
      "print(sum(t(X)) + \" \" + median(X[,2]) + \" \" + sum(table(round(10 * X[,1]) + 11, round(10 * X[,2]) + 11) ^ 2))\n";
  SessionOptions options = WithMemory(kMemory);
  options.require_streaming = true;
  ExpectTheSame(script, options);
}

// So do several ranks, each of which has a share that does not fit, wherever the rows go.
TEST(PanelsTest, SeveralRanksRunStagesOnPanels) {
  const std::string script =
      "X = rand(rows=80000, cols=20, min=-1, max=1, seed=3)\n"
      "O = order(target=X, by=1)\nprint(sum(O[1:3,]) + \" \" + sum(O[50000:50010,2]))\n"
      "C = cumsum(X)\nprint(sum(C))\n"
      "R = removeEmpty(target=C, margin=\"rows\", select=X[,1] > 0)\n"
      "B = rbind(R, rev(X))\nprint(nrow(R) + \" \" + sum(B) + \" \" + sum(B[5:20000,2]))\n"
      "B = B * 2 + 1\nprint(sum(B))\n"
      "print(median(X[,2]) + \" \" + sum(table(round(10 * X[,1]) + 11, round(10 * X[,2]) + 11) ^ 2))\n"
      "M = matrix(X, rows=160000, cols=10)\nprint(sum(M[77:150000,3]) + \" \" + nrow(unique(round(99 * X[,1]))))\n";
  const ScriptOutcome whole = RunScript(script);
  ASSERT_TRUE(whole.status.ok()) << whole.status.ToString();
  for (const int ranks : {2, 3}) {
    SessionOptions options = SplitOver(ranks);
    options.memory_bytes = 8 * kMemory;
    options.require_streaming = true;
    const ScriptOutcome panels = RunScript(script, options);
    EXPECT_EQ(panels.status.ToString(), "ok");
    EXPECT_EQ(panels.output, whole.output);
  }
}

// Lists of tree nodes are joined as panels pass: those of all panels together would not fit.
TEST(PanelsTest, ListsOfManyPanelsTakeTheMemoryOfFew) {
  // 63 panels of 64 rows, of which each makes a list of 2.5 MB.
  const std::string script =
      "X = rand(rows=4000, cols=800, min=-1, max=1, seed=3)\n"
      "C = t(X) %*% X\nprint(sum(C) + \" \" + sum(C[,7]))\n";
  const ScriptOutcome whole = RunScript(script);
  ASSERT_TRUE(whole.status.ok()) << whole.status.ToString();
  const LimitBeside limit(int64_t{90} << 20);
  SessionOptions options = WithMemory(int64_t{60} << 20);
  options.panel_bytes = 1;
  const ScriptOutcome panels = RunScript(script, options);
  EXPECT_EQ(panels.status.ToString(), "ok");
  EXPECT_EQ(panels.output, whole.output);
}

// Values of which only the run tells the size may be as large as what they are made of: both together would
// not fit.
TEST(PanelsTest, ValuesOfUnknownSizeStream) {
  constexpr int64_t kBytes = 5'000'000;  // X has 3.2 MB.
  const char* const kScripts[] = {
      "Y = removeEmpty(target=X, margin=\"rows\", select=X[,1] > -0.9)\n",
      "Y = removeEmpty(target=X, margin=\"rows\")\n",
      "Y = removeEmpty(target=X, margin=\"cols\", select=t(colSums(X != 2) > 0))\n",
      "Y = unique(X, dir=\"r\")\n",
      "Y = rbind(removeEmpty(target=X, margin=\"rows\", select=X[,1] > -0.9), X[1:10,])\n",
      "Y = order(target=removeEmpty(target=X, margin=\"rows\", select=X[,1] > -0.9), by=1)\n",
  };
  for (const char* const script : kScripts) {
    const std::string text =
        std::string(kDraw) + script + "print(sum(Y) + \" \" + nrow(Y) + \" \" + sum(Y[,3]))\n";
    SCOPED_TRACE(text);
    const ScriptOutcome whole = RunScript(text);
    ASSERT_TRUE(whole.status.ok()) << whole.status.ToString();
    const LimitBeside limit(kBytes);
    const ScriptOutcome panels = RunScript(text, WithMemory(kBytes));
    EXPECT_EQ(panels.status.ToString(), "ok");
    EXPECT_EQ(panels.output, whole.output);
  }
}

// t(X) of a tall X has few rows, which are long: what does not add them up takes some at a time. G is added
// up in a block of its own.
TEST(PanelsTest, TheTransposedOfATallMatrixStreams) {
  const std::string script =
      "X = rand(rows=20000, cols=50, min=-1, max=1, seed=3)\nT = t(X)\nW = T > 0\n"
      "U = rand(rows=20000, cols=2, seed=4)\nV = rand(rows=50, cols=2, seed=5)\n"
      "G = (W * (V %*% t(U) - T)) %*% U\n"
      "for (i in 1:2) print(sum(G[,i]) + \" \" + sum(rowSums(T)) + \" \" + sum(T[7,3:900]) + \" \" + "
      "sum(t(T)[19,]))\n";
  ExpectTheSame(script, WithMemory(int64_t{4} << 20));
}

// Free blocks that cannot be given back are no room for panels.
TEST(PanelsTest, BlocksThatOthersHoldLeaveNoRoomInTheirChunks) {
  const std::string script =
      "X = rand(rows=600000, cols=20, min=-1, max=1, seed=3)\nY = X * 2\ns = sum(Y)\n"
      "for (i in 1:2) s = s + sum(colSums(Y * i))\nprint(s)\n";
  const ScriptOutcome whole = RunScript(script);
  BlockPool& pool = BlockPool::Process();
  pool.Trim();
  constexpr int64_t kBlock = int64_t{1} << 20;
  std::vector<void*> held, freed;
  for (int i = 0; i < 40; ++i) (i % 2 == 0 ? held : freed).push_back(*pool.Allocate(kBlock));
  for (void* const block : freed) pool.Free(block, kBlock);
  const int64_t bytes = pool.budget().used() + (int64_t{24} << 20);
  const LimitBeside limit(bytes - pool.budget().used());
  const ScriptOutcome panels = RunScript(script, WithMemory(bytes));
  for (void* const block : held) pool.Free(block, kBlock);
  EXPECT_EQ(panels.status.ToString(), "ok");
  EXPECT_EQ(panels.output, whole.output);
}

// Entries of CSR variables are counted, in memory and of panels that are collected.
TEST(PanelsTest, CsrVariables) {
  ExpectTheSame(
      "X = rand(rows=20000, cols=40, min=-1, max=1, sparsity=0.3, seed=3)\nX[1:64,] = 0\n"
      "if (sum(X) != 0) Y = X * 2\nfor (i in 1:2) Y = Y * X + Y\n"
      "print(sum(Y) + \" \" + sum(Y[,2:9]) + \" \" + sum(abs(colMeans(Y - X))))\n");
}

// A list needs the value whole: panels that have room beside it are not written before they are copied.
TEST(PanelsTest, WhatIsPutTogetherLeavesPanelsInMemory) {
  const std::string script =
      "X = rand(rows=100000, cols=20, min=-1, max=1, seed=3)\nY = X * 2\nL = list(Y)\n"
      "print(sum(as.matrix(L[1])))\n";
  const ScriptOutcome whole = RunScript(script);
  BlockPool::Process().Trim();
  const ScriptOutcome panels = RunScript(script, WithMemory(int64_t{30} << 20));
  EXPECT_EQ(panels.status.ToString(), "ok");
  EXPECT_EQ(panels.output, whole.output);
  EXPECT_GT(panels.statistics[0].spilled_bytes, 0) << "16 MB of panels and as much of the whole in 30 MiB";
  EXPECT_LT(panels.statistics[0].spilled_bytes, 12'000'000);
}

TEST(PanelsTest, WhatHasToBeWholeIsRefused) {
  const ScriptOutcome outcome =
      RunScript(std::string(kDraw) + "[U, S, V] = svd(X)\nprint(sum(S))\n", WithMemory(kMemory));
  EXPECT_EQ(outcome.status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(outcome.status.ToString().find("the limit is 1048576 bytes"), std::string::npos)
      << outcome.status.ToString();
}

}  // namespace
}  // namespace heddle::engine
