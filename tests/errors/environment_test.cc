// SPDX-License-Identifier: Apache-2.0
// What depends on more than files and words: folders of a user, modules beside the program, lines of the log.
#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace heddle::testing_support {
namespace {

// `command` in a shell, with $heddle for the binary and $fused for a script that has something to compile.
Finished Shell(const std::string& command) {
  const TemporaryFolder folder;
  return RunProcess({"/bin/sh", "-c",
                     "heddle=" HEDDLE_BINARY_DIR
                     "/heddle; fused='X = rand(rows=3000, cols=300); print(sum(exp(X * 2) + X * X))'; " +
                         command},
                    folder.path());
}

TEST(EnvironmentTest, WithoutAMasterThereAreNoJobs) {
  const Finished finished =
      Shell("TMPDIR=$PWD XDG_RUNTIME_DIR=$PWD HOME=$PWD XDG_STATE_HOME=$PWD $heddle job list");
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

TEST(EnvironmentTest, AMasterThatIsNotThereIsNamed) {
  const std::string token = "umask 077; echo 0123456789abcdef0123456789abcdef > t; ";
  const Finished elsewhere = Shell(token + "$heddle job list --master 192.0.2.1:7000 --token-file t");
  EXPECT_EQ(elsewhere.code, 2);
  EXPECT_EQ(elsewhere.errors,
            "heddle: error: the master at 192.0.2.1:7000 is on another machine and needs TLS\n"
            "give the certificate that its own is signed by: --tls-ca FILE\n");
  const Finished nobody =
      Shell(token + "$heddle job list --master unix:$PWD/m.sock --token-file t 2>&1 | sed \"s#$PWD#.#\"");
  EXPECT_EQ(nobody.output,
            "heddle: error: no master at unix:./m.sock: No such file or directory\n"
            "'heddle master --dev' starts one on this machine\n");
}

// A disk of a megabyte, in a namespace of its own.
TEST(EnvironmentTest, AFullDiskForWhatDoesNotFitInMemoryIsToldWithTheNumbers) {
  const std::string mount = "unshare -Urm sh -c 'mount -t tmpfs -o size=1m none disk && ";
  const Finished can = Shell("mkdir disk; " + mount + "true'");
  if (can.code != 0) GTEST_SKIP() << "this machine lets nobody mount a disk: " << can.errors;
  const std::string script =
      "\"X = rand(rows=200000, cols=10, seed=1)\nY = X * 2\nif (sum(Y) > 0) print(sum(Y))\"";
  const Finished full = Shell(
      "mkdir disk; export heddle; " + mount + "$heddle run --memory 4m --spill-folder disk -e " + script +
      "' 2>&1 | "
      "sed \"s#$PWD#.#; s/[0-9]* bytes needed, [0-9]* free/N bytes needed, M free/\"");
  EXPECT_NE(
      full.output.find("error: spill: no room on the disk of './disk': N bytes needed, M free\n"
                       "name a folder on a disk with more room (--spill-folder FOLDER), or give more memory "
                       "(--memory SIZE)\n"),
      std::string::npos)
      << full.output;
  const Finished code = Shell("mkdir disk; export heddle; " + mount +
                              "$heddle run --memory 4m --spill-folder disk -e " + script + "'");
  EXPECT_EQ(code.code, 5);
  const Finished roomy = Shell("mkdir disk; $heddle run --memory 4m --spill-folder disk -e " + script);
  EXPECT_EQ(roomy.code, 0) << roomy.errors;
}

// The program alone, without the modules that are built beside it.
TEST(EnvironmentTest, ModulesThatAreNotThereAreNamed) {
  const std::string write =
      "./heddle run -e 'write(matrix(1, rows=2, cols=2), \"x.h5\", format=\"hdf5\")'; code=$?; ";
  const std::string fault =
      "-e:1:1: error: cannot write a matrix in format hdf5: this Heddle was built without HDF5\n"
      "install libhdf5-dev and build it again, or use format=\"npy\" or \"csv\"\n";
  const Finished alone = Shell("cp $heddle .; " + write + "test -e x.h5 || exit $code");
  EXPECT_EQ(alone.code, 3);
  EXPECT_EQ(alone.errors, fault);
  const Finished explained =
      Shell("cp $heddle .; ./heddle explain --level codegen -e \"$fused\" 2>&1 | sed \"s#$PWD#.#\"");
  EXPECT_TRUE(explained.output.starts_with("heddle: error: ")) << explained.output;
  EXPECT_NE(explained.output.find("libheddle_codegen.so is not beside ./heddle\n"), std::string::npos)
      << explained.output;
}

TEST(EnvironmentTest, FilesThatNeedAModuleNameIt) {
  const Finished mat = Shell("cp $heddle .; cp " HEDDLE_SOURCE_DIR
                             "/tests/unit/ops/io/formats/data/matlab5.mat .; "
                             "./heddle run -e 'print(sum(read(\"matlab5.mat\", dataset=\"X\")))'");
  EXPECT_EQ(mat.code, 3);
  EXPECT_EQ(mat.errors,
            "-e:1:11: error: cannot read 'matlab5.mat': this Heddle was built without libmatio\n"
            "install libmatio-dev and build it again, or save(FILE, '-v7.3') in MATLAB\n");
}

// A library of this name that has nothing of what the program looks for.
TEST(EnvironmentTest, ModulesOfAnotherVersionAreNamed) {
  if (!std::filesystem::exists(HEDDLE_BINARY_DIR "/libheddle_codegen.so"))
    GTEST_SKIP() << "no module was built";
  const std::string module = HEDDLE_BINARY_DIR "/libheddle_codegen.so";
  const Finished of_format = Shell("cp $heddle .; cp " + module +
                                   " libheddle_hdf5.so; ./heddle run -e 'write(matrix(1, rows=2, cols=2), "
                                   "\"x.h5\", format=\"hdf5\")' 2>&1 | sed \"s#$PWD#.#\"");
  EXPECT_EQ(of_format.output,
            "-e:1:1: error: cannot write a matrix in format hdf5: this Heddle was built without HDF5\n"
            "install libhdf5-dev and build it again, or use format=\"npy\" or \"csv\"\n"
            "./libheddle_hdf5.so belongs to another version\n");
  const std::string other = HEDDLE_BINARY_DIR "/libheddle_hdf5.so";
  if (!std::filesystem::exists(other)) GTEST_SKIP() << "only one module was built";
  const Finished of_code =
      Shell("cp $heddle .; cp " + other +
            " libheddle_codegen.so; ./heddle explain --level codegen -e \"$fused\" 2>&1 | "
            "sed \"s#$PWD#.#\"");
  EXPECT_TRUE(of_code.output.starts_with("heddle: error: ")) << of_code.output;
  EXPECT_NE(of_code.output.find("./libheddle_codegen.so belongs to another version\n"), std::string::npos)
      << of_code.output;
}

// The results are those of the interpreter; the log says why it computes them.
TEST(EnvironmentTest, WhyARecursionIsInterpretedIsInTheLog) {
  const auto log_of = [](const std::string& child, const std::string& children) {
    return Shell(
               "$heddle run -e '\n"
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
    EXPECT_NE(log.find("a structural recursion is interpreted function=f why=\"" + why + "\""),
              std::string::npos)
        << log;
  };
  expect(
      log_of("  c = as.integer(as.scalar(T[n,1]))\n  d = 10 %/% (c - 2)\n  if (d > 900) { c = 0 }", "0 1 2"),
      "node 3 divides integers by zero");
  expect(log_of("  c = as.integer(as.scalar(T[n,1])) * 9000000000000000", "0 1 2"),
         "node 3 has a number that no integer holds");
  expect(log_of("  c = 0\n  for (i in 1:as.scalar(T[n,1])) { c = c + 1 }", "0 0 1.5"),
         "node 3 has a loop whose bounds are no whole numbers");
}

}  // namespace
}  // namespace heddle::testing_support
