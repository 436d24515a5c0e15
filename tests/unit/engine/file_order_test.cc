// SPDX-License-Identifier: Apache-2.0
// Reads and writes of one file keep their order in the script, on any number of ranks.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "actor/in_process_link.h"
#include "core/environment/clock.h"
#include "ops/io/files/files.h"
#include "tests/support/process.h"
#include "tests/unit/engine/control_channel_in_process.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

using testing_support::TemporaryFolder;

// Sessions in folders of their own; before a plan runs, `meanwhile` is called with the rank that made or got
// it.
ScriptOutcome RunIn(const std::vector<std::string>& folders, const std::string& text,
                    const std::function<void(int rank)>& meanwhile = nullptr) {
  const Program program = CompileOrDie(text);
  const size_t ranks = folders.size();
  SessionOptions options = SplitOver(static_cast<int>(ranks), 2);
  options.seed = 1;
  ScriptOutcome outcome;
  actor::InProcessNetwork network(static_cast<uint32_t>(ranks));
  const std::vector<std::unique_ptr<ControlChannel>> channels = InProcessChannels(options.ranks);
  std::vector<std::unique_ptr<ops::Files>> files;
  std::vector<std::unique_ptr<Session>> sessions;
  for (size_t rank = 0; rank < ranks; ++rank) {
    options.rank = static_cast<int>(rank);
    files.push_back(ops::MakeFiles(folders[rank]));
    SessionEnvironment environment;
    environment.files = files.back().get();
    environment.clock = &SystemClock();
    environment.print = [&outcome](std::string_view part) { outcome.output += part; };
    environment.link = ranks > 1 ? &network.LinkOf(static_cast<uint32_t>(rank)) : nullptr;
    environment.control = ranks > 1 ? channels[rank].get() : nullptr;
    if (meanwhile) environment.observe_plan = [&, rank](const Plan&) { meanwhile(static_cast<int>(rank)); };
    sessions.push_back(Session::Create(options, program, environment));
    if (ranks > 1) network.Attach(static_cast<uint32_t>(rank), *sessions.back()->handler());
  }
  std::vector<Status> statuses(ranks);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      statuses[rank] = sessions[rank]->Run();
      for (size_t other = 0; !statuses[rank].ok() && other < ranks; ++other)
        if (other != rank) sessions[other]->Cancel(statuses[rank]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (ranks > 1) network.Detach(static_cast<uint32_t>(rank));
    if (outcome.status.ok()) outcome.status = statuses[rank];
    outcome.statistics.push_back(sessions[rank]->statistics());
  }
  return outcome;
}

// The output in fresh folders; each rank count must give the same.
std::string OutputOf(const std::string& text) {
  std::string output;
  for (const size_t ranks : {1, 2, 3}) {
    SCOPED_TRACE(ranks);
    const TemporaryFolder folder;
    const ScriptOutcome outcome = RunIn(std::vector<std::string>(ranks, folder.path()), text);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    if (ranks > 1) {
      EXPECT_EQ(outcome.output, output);
    }
    output = outcome.output;
  }
  return output;
}

TEST(FileOrderTest, AReadComesAfterTheWriteInItsBlock) {
  EXPECT_EQ(OutputOf("write(matrix(3, rows=200, cols=4), \"o.csv\", format=\"csv\")\nB = read(\"o.csv\")\n"
                     "print(sum(B))"),
            "2400.0\n");
  // Cells of an earlier run of the same size must not come back.
  EXPECT_EQ(OutputOf("write(matrix(1, rows=200, cols=4), \"o.csv\", format=\"csv\")\n"
                     "for (i in 2:4) {\n  write(matrix(i, rows=200, cols=4), \"o.csv\", format=\"csv\")\n"
                     "  print(sum(read(\"o.csv\", format=\"csv\")))\n}"),
            "1600.0\n2400.0\n3200.0\n");
}

TEST(FileOrderTest, SizesAreLookedUpAgainInEveryRound) {
  EXPECT_EQ(OutputOf("for (i in 1:5) {\n  write(matrix(i, rows=150 * i, cols=i), \"o.csv\", format=\"csv\")\n"
                     "  B = read(\"o.csv\")\n  print(nrow(B) + \" \" + ncol(B) + \" \" + sum(B))\n}"),
            "150 1 150.0\n300 2 1200.0\n450 3 4050.0\n600 4 9600.0\n750 5 18750.0\n");
}

// As many bytes each time, written one right after the other.
TEST(FileOrderTest, FilesThatClockAndSizeDoNotTellApartAreToldApart) {
  EXPECT_EQ(
      OutputOf(
          "s = \"\"\nfor (i in 1:20) {\n  if (i %% 2 == 0) {\n    X = matrix(1, rows=4, cols=1)\n  } else {\n"
          "    X = matrix(1, rows=1, cols=4)\n  }\n  write(X, \"o.csv\", format=\"csv\")\n"
          "  B = read(\"o.csv\", format=\"csv\")\n  s = s + nrow(B)\n}\nprint(s)"),
      "14141414141414141414\n");
}

TEST(FileOrderTest, AWriteComesAfterTheReadsBeforeItOnAllRanks) {
  EXPECT_EQ(
      OutputOf(
          "write(matrix(1, rows=2000, cols=3), \"o.csv\", format=\"csv\")\n"
          "for (i in 1:20) {\n  B = read(\"o.csv\", format=\"csv\")\n  write(B + 1, \"o.csv\", format=\"csv\")\n"
          "}\nprint(sum(read(\"o.csv\", format=\"csv\")))"),
      "126000.0\n");
  // In a block of its own, while other ranks may still be reading.
  EXPECT_EQ(
      OutputOf(
          "write(matrix(1, rows=2000, cols=3), \"o.csv\", format=\"csv\")\ns = 0\n"
          "for (i in 1:20) {\n  B = read(\"o.csv\", format=\"csv\")\n  if (i > 0) {\n"
          "    write(matrix(i, rows=2000, cols=3), \"o.csv\", format=\"csv\")\n  }\n  s = s + sum(B)\n}\nprint(s)"),
      "1146000.0\n");
}

TEST(FileOrderTest, OtherNamesOfAFileAreThatFile) {
  const std::string script =
      "write(matrix(1, rows=100, cols=2), \"o.csv\", format=\"csv\")\nA = read(\"link.csv\", format=\"csv\")\n"
      "write(matrix(2, rows=100, cols=2), \".//link.csv\", format=\"csv\")\nB = read(\"o.csv\", format=\"csv\")\n"
      "write(matrix(3, rows=50, cols=2), \"folder/part\", format=\"mm\")\nC = read(\"linked\", format=\"mm\")\n"
      "write(matrix(4, rows=60, cols=2), \"linked/part\", format=\"mm\")\nD = read(\"folder/.\", format=\"mm\")\n"
      "print(sum(A) + \" \" + sum(C) + \" \" + sum(D))";
  for (const size_t ranks : {1, 3}) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.path() + "/folder");
    std::filesystem::create_symlink("o.csv", folder.path() + "/link.csv");
    std::filesystem::create_symlink("folder", folder.path() + "/linked");
    const ScriptOutcome outcome = RunIn(std::vector<std::string>(ranks, folder.path()), script);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    EXPECT_EQ(outcome.output, "200.0 300.0 480.0\n");
  }
}

TEST(FileOrderTest, FunctionsBranchesAndComputedPathsWrite) {
  EXPECT_EQ(OutputOf("f = function(matrix[double] X, string p) return (double s) {\n"
                     "  if (sum(X) > 5) {\n    write(X, p + nrow(X), format=\"csv\")\n  }\n  s = sum(X)\n}\n"
                     "a = f(matrix(1, rows=100, cols=1), \"p\")\nB = read(\"p100\", format=\"csv\")\n"
                     "b = f(matrix(2, rows=100, cols=3), \"p\")\nC = read(\"p100\", format=\"csv\")\n"
                     "print(a + \" \" + b + \" \" + sum(B) + \" \" + sum(C) + \" \" + ncol(C))"),
            "100.0 600.0 100.0 600.0 3\n");
}

TEST(FileOrderTest, PrintsAndFaultsKeepTheirPlaceAmongThem) {
  const TemporaryFolder folder;
  const ScriptOutcome outcome =
      RunIn({folder.path(), folder.path()},
            "print(\"a\")\nwrite(matrix(1, rows=2, cols=2), \"o.csv\", format=\"csv\")\nprint(\"b\")\n"
            "B = read(\"o.csv\")\nprint(\"c \" + sum(B))\nC = read(\"missing.csv\")\nprint(\"d \" + sum(C))");
  EXPECT_EQ(outcome.output, "a\nb\nc 4.0\n");
  EXPECT_EQ(outcome.status.code(), StatusCode::kNotFound);
  EXPECT_EQ(outcome.status.position().line, 6);
}

// A script that writes nothing before it reads has the plans it had: one block, one plan.
TEST(FileOrderTest, OnlyReadsBehindWritesOfTheirFileCutABlock) {
  const TemporaryFolder folder;
  testing_support::WriteText(folder.path() + "/X.csv", "1,2\n3,4\n");
  const auto plans = [&](const std::string& text) {
    const ScriptOutcome outcome = RunIn({folder.path()}, text);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    return outcome.statistics[0].plans_compiled;
  };
  EXPECT_EQ(
      plans("X = read(\"X.csv\", format=\"csv\")\nwrite(X * 2, \"Y.csv\", format=\"csv\")\nprint(sum(X))"),
      1);
  EXPECT_EQ(
      plans(
          "write(matrix(1, rows=2, cols=2), \"Y.csv\", format=\"csv\")\nX = read(\"X.csv\", format=\"csv\")\n"
          "print(sum(X))"),
      1);
  EXPECT_EQ(
      plans(
          "write(matrix(1, rows=2, cols=2), \"X.csv\", format=\"csv\")\nX = read(\"X.csv\", format=\"csv\")\n"
          "print(sum(X))"),
      2);
}

TEST(FileOrderTest, AFileThatAnotherChangesMeanwhileIsAnErrorAtItsPlace) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/X.csv";
  for (const size_t ranks : {1, 2}) {
    testing_support::WriteText(path, "1,2\n3,4\n");
    // As many rows, columns and bytes.
    const ScriptOutcome outcome =
        RunIn(std::vector<std::string>(ranks, folder.path()),
              "X = read(\"X.csv\", format=\"csv\")\nprint(sum(X))", [&](int rank) {
                if (rank != 0) return;
                testing_support::WriteText(path, "5,6\n7,8\n");
                const auto time = std::filesystem::last_write_time(path);  // however coarse its clock
                std::filesystem::last_write_time(path, time + std::chrono::seconds(1));
              });
    EXPECT_EQ(outcome.status.code(), StatusCode::kDataLoss) << outcome.status.ToString();
    EXPECT_EQ(outcome.status.position().line, 1);
    if (ranks == 1) {
      EXPECT_EQ(outcome.status.message(), "cannot read 'X.csv': it changed while the script ran");
    }
    EXPECT_NE(outcome.status.message().find("changed while the script ran"), std::string::npos);
    EXPECT_EQ(outcome.output, "");
  }
}

TEST(FileOrderTest, WorkersThatSeeDifferentFilesSaySo) {
  const TemporaryFolder here, there;
  std::string cells, others;
  for (int row = 0; row < 300; ++row) cells += "1,2\n", others += "1,20\n";
  testing_support::WriteText(here.path() + "/X.csv", cells);
  testing_support::WriteText(there.path() + "/X.csv", others);
  const ScriptOutcome outcome =
      RunIn({here.path(), there.path()}, "X = read(\"X.csv\", format=\"csv\")\nprint(sum(X))");
  EXPECT_EQ(outcome.status.code(), StatusCode::kDataLoss) << outcome.status.ToString();
  EXPECT_EQ(
      outcome.status.message(),
      "cannot read 'X.csv': worker 1 sees another file than worker 0, or it changed while the script ran");
  EXPECT_EQ(outcome.output, "");
}

}  // namespace
}  // namespace heddle::engine
