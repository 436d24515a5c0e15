// SPDX-License-Identifier: Apache-2.0
// Structure programs do what their steps say, one by one, whatever is put together of them.
#include "ops/recursion/structure/structure_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "core/values/scalar.h"
#include "ops/recursion/structure/visit_structure.h"

namespace heddle::ops {
namespace {

using Code = StructureProgram::Code;
using Step = StructureProgram::Step;

enum class Outcome { kDone, kLeft, kFailed };

// One node after the other, one step after the other, and calls by calls.
class Reference {
 public:
  Reference(const StructureProgram& program, const Matrix& matrix, double uniform)
      : program_(program), matrix_(matrix), uniform_(uniform) {}

  Outcome Visit(int64_t node) {
    if (const auto found = is_done_.find(node); found != is_done_.end())
      return found->second ? Outcome::kDone : Outcome::kFailed;  // A circle.
    is_done_[node] = false;
    nodes.push_back(static_cast<int32_t>(node));
    std::vector<int64_t> calls;
    if (const Outcome outcome = Run(node, &calls); outcome != Outcome::kDone) return outcome;
    for (const int64_t call : calls)
      if (const Outcome outcome = Visit(call); outcome != Outcome::kDone) return outcome;
    is_done_[node] = true;
    return Outcome::kDone;
  }

  std::vector<int32_t> nodes;
  std::vector<double> numbers;
  std::map<int32_t, std::vector<bool>> path_of;  // By node.

 private:
  Outcome Run(int64_t node, std::vector<int64_t>* calls) {
    std::vector<double> r(static_cast<size_t>(program_.registers), 0.0);
    r[0] = static_cast<double>(node);
    for (const int32_t unset : program_.unset)
      r[static_cast<size_t>(unset)] = std::numeric_limits<double>::quiet_NaN();
    std::vector<bool>& path = path_of[static_cast<int32_t>(node)];
    for (size_t at = 0;; ++at) {
      const Step& step = program_.steps[at];
      const double a = r[static_cast<size_t>(step.a)], b = r[static_cast<size_t>(step.b)];
      double& target = r[static_cast<size_t>(step.target)];
      switch (step.code) {
        case Code::kConstant: target = step.constant; break;
        case Code::kUniform: target = uniform_; break;
        case Code::kCopy: target = a; break;
        case Code::kCell: {
          if (std::isnan(a) || std::isnan(b)) return Outcome::kFailed;
          const int64_t i = TruncateToInteger(a), j = TruncateToInteger(b);
          if (i < 1 || i > matrix_.rows() || j < 1 || j > matrix_.columns()) return Outcome::kFailed;
          target = matrix_.At(i - 1, j - 1);
          break;
        }
        case Code::kAdd: target = a + b; break;
        case Code::kSubtract: target = a - b; break;
        case Code::kEqual: target = a == b; break;
        case Code::kNotEqual: target = a != b; break;
        case Code::kLess: target = a < b; break;
        case Code::kLessEqual: target = a <= b; break;
        case Code::kNot: target = a == 0; break;
        case Code::kTruncate:
          if (std::isnan(a)) return Outcome::kLeft;
          target = static_cast<double>(TruncateToInteger(a));
          break;
        case Code::kJump: at = static_cast<size_t>(step.index) - 1; break;
        case Code::kBranch:
          if (std::isnan(a) || path.size() == kMostDecisions) return Outcome::kLeft;
          path.push_back(a != 0);
          if (a == 0) at = static_cast<size_t>(step.index) - 1;
          break;
        case Code::kCall:
          if (!(a >= 0 && a < 1e6 && std::floor(a) == a)) return Outcome::kLeft;
          calls->push_back(static_cast<int64_t>(a));
          break;
        case Code::kGive: numbers.push_back(a); break;
        case Code::kNeed:
          if (std::isnan(a)) return Outcome::kLeft;
          break;
        default: return Outcome::kDone;  // kEnd
      }
    }
  }

 public:
  static constexpr size_t kMostDecisions = 20;

 private:
  const StructureProgram& program_;
  const Matrix& matrix_;
  const double uniform_;
  std::map<int64_t, bool> is_done_;  // Nodes that were entered.
};

// Common groups of steps and pieces of them. Variables have no value when a node begins, other registers are
// written before they are read, as compiled programs have them: jumps go to where a part begins.
StructureProgram RandomProgram(std::mt19937* random) {
  const auto below = [&](int n) { return static_cast<int32_t>((*random)() % static_cast<unsigned>(n)); };
  StructureProgram program;
  program.matrices = {"T"};
  program.uniforms = {{"u", ""}};
  constexpr int32_t kVariables = 4;
  program.registers = 1 + kVariables;
  for (int32_t variable = 1; variable <= kVariables; ++variable) program.unset.push_back(variable);
  const auto any = [&] { return below(1 + kVariables); };
  const auto to = [&] {
    return below(4) > 0 ? program.registers++ : below(8) == 0 ? 0 : 1 + below(kVariables);
  };
  const Code compares[] = {Code::kEqual, Code::kNotEqual, Code::kLess, Code::kLessEqual};
  const int parts = 3 + below(8);
  std::vector<size_t> jumps, begins;
  for (int part = 0; part < parts; ++part) {
    begins.push_back(program.steps.size());
    const auto add = [&](const Step& step) { program.steps.push_back(step); };
    // A cell of a column that may be the same for all nodes, of the node's row or another one.
    const int32_t column = to(), cell = to();
    add({.code = Code::kConstant, .target = column, .constant = 1.0 + below(4)});
    add({.code = Code::kCell, .target = cell, .a = below(4) == 0 ? any() : 0, .b = column});
    int32_t value = cell;
    if (below(2) == 0) {
      const int32_t next = to();
      add({.code = below(2) == 0 ? Code::kTruncate : Code::kCopy, .target = next, .a = value});
      value = next;
    }
    switch (below(6)) {
      case 0: add({.code = Code::kCall, .a = value}); break;
      case 1: add({.code = Code::kGive, .a = value}); break;
      case 2: {
        const int32_t number = to(), compared = to();
        add({.code = below(3) == 0 ? Code::kUniform : Code::kConstant,
             .target = number,
             .constant = static_cast<double>(below(4))});
        const bool left = below(2) == 0;
        add({.code = compares[below(4)],
             .target = compared,
             .a = left ? number : value,
             .b = left ? value : number});
        jumps.push_back(program.steps.size());
        add({.code = Code::kBranch, .a = compared});
        break;
      }
      case 3:
        if (below(2) == 0) {
          const int32_t negated = to();
          add({.code = Code::kNot, .target = negated, .a = value});
          value = negated;
        }
        jumps.push_back(program.steps.size());
        add({.code = Code::kBranch, .a = value});
        break;
      case 4:
        add({.code = below(2) == 0 ? Code::kAdd : Code::kSubtract, .target = to(), .a = any(), .b = any()});
        if (below(3) == 0) add({.code = Code::kNeed, .a = any()});
        break;
      default:
        if (below(2) == 0) {
          jumps.push_back(program.steps.size());
          add({.code = Code::kJump});
        }
    }
    if (below(3) == 0) add({.code = Code::kGive, .a = any()});
  }
  // Rounds of a loop.
  begins.push_back(program.steps.size());
  if (below(2) == 0) {
    const int32_t rounds = to(), one = program.registers++, counter = 1 + below(kVariables), by = any();
    program.steps.push_back({.code = Code::kConstant, .target = rounds, .constant = 3.0});
    program.steps.push_back({.code = Code::kConstant, .target = one, .constant = 1.0});
    const auto top = static_cast<int32_t>(program.steps.size());
    program.steps.push_back({.code = Code::kBranch, .a = rounds, .index = top + 5});
    program.steps.push_back({.code = Code::kGive, .a = counter});
    program.steps.push_back({.code = Code::kAdd, .target = counter, .a = counter, .b = by});
    program.steps.push_back({.code = Code::kSubtract, .target = rounds, .a = rounds, .b = one});
    program.steps.push_back({.code = Code::kJump, .index = top});
  }
  begins.push_back(program.steps.size());
  program.steps.push_back({.code = Code::kEnd});
  for (const size_t jump : jumps) {
    const auto first = std::upper_bound(begins.begin(), begins.end(), jump);
    const auto most = static_cast<size_t>(begins.end() - first);
    program.steps[jump].index =
        static_cast<int32_t>(*(first + static_cast<std::ptrdiff_t>((*random)() % most)));
  }
  return program;
}

Matrix RandomStructure(std::mt19937* random, ElementType type) {
  constexpr int64_t kRows = 6, kColumns = 4;
  Matrix matrix = *Matrix::Dense(kRows, kColumns, type);
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    double cell = static_cast<double>((*random)() % static_cast<unsigned>(i / kColumns + 1));
    if ((*random)() % 16 == 0) cell += 0.5;
    if ((*random)() % 64 == 0) cell = std::numeric_limits<double>::quiet_NaN();
    if (type == ElementType::kFloat64)
      matrix.mutable_data<double>()[i] = cell;
    else
      matrix.mutable_data<float>()[i] = static_cast<float>(cell);
  }
  return matrix;
}

bool IsSame(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))) return false;
  return true;
}

TEST(StructureStepsTest, RandomProgramsDoWhatTheirStepsSay) {
  std::mt19937 random(11);
  int done = 0, left = 0, failed = 0;
  for (int round = 0; round < 5000; ++round) {
    SCOPED_TRACE(round);
    const StructureProgram program = RandomProgram(&random);
    const Matrix matrix =
        RandomStructure(&random, round % 3 == 0 ? ElementType::kFloat32 : ElementType::kFloat64);
    const std::vector<double> uniforms = {static_cast<double>(random() % 3)};
    Reference reference(program, matrix, uniforms[0]);
    const int64_t root = 1 + static_cast<int64_t>(random() % 6);
    const Outcome expected = reference.Visit(root);
    StructureVisitor visitor(program, {matrix}, uniforms, Reference::kMostDecisions);
    for (int again = 0; again < 2; ++again) {
      const Result<const VisitedStructure*> found = visitor.Visit({&root, 1}, "f");
      ASSERT_EQ(found.ok(), expected != Outcome::kFailed) << found.status().ToString();
      if (!found.ok()) continue;
      ASSERT_EQ(*found != nullptr, expected == Outcome::kDone) << visitor.why();
      if (*found == nullptr) continue;
      const VisitedStructure& visited = **found;
      EXPECT_TRUE(IsSame(visited.numbers, reference.numbers));
      ASSERT_EQ(visited.visits.size(), reference.nodes.size());
      for (size_t v = 0; v < visited.visits.size(); ++v) {
        EXPECT_EQ(visited.visits[v].node, reference.nodes[v]);
        const auto batch = static_cast<size_t>(visited.visits[v].batch);
        const auto node_class = static_cast<size_t>(visited.batches[batch].node_class);
        EXPECT_EQ(visited.classes[node_class].decisions, reference.path_of.at(visited.visits[v].node));
      }
    }
    ++(expected == Outcome::kDone ? done : expected == Outcome::kLeft ? left : failed);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(done, 200);
  EXPECT_GT(left, 200);
  EXPECT_GT(failed, 200);
}

// A loop whose children are cells, and a decision by a cell, are a step each.
TEST(StructureStepsTest, CommonGroupsAreOneStep) {
  StructureProgram program;
  program.matrices = {"T"};
  program.registers = 12;
  program.steps = {{.code = Code::kConstant, .target = 1, .constant = 1},
                   {.code = Code::kCell, .target = 2, .a = 0, .b = 1},
                   {.code = Code::kConstant, .target = 3, .constant = 0},
                   {.code = Code::kEqual, .target = 4, .a = 2, .b = 3},
                   {.code = Code::kBranch, .a = 4, .index = 9},
                   {.code = Code::kConstant, .target = 5, .constant = 3},
                   {.code = Code::kCell, .target = 6, .a = 0, .b = 5},
                   {.code = Code::kGive, .a = 6},
                   {.code = Code::kJump, .index = 13},
                   {.code = Code::kConstant, .target = 8, .constant = 2},
                   {.code = Code::kCell, .target = 9, .a = 0, .b = 8},
                   {.code = Code::kTruncate, .is_whole = true, .target = 10, .a = 9},
                   {.code = Code::kCall, .a = 10},
                   {.code = Code::kEnd}};
  const Matrix matrix = *Matrix::Dense(1, 3);
  const StructureSteps steps = PrepareSteps(program, {&matrix, 1}, {});
  std::vector<Code> codes;
  for (const StructureSteps::Step& step : steps.steps) codes.push_back(step.code);
  EXPECT_EQ(codes,
            (std::vector<Code>{Code::kDecideCell, Code::kGiveCell, Code::kEnd, Code::kCallCell, Code::kEnd}));
}

}  // namespace
}  // namespace heddle::ops
