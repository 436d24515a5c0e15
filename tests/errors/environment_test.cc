// SPDX-License-Identifier: Apache-2.0
// What depends on more than files and words: the folders of a user, limits of the machine, and lines of the log.
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace heddle::testing_support {
namespace {

// `command` in a shell, with $heddle for the binary.
Finished Shell(const std::string& command) {
  const TemporaryFolder folder;
  return RunProcess({"/bin/sh", "-c", "heddle=" HEDDLE_BINARY_DIR "/heddle; " + command}, folder.path());
}

TEST(EnvironmentTest, WithoutAMasterThereAreNoJobs) {
  const Finished finished = Shell("TMPDIR=$PWD XDG_RUNTIME_DIR=$PWD HOME=$PWD XDG_STATE_HOME=$PWD $heddle job list");
  EXPECT_EQ(finished.code, 6);
  EXPECT_EQ(finished.errors,
            "heddle: error: no master of this user is running\n"
            "start one with 'heddle master --dev', or name one with --master ADDRESS\n");
}

TEST(EnvironmentTest, AJobNeedsAWorkingFolder) {
  const Finished finished = Shell("mkdir gone; cd gone; rmdir ../gone; $heddle job submit -e 'print(1)'");
  EXPECT_EQ(finished.code, 4);
  EXPECT_EQ(finished.errors,
            "heddle: error: the working folder was deleted, so that a job cannot begin there\n"
            "go to a folder that is there\n");
}

// The results are those of the interpreter; the log says why it computes them.
TEST(EnvironmentTest, WhyARecursionIsInterpretedIsInTheLog) {
  const auto log_of = [](const std::string& child, const std::string& children) {
    return Shell("$heddle run -e '\n"
                 "f = function(Matrix[Double] T, Integer n, Matrix[Double] X) return (Matrix[Double] h) {\n"
                 "  h = X[n,]\n" +
                 child +
                 "\n  if (c > 0) { l = f(T, c, X); h = h + l }\n"
                 "}\n"
                 "print(sum(f(matrix(\"" +
                 children + "\", 3, 1), 3, matrix(1, 3, 1))))'")
        .errors;
  };
  const auto expect = [](const std::string& log, const std::string& why) {
    EXPECT_NE(log.find("a structural recursion is interpreted function=f why=\"" + why + "\""), std::string::npos)
        << log;
  };
  expect(log_of("  c = as.integer(as.scalar(T[n,1]))\n  d = 10 %/% (c - 2)\n  if (d > 900) { c = 0 }", "0 1 2"),
         "node 3 divides integers by zero");
  expect(log_of("  c = as.integer(as.scalar(T[n,1])) * 9000000000000000", "0 1 2"),
         "node 3 has a number that no integer holds");
  expect(log_of("  c = 0\n  for (i in 1:as.scalar(T[n,1])) { c = c + 1 }", "0 0 1.5"),
         "node 3 has a loop whose bounds are no whole numbers");
}

}  // namespace
}  // namespace heddle::testing_support
