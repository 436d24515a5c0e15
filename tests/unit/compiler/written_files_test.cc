// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/written_files.h"

#include <gtest/gtest.h>

#include "compiler/compile.h"

namespace heddle::compiler {
namespace {

// The lines of the reads that may come behind a write of what they read.
std::string LinesBehindWrites(const std::string& text) {
  CompileOptions options;
  options.script = "test.dml";
  Diagnostics diagnostics;
  const Result<Program> program = CompileScript(text, options, &diagnostics);
  if (!program.ok()) return program.status().ToString();
  std::map<int32_t, std::set<NodeId>> reads = ReadsBehindWrites(*program, nullptr);
  std::set<int> lines;
  const auto visit = [&](const auto& self, const std::vector<Block>& blocks) -> void {
    for (const Block& block : blocks) {
      for (const NodeId id : reads[block.id]) lines.insert(block.graph[id].position.line);
      self(self, block.body);
      self(self, block.otherwise);
    }
  };
  visit(visit, program->main);
  for (const auto& [name, function] : program->functions) visit(visit, function.body);
  std::string result;
  for (const int line : lines) result += (result.empty() ? "" : " ") + std::to_string(line);
  return result;
}

TEST(WrittenFilesTest, OnlyReadsBehindAWriteOfTheirFile) {
  EXPECT_EQ(
      LinesBehindWrites("A = read(\"a\", format=\"csv\")\nwrite(A, \"a\")\nB = read(\"b\", format=\"csv\")\n"
                        "C = read(\"./a\", format=\"csv\")\nprint(sum(B) + sum(C))"),
      "4");
}

TEST(WrittenFilesTest, ALoopReadsWhatItsLastRoundWrote) {
  EXPECT_EQ(LinesBehindWrites("for (i in 1:3) {\n  A = read(\"a\", format=\"csv\")\n  print(sum(A))\n"
                              "  if (i > 1) {\n    write(i, \"a\")\n  }\n}"),
            "2");
}

TEST(WrittenFilesTest, CallsWriteAndUnknownPathsAreAnyFile) {
  const std::string function =
      "f = function(integer n) return (integer r) {\n  r = n\n  if (n > 0) {\n    write(n, \"a\")\n    r = f(n - 1)\n"
      "  }\n  X = read(\"a\", format=\"csv\")\n  print(sum(X))\n}\n";
  EXPECT_EQ(LinesBehindWrites(function +
                              "A = read(\"a\", format=\"csv\")\nx = f(3)\nB = read(\"a\", format=\"csv\")\n"
                              "print(sum(A) + sum(B) + x)"),
            "7 12");
  EXPECT_EQ(LinesBehindWrites("A = read(\"a\", format=\"csv\")\nwrite(A, \"b\" + sum(A))\n"
                              "B = read(\"c\", format=\"csv\")\nprint(sum(B))"),
            "3");
}

}  // namespace
}  // namespace heddle::compiler
