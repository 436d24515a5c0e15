// SPDX-License-Identifier: Apache-2.0
// Plans are made of what is known of the variables that a block finds, ahead of a run and in it.
#include "engine/blocks/block_compiler.h"

#include <gtest/gtest.h>

#include <set>

#include "core/environment/clock.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

constexpr int64_t kRows = 1000, kColumns = 1000;

// X is CSR. Both sums need F, the second one all of it. Computed where X has entries only, F for the first
// one costs little or nothing if X has few of them, and more than a matrix in between if it has many.
constexpr const char* kScript =
    "X = rand(rows=1000, cols=1000, sparsity=0.01, seed=1)\nD = rand(rows=1000, cols=1000, seed=2)\n"
    "for (i in 1:2) {\n  F = sin(sin(sin(sin(sin(sin(D))))))\n  print(sum(X * F) + sum(F * D))\n  D = sqrt(D)\n}";

// Every step-th cell of a row is present; none with 0.
Variable Csr(int64_t step) {
  const int64_t of_row = step == 0 ? 0 : kColumns / step;
  Matrix x = *Matrix::Sparse(kRows, kColumns, kRows * of_row);
  for (int64_t i = 0; i < kRows; ++i) {
    x.mutable_row_offsets()[i + 1] = (i + 1) * of_row;
    for (int64_t e = 0; e < of_row; ++e) {
      x.mutable_column_indexes()[i * of_row + e] = static_cast<int32_t>(e * step);
      x.mutable_values()[i * of_row + e] = 1;
    }
  }
  const ValueInfo info = ValueInfo::OfMatrix(x.shape(), FormatOf(x.storage()));
  return {.value = Value(std::move(x)), .distribution = Distribution::One(), .info = info};
}

std::string PlanOfLoop(const Variable& x) {
  const Program program = CompileOrDie(kScript);
  VariableTable frame;
  frame.Set("X", x);
  frame.Set("D", Variable::Placeholder(Distribution::One(),
                                       ValueInfo::OfMatrix({kRows, kColumns}, Format::kDense)));
  const SessionOptions options;
  BlockCompiler compiler(options, nullptr, &SystemClock());
  const Block& body = program.main.back().body.at(0);
  const Result<BlockPart> part = compiler.NextPart(body.id, body.graph, frame, 0);
  EXPECT_TRUE(part.ok() && part->complete) << part.status().ToString();
  if (!part.ok()) return "";
  const Result<Plan> plan = compiler.MakePlan(part->graph, frame);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  return plan.ok() ? plan->ToText() : "";
}

// A matrix without a value is neither empty nor full.
TEST(BlockCompilerTest, PlansMadeAheadGuessTheSparsityThatARunTells) {
  const Variable tenth = Csr(10);  // The guess: kGuessedSparsity of compiler/fuse/dag.h.
  const std::string ahead = PlanOfLoop(Variable::Placeholder(tenth.distribution, tenth.info));
  EXPECT_EQ(ahead, PlanOfLoop(tenth));
  EXPECT_NE(ahead, PlanOfLoop(Csr(1000)));
  EXPECT_NE(ahead, PlanOfLoop(Csr(0)));
  // The rows that rank 0 has stand for those of all.
  Variable split = Csr(1000);
  split.distribution = Distribution::SplitRows(kRows, 2);
  EXPECT_NE(PlanOfLoop(Variable::Placeholder(split.distribution, split.info)), PlanOfLoop(split));
}

// A plan reads a variable where it is: one made for another place finds nothing on its rank, or half of it.
TEST(BlockCompilerTest, KeysOfPlansTellWhereVariablesAre) {
  Node x;
  x.op = "variable";
  x.info = ValueInfo::OfMatrix({8, 8}, Format::kDense);
  x.SetAttribute("name", "X");
  Graph graph;
  graph.Add(x);
  const SessionOptions options{.ranks = 2};
  const BlockCompiler compiler(options, nullptr, &SystemClock());
  const auto split = [](Axis axis, int64_t cut) {
    return Distribution{.kind = Distribution::Kind::kSplit, .split = {.axis = axis, .cuts = {0, cut, 8}}};
  };
  std::set<uint64_t> keys;
  for (const Distribution& where : {Distribution::One(), Distribution::One(1), Distribution::Each(),
                                    split(Axis::kRows, 4), split(Axis::kRows, 5), split(Axis::kColumns, 4)}) {
    VariableTable frame;
    frame.Set("X", Variable::Placeholder(where, x.info));
    EXPECT_TRUE(keys.insert(compiler.KeyOf(compiler.FirstHistory(0), graph, frame)).second) << where.ToText();
  }
}

}  // namespace
}  // namespace heddle::engine
