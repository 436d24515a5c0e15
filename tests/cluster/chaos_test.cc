// SPDX-License-Identifier: Apache-2.0
// `heddle sim --chaos`: workers are killed and stopped and messages lost, and the bytes are those of a quiet
// run.
#include <filesystem>
#include <functional>
#include <map>
#include <regex>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

namespace fs = std::filesystem;

using Files = std::map<std::string, std::string>;

Files FilesBelow(const std::string& folder) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder)] = ReadText(entry.path());
  return files;
}

// The first number that the expression finds in a text; -1 for none.
int NumberIn(const std::string& text, const std::string& expression) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(expression)) ? std::stoi(match[1]) : -1;
}

struct Disturbed {
  int kills = 0;
  int pauses = 0;
  int lost = 0;
  int attempts = 0;
  int resumed = 0;

  void Add(const Disturbed& more) {
    kills += more.kills;
    pauses += more.pauses;
    lost += more.lost;
    attempts += more.attempts;
    resumed += more.resumed;
  }
};

class ChaosTest : public testing::Test {
 protected:
  ChaosTest() {
    fs::create_directories(folder_.path() + "/tmp");
    setenv("TMPDIR", (folder_.path() + "/tmp").c_str(), 1);
  }
  ~ChaosTest() override { unsetenv("TMPDIR"); }

  std::vector<std::string> Words(const std::string& chaos, const std::string& script) const {
    std::vector<std::string> words = {Binary(), "sim",    "--workers", "3", "--min-distributed-bytes",
                                      "0",      "--seed", "7"};
    if (!chaos.empty()) words.insert(words.end(), {"--chaos", chaos});
    words.insert(words.end(), {"-e", script});
    return words;
  }

  // Runs the script quietly and then with each of the faults, each in a folder of its own with the same files
  // before, and compares all that there is afterwards.
  Disturbed Compare(const std::string& script, const std::vector<std::string>& faults,
                    const Files& before = {}) {
    Disturbed all;
    const auto prepared = [&](const std::string& name) {
      const std::string path = folder_.path() + "/" + name;
      fs::remove_all(path);
      fs::create_directories(path);
      for (const auto& [file, text] : before) WriteText(path + "/" + file, text);
      return path;
    };
    const std::string quiet_folder = prepared("quiet");
    const Finished quiet = RunProcess(Words("", script), quiet_folder, 300);
    EXPECT_EQ(quiet.code, 0) << quiet.errors;
    for (const std::string& chaos : faults) {
      SCOPED_TRACE(chaos);
      const std::string disturbed_folder = prepared("disturbed");
      const Finished finished = RunProcess(Words(chaos, script), disturbed_folder, 300);
      EXPECT_EQ(finished.code, 0) << finished.errors;
      EXPECT_EQ(finished.output, quiet.output) << finished.errors;
      EXPECT_EQ(FilesBelow(disturbed_folder), FilesBelow(quiet_folder)) << finished.errors;
      all.kills += std::max(0, NumberIn(finished.errors, "killed +([0-9]+) worker"));
      all.pauses += std::max(0, NumberIn(finished.errors, "paused +([0-9]+) time"));
      all.lost += std::max(0, NumberIn(finished.errors, "lost +([0-9]+) of"));
      all.resumed += std::max(0, NumberIn(finished.errors, "resumed +([0-9]+) attempt"));
      all.attempts += std::max(0, NumberIn(finished.errors, ": ([0-9]+) attempt"));
    }
    ExpectNothingLeft();
    return all;
  }

  // The same again and again until `is_enough` faults have happened: how many do in the time that a script
  // takes is a matter of the machine.
  void CompareUntil(const std::function<bool(const Disturbed&)>& is_enough, const std::string& script,
                    const std::vector<std::string>& faults, const Files& before = {}) {
    constexpr int kMostRounds = 10;
    Disturbed all;
    for (int round = 0; round < kMostRounds && !is_enough(all) && !HasFailure(); ++round)
      all.Add(Compare(script, faults, before));
    EXPECT_TRUE(is_enough(all)) << all.kills << " kills, " << all.pauses << " pauses, " << all.lost
                                << " lost messages in " << all.attempts << " attempts";
  }

  void ExpectNothingLeft() const {
    EXPECT_TRUE(fs::is_empty(folder_.path() + "/tmp"));
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos || std::stoi(name) == getpid()) continue;
      EXPECT_EQ(ReadText(entry.path().string() + "/environ").find(folder_.path()), std::string::npos)
          << "process " << name << " is left: " << ReadText(entry.path().string() + "/cmdline");
    }
  }

  const std::string& folder() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

constexpr const char* kLoop =
    "X = rand(rows=20000, cols=20, seed=1)\n"
    "w = matrix(0, rows=20, cols=1)\n"
    "for (i in 1:300) {\n"
    "  w = w + t(X) %*% (rowSums(X) - X %*% w) / 200000\n"
    "  if (i %% 10 == 0) print(i + \" \" + sum(w))\n"
    "}\n";

TEST_F(ChaosTest, ALoopThatIsKilledPrintsEachLineOnce) {
  CompareUntil([](const Disturbed& found) { return found.kills >= 1 && found.attempts > 2; }, kLoop,
               {"kill=300ms,seed=1", "kill=150ms,seed=2"});
}

TEST_F(ChaosTest, MessagesThatAreLostComeAgain) {
  CompareUntil([](const Disturbed& found) { return found.lost >= 3; }, kLoop, {"drop=5%,seed=3"});
}

TEST_F(ChaosTest, AParforSurvivesAllFaultsAtOnce) {
  CompareUntil([](const Disturbed& found) { return found.kills + found.pauses + found.lost >= 2; },
               "X = rand(rows=4000, cols=8, seed=2)\n"
               "R = matrix(0, rows=12, cols=1)\n"
               "parfor (i in 1:12) { R[i, 1] = sum(X %*% t(X[i, ])) * i }\n"
               "for (i in 1:12) print(i + \": \" + as.scalar(R[i, 1]))\n",
               {"kill=400ms,drop=2%,pause=200ms,seed=4", "kill=250ms,pause=100ms,seed=5"});
}

// What an attempt has written is put back: the next one would read it, and add to it.
TEST_F(ChaosTest, AFileThatIsReadAndReplacedIsReplacedOnce) {
  CompareUntil([](const Disturbed& found) { return found.kills >= 2; },
               "for (round in 1:4) {\n"
               "  X = read(\"x.csv\", format=\"csv\")\n"
               "  print(sum(X))\n"
               "  write(X * 2 + 1, \"x.csv\", format=\"csv\")\n"
               "}\n"
               "write(rand(rows=30000, cols=10, seed=3), \"parts.csv\", format=\"csv\", parts=3)\n"
               "write(sum(read(\"parts.csv\", format=\"csv\")), \"sum\")\n",
               {"kill=500ms,seed=6", "kill=300ms,seed=7", "kill=200ms,seed=8"}, {{"x.csv", "1,2\n3,4\n"}});
}

// An attempt begins at the last checkpoint, with the files of then: some were changed before it, some behind.
TEST_F(ChaosTest, AttemptsGoOnFromCheckpointsWithTheFilesOfThen) {
  CompareUntil(
      [](const Disturbed& found) { return found.kills >= 2 && found.resumed >= 1; },
      "X = rand(rows=20000, cols=20, seed=1)\nw = matrix(0, rows=20, cols=1)\n"
      "for (round in 1:60) {\n"
      "  for (i in 1:4) w = w + t(X) %*% (rowSums(X) - X %*% w) / 200000\n"
      "  Y = read(\"x.csv\", format=\"csv\")\n"
      "  write(Y * 1.01 + sum(w), \"x.csv\", format=\"csv\")\n"
      "  X[round, 2] = round + sum(rand(rows=3, cols=1))\n"
      "  print(round + \" \" + sum(Y) + \" \" + sum(X))\n"
      "}\n",
      {"kill=400ms,checkpoint=100ms,seed=3", "kill=250ms,drop=1%,pause=100ms,checkpoint=50ms,seed=4"},
      {{"x.csv", "1,2\n3,4\n"}});
}

TEST_F(ChaosTest, ARunThatTakesLongerThanWorkersLiveEndsAllTheSame) {
  CompareUntil([](const Disturbed& found) { return found.kills >= 3; }, kLoop, {"kill=20ms,seed=9"});
}

TEST_F(ChaosTest, CheckpointsNeedAFolderOfTemporaryFiles) {
  setenv("TMPDIR", (folder() + "/nowhere").c_str(), 1);
  const Finished finished = RunProcess(Words("checkpoint=1s,seed=1", "print(1)"), folder(), 120);
  EXPECT_EQ(finished.code, 6);
  EXPECT_NE(finished.errors.find("error: no folder of temporary files for checkpoints: "), std::string::npos)
      << finished.errors;
  setenv("TMPDIR", "/proc", 1);  // Where nobody can make a folder.
  const Finished full = RunProcess(Words("checkpoint=1s,seed=1", "print(1)"), folder(), 120);
  EXPECT_EQ(full.code, 6);
  EXPECT_NE(full.errors.find("error: no folder for checkpoints in '/proc': "), std::string::npos)
      << full.errors;
}

TEST_F(ChaosTest, AScriptThatFailsFailsAsItDoesWithoutFaults) {
  const std::string script = "X = rand(rows=20000, cols=5, seed=1)\nprint(sum(X))\nstop(\"no \" + nrow(X))\n";
  const Finished quiet = RunProcess(Words("", script), folder(), 120);
  const Finished disturbed = RunProcess(Words("kill=200ms,seed=10", script), folder(), 120);
  EXPECT_EQ(disturbed.code, quiet.code);
  EXPECT_EQ(disturbed.output, quiet.output);
  EXPECT_EQ(disturbed.errors.substr(0, quiet.errors.size()), quiet.errors);
  ExpectNothingLeft();
}

TEST_F(ChaosTest, TheSummarySaysWhatHappenedAndHowToRepeatIt) {
  std::vector<std::string> words = Words("kill=50ms,seed=11", kLoop);
  const Finished text = RunProcess(words, folder(), 120);
  EXPECT_TRUE(std::regex_search(
      text.errors,
      std::regex("chaos kill=50ms,seed=11: [0-9]+ attempts\n"
                 "  killed    [0-9]+ workers?: [012] at [0-9.]+ s of attempt 1.*\n"
                 "  repeated  [0-9]+ attempts?; [0-9]+ bytes of output and 0 files of earlier attempts\n")))
      << text.errors;
  EXPECT_NE(
      text.errors.find("  rarer     attempts ended faster than the run takes: from attempt 3 on faults"),
      std::string::npos)
      << text.errors;
  words.insert(words.end() - 2, "--json");
  const Finished json = RunProcess(words, folder(), 120);
  EXPECT_NE(json.errors.find("\"chaos\":\"kill=50ms,seed=11\",\"attempts\":"), std::string::npos)
      << json.errors;
  // Without a value, all faults and a seed that the summary tells.
  const Finished usual =
      RunProcess({Binary(), "sim", "--workers", "2", "--chaos", "-e", "print(1)"}, folder());
  EXPECT_EQ(usual.output, "1\n");
  EXPECT_TRUE(std::regex_search(usual.errors,
                                std::regex("chaos kill=2s,drop=1%,pause=500ms,checkpoint=1s,seed=[0-9]+: ")))
      << usual.errors;
}

TEST_F(ChaosTest, CtrlCEndsIt) {
  BackgroundProcess process(
      Words("kill=200ms,pause=100ms,seed=12",
            "i = 0\nwhile (i < 1000000) { i = i + sum(rand(rows=2000, cols=50, seed=i)) / "
            "100000\n print(i) }\n"),
      folder());
  EXPECT_TRUE(process.WaitFor("\n")) << process.output();
  process.Signal(SIGINT);
  EXPECT_EQ(process.Wait(), 8) << process.output();
  ExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support
