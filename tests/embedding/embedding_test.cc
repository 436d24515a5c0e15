// SPDX-License-Identifier: Apache-2.0
// A host program links with the engine alone: examples/embedding/regression.cc, as it is built beside the
// tests.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/process.h"

namespace heddle {
namespace {

using testing_support::Finished;
using testing_support::RunProcess;

const char kProgram[] = HEDDLE_BINARY_DIR "/embedding";

TEST(EmbeddingTest, TheExampleRunsAnErrorIsAStatusAndACancelEndsARun) {
  const Finished ended = RunProcess({kProgram}, "/");
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_EQ(ended.errors, "");
  EXPECT_EQ(ended.output,
            "residual 0.0\n"
            "slope 2.000000, intercept 1.000000\n"
            "wrong.dml:1:7: error: %*%: inner dimensions differ: 4x2 and 4x2\n"
            "    1 | z = X %*% X\n"
            "      |       ^\n"
            "X %*% t(Y) would fit: the left columns match the right columns\n"
            "the user left\n"
            "x is free again\n");
}

// Whoever embeds the engine gets neither the libraries of the cluster nor another malloc.
TEST(EmbeddingTest, TheProgramHasNoLibraryOfTheClusterAndItsOwnHeap) {
  const Finished libraries = RunProcess({"/usr/bin/ldd", kProgram}, "/");
  ASSERT_EQ(libraries.code, 0) << libraries.errors;
  EXPECT_NE(libraries.output.find("libtbb"), std::string::npos) << "the list is one: " << libraries.output;
  for (const char* library : {"grpc", "protobuf", "sqlite", "libssl", "libcrypto", "libedit", "LLVM", "hdf5"})
    EXPECT_EQ(libraries.output.find(library), std::string::npos) << library << ":\n" << libraries.output;
  const Finished symbols = RunProcess({"/usr/bin/nm", "--defined-only", kProgram}, "/");
  ASSERT_EQ(symbols.code, 0) << symbols.errors;
  EXPECT_NE(symbols.output.find(" main\n"), std::string::npos);
  EXPECT_EQ(symbols.output.find(" malloc\n"), std::string::npos);
  EXPECT_EQ(symbols.output.find("heddle7cluster"), std::string::npos);
}

}  // namespace
}  // namespace heddle
