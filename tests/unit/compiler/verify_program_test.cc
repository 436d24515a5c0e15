// SPDX-License-Identifier: Apache-2.0
// What passes and the run look up by its name is there: a pass that breaks this is named.
#include "compiler/optimize/verify_program.h"

#include <gtest/gtest.h>

#include "compiler/compile.h"

namespace heddle::compiler {
namespace {

Program Compiled() {
  CompileOptions options;
  options.types_only = true;
  Diagnostics diagnostics;
  Result<Program> program = CompileScript(
      "f = function(matrix[double] A) return (matrix[double] B) { B = g(A) + 1 }\n"
      "g = function(matrix[double] A) return (matrix[double] B) { for (i in 1:2) B = A * i }\n"
      "print(sum(f(matrix(1, rows=2, cols=2))))",
      options, &diagnostics);
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  return *std::move(program);
}

Block* CallIn(std::vector<Block>* blocks) {
  for (Block& block : *blocks)
    if (block.kind == Block::Kind::kCall) return &block;
  return nullptr;
}

TEST(VerifyProgramTest, EveryCallFindsItsFunctionAndParameters) {
  EXPECT_TRUE(VerifyProgram(Compiled(), "stage build").ok());

  Program without = Compiled();
  without.functions.erase("g");
  const Status missing = VerifyProgram(without, "pass hoist");
  EXPECT_EQ(missing.code(), StatusCode::kInternal);
  EXPECT_EQ(missing.message(), "the program has no function 'g'");
  EXPECT_EQ(missing.notes().back(), "after pass hoist");

  Program renamed = Compiled();
  Block* const call = CallIn(&renamed.main);
  ASSERT_NE(call, nullptr);
  call->arguments[0].first = "C";
  EXPECT_EQ(VerifyProgram(renamed, "pass hoist").message(), "function 'f' has no parameter 'C'");
}

}  // namespace
}  // namespace heddle::compiler
