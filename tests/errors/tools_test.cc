// SPDX-License-Identifier: Apache-2.0
// Verbs about the installation and about scripts as a whole: doctor, verify, examples, manual-page.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/process.h"

namespace heddle::testing_support {
namespace {

// `command` in a shell in an empty folder, with $heddle for the binary and a home of its own.
Finished Shell(const std::string& command) {
  const TemporaryFolder folder;
  return RunProcess(
      {"/bin/sh", "-c",
       "heddle=" HEDDLE_BINARY_DIR
       "/heddle; export HOME=$PWD XDG_STATE_HOME=$PWD/state XDG_CACHE_HOME=$PWD/cache XDG_RUNTIME_DIR=$PWD; " +
           command},
      folder.path());
}

TEST(VerifyTest, AScriptHasTheSameBytesInAllWays) {
  const Finished finished = Shell(
      "$heddle examples get kmeans >/dev/null; $heddle verify --json examples/kmeans.dml -nvargs "
      "X=examples/data/breast_cancer.csv k=3 centroids=c.csv");
  ASSERT_EQ(finished.code, 0) << finished.errors;
  const auto json = nlohmann::json::parse(finished.output);
  EXPECT_TRUE(json["same"]);
  EXPECT_EQ(json["files"], nlohmann::json({"c.csv", "c.csv.mtd"}));
  EXPECT_GE(json["ways"].size(), 11u);
  for (const auto& way : json["ways"]) EXPECT_EQ(way["hash"], json["ways"][0]["hash"]) << way["way"];
}

TEST(VerifyTest, WhatDiffersIsNamed) {
  const Finished finished = Shell("$heddle verify --threads 1 -e 'print(time())'");
  EXPECT_EQ(finished.code, 1);
  EXPECT_NE(finished.output.find("DIFFERENT"), std::string::npos) << finished.output;
  EXPECT_NE(finished.errors.find("ways differ from the first one\n"), std::string::npos) << finished.errors;
  EXPECT_NE(finished.errors.find(": what it prints\n"), std::string::npos) << finished.errors;
  EXPECT_NE(finished.errors.find(
                "\ntimes, dates and numbers that are drawn anew differ by themselves; all else is a "
                "fault of Heddle\n"),
            std::string::npos)
      << finished.errors;
  const Finished file = Shell("$heddle verify -e 'print(1); write(time(), \"t.txt\")'");
  EXPECT_EQ(file.code, 1);
  EXPECT_NE(file.errors.find(": t.txt\n"), std::string::npos) << file.errors;
}

TEST(VerifyTest, NumbersThatAreDrawnAreTheSameInAllWays) {
  const Finished finished = Shell("$heddle verify -e 'print(sum(rand(rows=300, cols=20)))'");
  EXPECT_EQ(finished.code, 0) << finished.output << finished.errors;
  EXPECT_NE(finished.output.find("ways, the same bytes: what it prints\n"), std::string::npos)
      << finished.output;
}

TEST(VerifyTest, AFaultOfTheScriptIsItsOwn) {
  const Finished finished = Shell("$heddle verify -e 'stop(\"no\")'");
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(finished.errors, "-e:1:1: error: no\n");
  EXPECT_EQ(finished.output, "");
  const Finished json = Shell("$heddle verify --json -e 'print(\"seen\"); stop(\"no\")'");
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(json.output, "");
  EXPECT_EQ(nlohmann::json::parse(json.errors),
            nlohmann::json::parse(
                R"({"code": 1, "kind": "aborted", "message": "no", "file": "-e", "line": 1, "column": 16})"));
  const Finished pipe = Shell("echo 'print(1)' | $heddle verify -");
  EXPECT_EQ(pipe.code, 2);
  EXPECT_EQ(pipe.errors, "heddle: error: verify runs the script several times: give a file, or -e CODE\n");
}

// The script runs in a process of its own, which a signal for verify alone must not leave behind.
TEST(VerifyTest, ASignalEndsTheScriptAsWell) {
  const Finished finished = Shell(
      "$heddle verify -e 'write(1, \"begun\"); i = 0; while (i < 2000000000) i = i + 1; print(i)' & "
      "until [ -e begun ]; do sleep 0.05; done; kill $!; wait $!");
  EXPECT_EQ(finished.code, 8);
  EXPECT_EQ(finished.errors, "heddle: error: cancelled by a signal\n");
  EXPECT_EQ(finished.output, "");
}

TEST(ExamplesTest, EachCanBeHadAndRuns) {
  const Finished list = Shell("$heddle examples");
  ASSERT_EQ(list.code, 0);
  std::istringstream lines(list.output);
  int found = 0;
  for (std::string line; std::getline(lines, line) && !line.empty(); ++found) {
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    const Finished got = Shell("command=$($heddle examples get " + name +
                               ") && eval \"$(echo \"$command\" | sed \"s#^heddle#$heddle#\")\" | tail -1");
    EXPECT_EQ(got.code, 0) << name << ": " << got.errors;
    EXPECT_NE(got.output, "") << name;
  }
  EXPECT_GE(found, 8);
}

TEST(ExamplesTest, WhatIsThereStays) {
  const Finished finished = Shell(
      "$heddle examples get kmeans && echo mine > examples/kmeans.dml; $heddle examples get kmeans; code=$?; "
      "cat examples/kmeans.dml; $heddle examples get kmeans --force >/dev/null && wc -l < examples/kmeans.dml; "
      "exit $code");
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(finished.errors, "heddle: error: 'examples/kmeans.dml' is there already\n--force replaces it\n");
  EXPECT_NE(finished.output.find("\nmine\n"), std::string::npos) << finished.output;
  const Finished none = Shell("$heddle examples get kmean");
  EXPECT_EQ(
      none.errors,
      "heddle: error: there is no example 'kmean'; did you mean 'kmeans'?\n'heddle examples' lists them\n");
  const Finished words = Shell("$heddle examples take kmeans");
  EXPECT_EQ(words.code, 2);
  EXPECT_EQ(words.errors,
            "heddle: error: examples takes nothing, or 'get' and a name\n'heddle examples' lists them\n");
}

TEST(ExamplesTest, FoldersThatCannotBeUsedAreErrors) {
  const Finished gone = Shell("mkdir gone; cd gone; rmdir ../gone; $heddle examples get kmeans");
  EXPECT_EQ(gone.code, 4);
  EXPECT_TRUE(gone.errors.starts_with("heddle: error: cannot write 'examples/kmeans.dml'")) << gone.errors;
  const Finished loop = Shell("ln -s examples examples; $heddle examples get kmeans");
  EXPECT_EQ(loop.code, 4);
  EXPECT_TRUE(loop.errors.starts_with("heddle: error: cannot write 'examples/kmeans.dml'")) << loop.errors;
}

TEST(DoctorTest, EachFindingHasItsMend) {
  const Finished finished = Shell("$heddle doctor --json");
  EXPECT_EQ(finished.code, 0) << finished.errors;
  const auto json = nlohmann::json::parse(finished.output);
  EXPECT_GE(json.size(), 10u);
  for (const auto& finding : json) {
    EXPECT_NE(finding["text"], "");
    EXPECT_EQ(finding["grade"] == "good", finding["mend"] == "") << finding.dump();
  }
}

TEST(DoctorTest, WhatIsWrongIsFound) {
  // Without modules, descriptors, memory and a home.
  const Finished finished = Shell(
      "cp $heddle .; ulimit -n 256; ulimit -v 900000; env -u HOME -u XDG_STATE_HOME -u XDG_CACHE_HOME ./heddle doctor");
  EXPECT_EQ(finished.code, 0) << finished.errors;
  for (const char* text :
       {"--  memory  ", "mend: raise that limit", "--  open files         at most 256",
        "mend: ulimit -n 65536", "libheddle_codegen.so is not there: fused operators are interpreted",
        "mend: install Heddle's package whole"})
    EXPECT_NE(finished.output.find(text), std::string::npos) << text << "\n" << finished.output;
  const Finished cluster = Shell(
      "umask 077; echo 0123456789abcdef0123456789abcdef > t; $heddle doctor --master localhost:1 --token-file t");
  EXPECT_EQ(cluster.code, 1);
  EXPECT_NE(cluster.output.find("!!  cluster            no master at localhost:1"), std::string::npos)
      << cluster.output;
}

TEST(ManualPageTest, EachVerbHasOne) {
  const Finished list = Shell("$heddle manual-page list");
  std::istringstream names(list.output);
  int found = 0;
  for (std::string name; std::getline(names, name); ++found) {
    const Finished page = Shell("$heddle manual-page " + (name == "heddle" ? std::string() : name));
    EXPECT_EQ(page.code, 0) << name;
    EXPECT_TRUE(page.output.starts_with(".TH heddle")) << page.output;
    EXPECT_NE(page.output.find("\n.SH SYNOPSIS\n"), std::string::npos) << name;
  }
  EXPECT_GE(found, 20);
  const Finished none = Shell("$heddle manual-page heddle-nothing");
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.errors,
            "heddle: error: there is no page 'heddle-nothing'\n'heddle manual-page list' names them\n");
}

}  // namespace
}  // namespace heddle::testing_support
