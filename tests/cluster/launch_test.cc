// SPDX-License-Identifier: Apache-2.0
// `heddle launch`: the scripts that it makes, which hold no secret, and a cluster by an `ssh` of ours that
// runs its command on this machine.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <regex>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

namespace fs = std::filesystem;

class LaunchTest : public testing::Test {
 protected:
  LaunchTest() {
    fs::create_directories(folder_.path() + "/tmp");
    setenv("TMPDIR", (folder_.path() + "/tmp").c_str(), 1);
    setenv("XDG_STATE_HOME", (folder_.path() + "/state").c_str(), 1);
    WriteText(folder_.path() + "/train it.dml",
              "X = read($X, format=\"csv\")\nprint(sum(X))\nwrite(X * 2, $Y, format=\"csv\")\n");
    WriteText(folder_.path() + "/hosts", "# workers\nalpha\nuser@beta  # with a name\n\nalpha\n");
    WriteText(folder_.path() + "/x.csv", "1,2\n3,4\n");
  }
  ~LaunchTest() override { unsetenv("TMPDIR"); }

  Finished Launch(std::vector<std::string> words) const {
    words.insert(words.begin(), {Binary(), "launch"});
    return RunProcess(words, folder_.path(), 120);
  }

  static std::vector<std::string> Job() { return {"train it.dml", "-nvargs", "X=x.csv", "Y=it's.csv"}; }

  // Compares with tests/cluster/launch/NAME.golden; UPDATE_GOLDEN=1 writes it.
  static void ExpectGolden(const std::string& name, std::string text) {
    if (const size_t here = text.find(Binary()); here != std::string::npos)
      text.replace(here, Binary().size(), "/usr/bin/heddle");
    const std::string path = HEDDLE_SOURCE_DIR "/tests/cluster/launch/" + name + ".golden";
    if (getenv("UPDATE_GOLDEN") != nullptr) WriteText(path, text);
    EXPECT_EQ(text, ReadText(path)) << path;
  }

  // bash finds no fault in it.
  void ExpectShell(const std::string& text) const {
    WriteText(folder_.path() + "/script.sh", text);
    const Finished checked = RunProcess({"/bin/bash", "-n", "script.sh"}, folder_.path());
    EXPECT_EQ(checked.code, 0) << checked.errors;
  }

  // A program `ssh HOST COMMAND` that runs the command here.
  void MakeSsh() const {
    const std::string path = folder_.path() + "/bin/ssh";
    WriteText(path, "#!/bin/sh\necho \"$1\" >>" + folder_.path() + "/called\nshift\nexec sh -c \"$*\"\n");
    chmod(path.c_str(), 0755);
  }

  // A program `kubectl --namespace NAME COMMAND`. A line of the file `there` is an object of that Kubernetes:
  // kind, name and the value of heddle.dev/launch. What `exec` starts prints "on" and its standard input, and
  // goes on for as long as the file `busy` is there.
  std::string MakeKubectl() const {
    const std::string path = folder_.path() + "/bin/kubectl";
    WriteText(path, R"(#!/bin/bash
cd ")" + folder_.path() +
                        R"("
shift 2
echo "$*" >>called
case $1 in
create)
  awk '/^kind:/ { kind = $2 } /^  name:/ { gsub(/"/, ""); name = $2 }
    /^    heddle.dev\/launch:/ { gsub(/"/, ""); if (name) print kind, name, $2; name = "" }' >asked
  while read -r kind name launch; do
    ! grep -q "^$kind $name " there || { echo "$kind $name already exists" >&2; exit 1; }
    echo "$kind $name $launch" >>there
  done <asked ;;
delete)
  launch=${@: -1}
  { grep -v " ${launch#heddle.dev/launch=}\$" there || true; } >kept
  mv kept there ;;
exec)
  echo on
  cat
  while [ -e busy ]; do sleep 0.1; done
  exit 3 ;;
esac
)");
    chmod(path.c_str(), 0755);
    WriteText(folder_.path() + "/there", kOthers);
    return path;
  }
  // What Helm has made under names that are ours by default.
  static constexpr const char* kOthers =
      "StatefulSet heddle-worker -\nSecret heddle -\nSecret mine-master -\n";

  // Processes that know the folder of the test, with their command lines.
  std::string ProcessesLeft() const {
    std::string left;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos || std::stoi(name) == getpid()) continue;
      if (ReadText(entry.path().string() + "/environ").find(folder_.path()) != std::string::npos)
        left += name + ": " + ReadText(entry.path().string() + "/cmdline") + "\n";
    }
    return left;
  }
  // A child of a process that is killed (sleep 0.1 of our kubectl) ends by itself, a moment after it.
  void ExpectNothingLeft() const {
    EXPECT_TRUE(fs::is_empty(folder_.path() + "/tmp"));
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10 * kPatience);
    std::string left = ProcessesLeft();
    for (; !left.empty() && std::chrono::steady_clock::now() < end; left = ProcessesLeft())
      usleep(5'000);  // Between two looks.
    EXPECT_EQ(left, "") << "is left";
  }

  // Of the cluster that runs; without the end of its line.
  std::string Token(const std::string& name) const {
    for (const auto& entry : fs::directory_iterator(folder_.path() + "/tmp")) {
      const std::string text = ReadText(entry.path() / "state" / (name + ".token"));
      if (!text.empty()) return text.substr(0, text.find('\n'));
    }
    return "";
  }

  int CountDaemons() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string line = ReadText(entry.path().string() + "/cmdline");
      const bool is_daemon = line.starts_with(Binary()) && (line.find("--token-file") != std::string::npos ||
                                                            line.find("--state") != std::string::npos);
      count +=
          is_daemon && ReadText(entry.path().string() + "/environ").find(folder_.path()) != std::string::npos;
    }
    return count;
  }

  const std::string& folder() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST_F(LaunchTest, SlurmIsGivenABatchScript) {
  std::vector<std::string> words = {"slurm",     "--dry-run", "--heddle",  "/opt/heddle",
                                    "--workers", "3",         "--threads", "8",
                                    "--memory",  "16G",       "--sbatch",  "--time=1:00:00"};
  for (const std::string& word : Job()) words.push_back(word);
  const Finished made = Launch(words);
  ASSERT_EQ(made.code, 0) << made.errors;
  ExpectGolden("slurm", made.output);
  ExpectShell(made.output);
}

TEST_F(LaunchTest, SlurmItselfReadsTheScript) {
  const Finished there = RunProcess({"/bin/sh", "-c", "sbatch --version && sinfo --noheader"}, folder());
  if (there.code != 0) GTEST_SKIP() << "no sbatch with a Slurm behind it: " << there.errors;
  const Finished made = Launch({"slurm", "--dry-run", "--workers", "1", "-e", "print(1)"});
  WriteText(folder() + "/job.sh", made.output);
  const Finished tested = RunProcess({"/bin/sh", "-c", "sbatch --test-only job.sh"}, folder());
  EXPECT_EQ(tested.code, 0) << tested.errors;
}

TEST_F(LaunchTest, SshIsCalledByAScript) {
  std::vector<std::string> words = {"ssh",      "--dry-run", "--hosts",  "hosts", "--heddle",  "/opt/heddle",
                                    "--listen", "10.0.0.1",  "--memory", "4G",    "--threads", "2"};
  for (const std::string& word : Job()) words.push_back(word);
  const Finished made = Launch(words);
  ASSERT_EQ(made.code, 0) << made.errors;
  ExpectGolden("ssh", made.output);
  ExpectShell(made.output);
}

TEST_F(LaunchTest, KubernetesIsGivenManifests) {
  std::vector<std::string> words = {
      "k8s",      "--dry-run", "--workers", "2", "--name",      "train", "--image",        "r/heddle:1",
      "--memory", "4G",        "--threads", "2", "--namespace", "ml",    "--volume-claim", "data"};
  for (const std::string& word : Job()) words.push_back(word);
  const Finished made = Launch(words);
  ASSERT_EQ(made.code, 0) << made.errors;
  ExpectGolden("k8s", made.output);
  ExpectShell(made.output);
}

TEST_F(LaunchTest, AJobRunsOnWorkersThatSshStarts) {
  MakeSsh();
  std::vector<std::string> words = {
      "ssh",      "--hosts", "hosts",     "--listen", "localhost", "--ssh", folder() + "/bin/ssh",
      "--heddle", Binary(),  "--threads", "1"};
  // The fake hosts' names lead nowhere: executors meet on this machine.
  WriteText(folder() + "/hosts", "127.0.0.1\nuser@127.0.0.1\n");
  for (const std::string& word : Job()) words.push_back(word);
  const Finished finished = Launch(words);
  EXPECT_EQ(finished.code, 0) << finished.errors;
  EXPECT_EQ(finished.output, "10.0\n") << finished.errors;
  EXPECT_EQ(ReadText(folder() + "/it's.csv"), "2.0,4.0\n6.0,8.0\n");
  EXPECT_NE(finished.errors.find("heddle launch: workers: 2, master: localhost:"), std::string::npos)
      << finished.errors;
  EXPECT_EQ(ReadText(folder() + "/called"), "127.0.0.1\nuser@127.0.0.1\n");
  ExpectNothingLeft();
  // The exit code is that of the job.
  const Finished failed = Launch({"ssh", "--hosts", "hosts", "--listen", "localhost", "--ssh",
                                  folder() + "/bin/ssh", "--heddle", Binary(), "-e", "stop(\"no\")"});
  EXPECT_EQ(failed.code, 1) << failed.errors;
  ExpectNothingLeft();
}

TEST_F(LaunchTest, ASignalEndsMasterAndWorkers) {
  MakeSsh();
  WriteText(folder() + "/hosts", "127.0.0.1\n127.0.0.1\n");
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    SCOPED_TRACE(signal);
    BackgroundProcess process({Binary(), "launch", "ssh", "--hosts", "hosts", "--listen", "localhost",
                               "--ssh", folder() + "/bin/ssh", "--heddle", Binary(), "--threads", "1", "-e",
                               "i = 0\nwhile (i < 1e9) { i = i + 1\n if (i == 5) print(\"on\") }"},
                              folder());
    ASSERT_TRUE(process.WaitFor("on\n", 60)) << process.output();
    // Nothing secret is in a command line.
    for (const char* name : {"client", "admin", "worker"}) {
      const std::string token = Token(name);
      ASSERT_GE(token.size(), 32u) << name;
      for (const auto& entry : fs::directory_iterator("/proc"))
        EXPECT_EQ(ReadText(entry.path().string() + "/cmdline").find(token), std::string::npos) << name;
    }
    process.Signal(signal);
    EXPECT_EQ(process.Wait(60), 128 + signal) << process.output();
    if (signal != SIGKILL) {
      ExpectNothingLeft();
      continue;
    }
    // Without anybody to clean up, master and workers still end: a pipe does.
    for (int look = 0; look < 300 && CountDaemons() > 0; ++look) usleep(100'000);
    EXPECT_EQ(CountDaemons(), 0);
  }
}

TEST_F(LaunchTest, WhatALaunchMakesInKubernetesIsRemovedAndNothingElse) {
  const std::vector<std::string> words = {"k8s", "--workers", "2", "--kubectl", MakeKubectl()};
  const auto launch = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return Launch(more);
  };
  const Finished finished = launch({"train it.dml"});
  EXPECT_EQ(finished.code, 3) << "the job's\n" << finished.errors;
  EXPECT_EQ(finished.output, "on\n" + ReadText(folder() + "/train it.dml"));
  EXPECT_EQ(ReadText(folder() + "/there"), kOthers);
  const std::string made = ReadText(folder() + "/asked");
  EXPECT_TRUE(std::regex_match(
      made, std::regex(
                "Secret (heddle-[0-9a-f]{16}) ([0-9a-f]{16})\nService \\1-master \\2\nStatefulSet \\1-master "
                "\\2\nService \\1-worker \\2\nStatefulSet \\1-worker \\2\n")))
      << made;
  const Finished again = launch({"train it.dml"});
  EXPECT_EQ(again.code, 3) << again.errors;
  EXPECT_NE(ReadText(folder() + "/asked"), made);
  // Some of the names are taken: what was made until then goes, and what has the names stays.
  WriteText(folder() + "/called", "");
  WriteText(folder() + "/there", "Service mine-worker -\n");
  const Finished taken = launch({"--name", "mine", "train it.dml"});
  EXPECT_EQ(taken.code, 1);
  EXPECT_NE(taken.errors.find("Service mine-worker already exists"), std::string::npos) << taken.errors;
  EXPECT_EQ(ReadText(folder() + "/there"), "Service mine-worker -\n");
  EXPECT_EQ(ReadText(folder() + "/called").find("exec"), std::string::npos);
  ExpectNothingLeft();
}

TEST_F(LaunchTest, ASignalEndsALaunchInKubernetes) {
  const std::string kubectl = MakeKubectl();
  for (const int signal : {SIGINT, SIGTERM}) {
    SCOPED_TRACE(signal);
    WriteText(folder() + "/busy", "");
    BackgroundProcess process(
        {Binary(), "launch", "k8s", "--workers", "1", "--kubectl", kubectl, "train it.dml"}, folder());
    ASSERT_TRUE(process.WaitFor("on\n", 60)) << process.output();
    process.Signal(signal);
    EXPECT_EQ(process.Wait(30), 128 + signal) << process.output();
    EXPECT_EQ(ReadText(folder() + "/there"), kOthers);
    fs::remove(folder() + "/busy");
    ExpectNothingLeft();
  }
}

TEST_F(LaunchTest, AProgramThatIsNotThereIsNamed) {
  const Finished finished = RunProcess(
      {"/usr/bin/env", "PATH=/nowhere", Binary(), "launch", "slurm", "--workers", "1", "-e", "print(1)"},
      folder());
  EXPECT_EQ(finished.code, 6);
  EXPECT_EQ(
      finished.errors,
      "heddle: error: cannot start 'sbatch': No such file or directory\n--dry-run shows what would run\n");
}

TEST_F(LaunchTest, AHostWithoutHeddleIsNamed) {
  MakeSsh();
  WriteText(folder() + "/hosts", "127.0.0.1\n");
  const Finished finished = Launch({"ssh", "--hosts", "hosts", "--listen", "localhost", "--ssh",
                                    folder() + "/bin/ssh", "--heddle", "/nowhere/heddle", "-e", "print(1)"});
  EXPECT_EQ(finished.code, 6) << finished.errors;
  EXPECT_NE(finished.errors.find("heddle launch: "), std::string::npos) << finished.errors;
  ExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support
