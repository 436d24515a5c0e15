// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/static/written_files.h"

#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "compiler/optimize/pass.h"
#include "core/programs/for_each_block.h"

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

TEST(WrittenFilesTest, AListMayBeAnyFile) {
  EXPECT_EQ(LinesBehindWrites("A = read(\"a\", format=\"csv\")\nl = list(sum(A), 2)\nwrite(l, \"l\")\n"
                              "B = read(\"c\", format=\"csv\")\nprint(sum(B))"),
            "4");
}

// "" if in every graph each read and write comes after the ones before it in the script.
std::string OutOfOrder(const std::vector<Block>& blocks) {
  for (const Block& block : blocks) {
    std::vector<std::set<NodeId>> before(block.graph.nodes.size());
    std::set<NodeId> earlier;
    for (NodeId id = 0; id < block.graph.size(); ++id) {
      const Node& node = block.graph[id];
      for (const auto* list : {&node.inputs, &node.after})
        for (const NodeId other : *list) {
          if (other == kNoNode) continue;
          before[id].insert(other);
          before[id].insert(before[other].begin(), before[other].end());
        }
      if (!node.Is("read") && !node.Is("write")) continue;
      for (const NodeId other : earlier)
        if (!before[id].contains(other)) return block.graph.ToText();
      earlier.insert(id);
    }
    for (const std::vector<Block>* inside : {&block.body, &block.otherwise})
      if (std::string text = OutOfOrder(*inside); !text.empty()) return text;
  }
  return "";
}

TEST(WrittenFilesTest, PassesKeepReadsAndWritesInOrder) {
  const std::string script =
      "f = function(matrix[double] X) return (double s) {\n  write(X, \"a\")\n  s = sum(X)\n}\n"
      "A = matrix(1, rows=3, cols=3)\nB = read(\"a\", format=\"csv\")\nwrite(A, \"a\")\n"
      "C = read(\"a\", format=\"csv\")\nif (nrow(A) == 3) {\n  write(t(t(A)), \"a\")\n}\n"
      "D = read(\"a\", format=\"csv\")\nx = f(D)\nE = read(\"a\", format=\"csv\")\n"
      "for (i in 1:3) {\n  A[i,] = A[i,] * 2\n}\nwrite(A %*% B %*% C, \"a\")\n"
      "print(sum(read(\"a\", format=\"csv\")) + sum(E) + x)";
  std::vector<std::string> disabled = {""};
  for (const Pass& pass : Passes()) disabled.emplace_back(pass.name);
  for (const std::string& pass : disabled) {
    SCOPED_TRACE(pass);
    CompileOptions options;
    options.disabled_passes.insert(pass);
    int accesses = 0;
    options.observe = [&](std::string_view, const Program& program) {
      EXPECT_EQ(OutOfOrder(program.main), "");
      for (const auto& [name, function] : program.functions) EXPECT_EQ(OutOfOrder(function.body), "");
    };
    Diagnostics diagnostics;
    Result<Program> program = CompileScript(script, options, &diagnostics);
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    ForEachBlock(*program, [&](const Block& block) {
      for (const Node& node : block.graph.nodes) accesses += node.Is("read") || node.Is("write");
    });
    EXPECT_EQ(accesses, 9);
  }
}

}  // namespace
}  // namespace heddle::compiler
