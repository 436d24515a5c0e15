// SPDX-License-Identifier: Apache-2.0
// Standard streams that are full, closed or no files: told, with the exit code of their kind.
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace heddle::testing_support {
namespace {

// `command` in a shell, with $heddle for the binary.
Finished Shell(const std::string& command) {
  const TemporaryFolder folder;
  return RunProcess({"/bin/sh", "-c", "heddle=" HEDDLE_BINARY_DIR "/heddle; " + command}, folder.path());
}

TEST(StreamsTest, AFullStandardOutputIsAnError) {
  for (const char* words : {"run -e 'print(1)'", "sim --workers 2 -e 'print(1)'", "explain -e 'print(1)'",
                            "check -e 'print(1)'", "version", "--help", "help run", "completion"}) {
    SCOPED_TRACE(words);
    const Finished finished = Shell(std::string("$heddle ") + words + " > /dev/full");
    EXPECT_EQ(finished.code, 5);
    EXPECT_EQ(finished.errors, "heddle: error: cannot write to standard output: No space left on device\n");
  }
  const Finished json = Shell("$heddle run --json -e 'print(1)' > /dev/full");
  EXPECT_EQ(json.code, 5);
  EXPECT_NE(json.errors.find("{\"code\":5,"), std::string::npos) << json.errors;
}

TEST(StreamsTest, AScriptWhoseOutputIsLostStops) {
  const Finished finished = Shell("$heddle run -e 'i = 0; while (TRUE) { i = i + 1; print(i) }' > /dev/full");
  EXPECT_EQ(finished.code, 5);
  EXPECT_EQ(finished.errors, "heddle: error: cannot write to standard output: No space left on device\n");
}

TEST(StreamsTest, ClosedStreamsAreErrorsAndNoFileTakesTheirPlace) {
  const Finished output = Shell(
      "$heddle run -e 'write(matrix(1, rows=2, cols=1), \"x.csv\", format=\"csv\"); print(7)' >&-; code=$?; cat x.csv; exit $code");
  EXPECT_EQ(output.code, 5);
  EXPECT_EQ(output.output, "1.0\n1.0\n") << "what is printed does not get into a file";
  EXPECT_EQ(output.errors, "heddle: error: cannot write to standard output: Bad file descriptor\n");
  const Finished input = Shell("$heddle run - <&-");
  EXPECT_EQ(input.code, 4);
  EXPECT_EQ(input.errors, "heddle: error: cannot read the script from standard input: Bad file descriptor\n");
  const Finished folder = Shell("$heddle run - < .");
  EXPECT_EQ(folder.code, 4);
  EXPECT_EQ(folder.errors, "heddle: error: cannot read the script from standard input: Is a directory\n");
}

TEST(StreamsTest, AReaderThatHasEnoughIsNoError) {
  for (const char* verb : {"run", "sim --workers 2"}) {
    const Finished finished =
        Shell(std::string("$heddle ") + verb + " -e 'for (i in 1:20000) { print(i) }' | head -n 2");
    EXPECT_EQ(finished.output, "1\n2\n");
    EXPECT_EQ(finished.errors, "");
  }
}

// Output files are replaced whole, which must not happen to a device.
TEST(StreamsTest, AnOutputThatIsNoFileStaysWhatItIs) {
  const Finished finished = Shell(
      "mkfifo pipe; $heddle run -e 'write(matrix(1, rows=2, cols=1), \"pipe\", format=\"csv\")'; code=$?; test -p pipe && exit $code");
  EXPECT_EQ(finished.code, 4);
  EXPECT_EQ(finished.errors, "-e:1:1: error: cannot write 'pipe': it is no ordinary file\n");
}

TEST(StreamsTest, AScriptFromStandardInputRuns) {
  EXPECT_EQ(Shell("printf 'print($x)' | $heddle run - -nvargs 'x=a b=c'").output, "a b=c\n");
}

}  // namespace
}  // namespace heddle::testing_support
