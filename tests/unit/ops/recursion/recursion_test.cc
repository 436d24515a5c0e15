// SPDX-License-Identifier: Apache-2.0
// Structures as arrays: visits, heights, classes, circles.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ops/base/operator.h"
#include "ops/recursion/recursive_operator.h"
#include "ops/recursion/run/distinct_rows.h"
#include "ops/recursion/structure/linearize.h"
#include "ops/recursion/structure/visit_structure.h"

namespace heddle::ops {
namespace {

using Code = StructureProgram::Code;

// if (T[n, 1] != 0) call; if (T[n, 2] != 0) call; gives T[n, 3].
StructureProgram TwoChildren() {
  StructureProgram program;
  program.matrices = {"T"};
  program.registers = 8;
  program.steps = {{.code = Code::kConstant, .target = 1, .constant = 1},
                   {.code = Code::kConstant, .target = 2, .constant = 2},
                   {.code = Code::kConstant, .target = 3, .constant = 3},
                   {.code = Code::kCell, .target = 4, .a = 0, .b = 1},
                   {.code = Code::kCell, .target = 5, .a = 0, .b = 2},
                   {.code = Code::kCell, .target = 6, .a = 0, .b = 3},
                   {.code = Code::kBranch, .a = 4, .index = 8},
                   {.code = Code::kCall, .a = 4},
                   {.code = Code::kBranch, .a = 5, .index = 10},
                   {.code = Code::kCall, .a = 5},
                   {.code = Code::kGive, .a = 6},
                   {.code = Code::kEnd}};
  return program;
}

Matrix Rows(const std::vector<std::array<double, 3>>& rows) {
  Matrix matrix = *Matrix::Dense(static_cast<int64_t>(rows.size()), 3);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), matrix.mutable_data() + 3 * i);
  return matrix;
}

// Of the program over one matrix; `why` where only the interpreter can tell.
Result<std::optional<VisitedStructure>> Visited(const StructureProgram& program, const Matrix& matrix,
                                                const std::vector<int64_t>& roots, int32_t most = 100,
                                                std::string* why = nullptr) {
  StructureVisitor visitor(program, {matrix}, {}, most);
  HEDDLE_ASSIGN_OR_RETURN(const VisitedStructure* const visited, visitor.Visit(roots, "f"));
  if (why != nullptr) *why = visitor.why();
  return visited != nullptr ? std::optional(*visited) : std::nullopt;
}

Result<Linearized> Arrays(const Matrix& matrix, const std::vector<int64_t>& roots) {
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<VisitedStructure> visited,
                          Visited(TwoChildren(), matrix, roots));
  if (!visited) return Internal("only the interpreter can tell");
  return Linearize(*visited);
}

// Every node once, every child before its parent, everything where the arrays say it is.
void ExpectSound(const Matrix& matrix, const Linearized& arrays) {
  std::map<int64_t, int64_t> place_of;
  for (size_t place = 0; place < arrays.nodes.size(); ++place)
    EXPECT_TRUE(place_of.emplace(arrays.nodes[place], place).second);
  std::vector<bool> is_done(arrays.nodes.size(), false);
  for (const Linearized::Batch& batch : arrays.batches) {
    const Linearized::Class& node_class = arrays.classes[static_cast<size_t>(batch.node_class)];
    const int64_t size = node_class.end - node_class.begin;
    for (int64_t place = batch.begin; place < batch.end; ++place) {
      const int64_t node = arrays.nodes[static_cast<size_t>(place)];
      std::vector<int64_t> children;
      for (int64_t column = 0; column < 2; ++column)
        if (matrix.At(node - 1, column) != 0)
          children.push_back(static_cast<int64_t>(matrix.At(node - 1, column)));
      ASSERT_EQ(static_cast<size_t>(node_class.calls), children.size());
      for (size_t c = 0; c < children.size(); ++c) {
        const int32_t child =
            node_class
                .children[c * static_cast<size_t>(size) + static_cast<size_t>(place - node_class.begin)];
        EXPECT_EQ(child, place_of.at(children[c]));
        EXPECT_TRUE(is_done[static_cast<size_t>(child)]);
      }
      EXPECT_EQ(node_class.numbers[static_cast<size_t>(place - node_class.begin)], matrix.At(node - 1, 2));
    }
    for (int64_t place = batch.begin; place < batch.end; ++place) is_done[static_cast<size_t>(place)] = true;
  }
  EXPECT_TRUE(std::all_of(is_done.begin(), is_done.end(), [](bool done) { return done; }));
}

TEST(LinearizeTest, ChildrenComeBeforeTheirParentsInEveryGraph) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const int count = 1 + static_cast<int>(random() % 60);
    std::vector<std::array<double, 3>> rows;
    for (int i = 0; i < count; ++i)
      rows.push_back({static_cast<double>(random() % static_cast<unsigned>(i + 1)),
                      static_cast<double>(random() % static_cast<unsigned>(i + 1)),
                      static_cast<double>(100 + i)});
    const Matrix matrix = Rows(rows);
    const Result<Linearized> arrays = Arrays(matrix, {count, 1 + static_cast<int64_t>(random()) % count});
    ASSERT_TRUE(arrays.ok()) << arrays.status().ToString();
    ExpectSound(matrix, *arrays);
    EXPECT_EQ(arrays->nodes[static_cast<size_t>(arrays->roots[0])], count);
  }
}

// Rows of trees: each node but the roots is the child of one that comes later.
Matrix RandomForest(std::mt19937* random, std::vector<int64_t>* roots) {
  const int count = 1 + static_cast<int>((*random)() % 60);
  std::vector<std::array<double, 3>> rows(static_cast<size_t>(count), {0, 0, 0});
  for (int i = 0; i < count; ++i) {
    std::vector<std::array<double, 3>*> free;
    for (int parent = i + 1; parent < count; ++parent)
      if (auto& row = rows[static_cast<size_t>(parent)]; row[0] == 0 || row[1] == 0) free.push_back(&row);
    if (free.empty() || (*random)() % 8 == 0) {
      roots->push_back(i + 1);
      continue;
    }
    std::array<double, 3>& parent = *free[(*random)() % free.size()];
    const size_t side = parent[0] != 0 || (parent[1] == 0 && (*random)() % 2 == 0) ? 1 : 0;
    parent[side] = i + 1;
  }
  return Rows(rows);
}

void AppendSubtree(const Matrix& matrix, int64_t node, std::vector<int64_t>* nodes) {
  nodes->push_back(node);
  for (int64_t side = 0; side < 2; ++side)
    if (matrix.At(node - 1, side) != 0)
      AppendSubtree(matrix, static_cast<int64_t>(matrix.At(node - 1, side)), nodes);
}

TEST(LinearizeTest, SubtreesBehindEachOtherAreARangeOfEveryBatch) {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> roots;
    const Matrix matrix = RandomForest(&random, &roots);
    std::shuffle(roots.begin(), roots.end(), random);
    const Result<Linearized> arrays = Arrays(matrix, roots);
    ASSERT_TRUE(arrays.ok()) << arrays.status().ToString();
    ExpectSound(matrix, *arrays);
    ASSERT_TRUE(arrays->is_tree);
    std::vector<int64_t> depth_first;
    for (const int64_t root : roots) AppendSubtree(matrix, root, &depth_first);
    for (size_t place = 0; place < arrays->nodes.size(); ++place) {
      const int32_t first = arrays->order[place];
      EXPECT_EQ(arrays->nodes[place], depth_first[static_cast<size_t>(first)]);
      std::vector<int64_t> expected, found;
      AppendSubtree(matrix, arrays->nodes[place], &expected);
      EXPECT_EQ(arrays->subtrees[place], static_cast<int32_t>(expected.size()));
      for (const Linearized::Batch& batch : arrays->batches) {
        const Linearized::Batch within = arrays->Within(batch, first, first + arrays->subtrees[place]);
        EXPECT_LE(batch.begin, within.begin);
        EXPECT_LE(within.end, batch.end);
        found.insert(found.end(), arrays->nodes.begin() + within.begin, arrays->nodes.begin() + within.end);
      }
      std::sort(expected.begin(), expected.end());
      std::sort(found.begin(), found.end());
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(LinearizeTest, SharedNodesAreNoTree) {
  const Matrix matrix = Rows({{0, 0, 1}, {1, 0, 2}, {1, 2, 3}});
  EXPECT_FALSE(Arrays(matrix, {3})->is_tree);
  EXPECT_TRUE(Arrays(matrix, {2, 1})->is_tree);   // A root may stand in the tree of one before it,
  EXPECT_FALSE(Arrays(matrix, {1, 2})->is_tree);  // but not behind it.
}

TEST(DistinctRowsTest, WholeNumbersAreToldApartInLinearTime) {
  constexpr int64_t kRows = 1 << 20;  // Their bits differ in the upper half alone.
  std::vector<double> numbers;
  for (int64_t i = 0; i < kRows; ++i) numbers.push_back(static_cast<double>(1 + i % (kRows / 2)));
  for (int64_t i = 0; i < kRows; ++i) numbers.push_back(3);
  const DistinctRows distinct = FindDistinctRows(numbers, kRows);
  ASSERT_EQ(distinct.first.size(), static_cast<size_t>(kRows / 2));
  for (int64_t i = 0; i < kRows; ++i) ASSERT_EQ(distinct.row_of[static_cast<size_t>(i)], i % (kRows / 2));
}

TEST(LinearizeTest, AChainOfAMillionNodesNeedsNoStack) {
  constexpr int kNodes = 1'000'000;
  Matrix matrix = *Matrix::Dense(kNodes, 3);
  for (int i = 0; i < kNodes; ++i) {
    matrix.mutable_data()[3 * i] = i;
    matrix.mutable_data()[3 * i + 1] = 0;
    matrix.mutable_data()[3 * i + 2] = 1;
  }
  const Result<Linearized> arrays = Arrays(matrix, {kNodes});
  ASSERT_TRUE(arrays.ok());
  EXPECT_EQ(arrays->levels, kNodes);
  EXPECT_EQ(arrays->batches.size(), static_cast<size_t>(kNodes));
}

TEST(LinearizeTest, NodesThatAreNotReachedAreNotThere) {
  const Matrix matrix = Rows({{0, 0, 1}, {0, 0, 2}, {1, 0, 3}});
  const Result<Linearized> arrays = Arrays(matrix, {3});
  ASSERT_TRUE(arrays.ok());
  EXPECT_EQ(arrays->nodes, (std::vector<int64_t>{3, 1}));
}

TEST(LinearizeTest, ACircleIsNamed) {
  const Matrix matrix = Rows({{2, 0, 1}, {3, 0, 1}, {4, 0, 1}, {2, 5, 1}, {0, 0, 1}});
  const Result<Linearized> arrays = Arrays(matrix, {1});
  ASSERT_FALSE(arrays.ok());
  EXPECT_EQ(arrays.status().message(),
            "function 'f': the calls never end: nodes 2 -> 3 -> 4 -> 2 are children of each other");
}

TEST(LinearizeTest, AChildThatIsNoRowIsAnError) {
  const Matrix matrix = Rows({{2, 0, 1}, {7, 0, 1}});
  const Result<Linearized> arrays = Arrays(matrix, {1});
  ASSERT_FALSE(arrays.ok());
  EXPECT_EQ(arrays.status().message(), "node 7 reads [7,1] of 'T', which is 2 x 3");
}

TEST(StructureProgramTest, WhatIsNoNodeIsForTheInterpreter) {
  for (const double child : {-1.0, 1.5, 1e18, std::numeric_limits<double>::quiet_NaN()}) {
    const Matrix matrix = Rows({{child, 0, 1}});
    const Result<std::optional<VisitedStructure>> visited = Visited(TwoChildren(), matrix, {1});
    ASSERT_TRUE(visited.ok());
    EXPECT_FALSE(visited->has_value()) << child;
  }
}

// r[1] = `code` of the node and 3; calls that.
std::optional<VisitedStructure> CalledBy(StructureProgram::Step step, int64_t root) {
  StructureProgram program;
  program.registers = 4;
  step.target = 1;
  step.b = 2;
  program.steps = {{.code = Code::kConstant, .target = 2, .constant = 3},
                   {.code = Code::kConstant, .target = 3, .constant = 4},
                   step,
                   {.code = Code::kLess, .target = 3, .a = 3, .b = 0},
                   {.code = Code::kBranch, .a = 3, .index = 6},
                   {.code = Code::kCall, .a = 1},
                   {.code = Code::kEnd}};
  return *Visited(program, Rows({}), {root});
}

TEST(StructureProgramTest, OperatorsOfNumbersAreThoseOfTheLanguage) {
  const auto child = [](StructureProgram::Step step, int64_t root) -> int64_t {
    const std::optional<VisitedStructure> visited = CalledBy(step, root);
    return visited && visited->visits.size() == 2 ? visited->visits[1].node : -1;
  };
  const auto binary = [](BinaryCode code) {
    return StructureProgram::Step{
        .code = Code::kBinary, .is_whole = true, .index = static_cast<int32_t>(code)};
  };
  EXPECT_EQ(child(binary(BinaryCode::kIntegerDivide), 11), 3);
  EXPECT_EQ(child(binary(BinaryCode::kModulus), 11), 2);
  EXPECT_EQ(child(binary(BinaryCode::kMinimum), 11), 3);
  EXPECT_EQ(child({.code = Code::kUnary, .index = static_cast<int32_t>(UnaryCode::kSign)}, 11), 1);
  EXPECT_EQ(child({.code = Code::kBoolean}, 11), 1);
}

TEST(StructureProgramTest, WhyTheInterpreterRunsIsTold) {
  std::string why;
  const auto told = [&](double child, int32_t most) {
    const Matrix matrix = Rows({{child, 0, 1}});
    EXPECT_FALSE((*Visited(TwoChildren(), matrix, {1}, most, &why)).has_value());
    return why;
  };
  EXPECT_EQ(told(1.5, 100), "1.5 is called as a node (C2)");
  EXPECT_EQ(told(std::numeric_limits<double>::quiet_NaN(), 100), "node 1 decides by NaN (C3)");
  EXPECT_EQ(told(0, 1), "node 1 makes more than 1 decisions (C8)");
}

TEST(StructureProgramTest, APositionThatIsNoNumberIsAnError) {
  for (const double row : {std::numeric_limits<double>::quiet_NaN(), 1e300, -1e300}) {
    StructureProgram program;
    program.matrices = {"T"};
    program.registers = 3;
    program.steps = {{.code = Code::kConstant, .target = 1, .constant = row},
                     {.code = Code::kCell, .target = 2, .a = 1, .b = 0},
                     {.code = Code::kEnd}};
    const Matrix matrix = Rows({{0, 0, 0}});
    EXPECT_EQ(Visited(program, matrix, {1}).status().message(), "node 1 reads [-1,1] of 'T', which is 1 x 3");
  }
}

TEST(StructureProgramTest, MoreDecisionsThanAllowedAreForTheInterpreter) {
  const Matrix matrix = Rows({{0, 0, 1}});
  EXPECT_FALSE((*Visited(TwoChildren(), matrix, {1}, 1)).has_value());
  EXPECT_TRUE((*Visited(TwoChildren(), matrix, {1}, 2)).has_value());
}

// Ranks give their rows with the numbers of their roots, in any order.
TEST(RecursiveOperatorTest, RowsOfAllRanksArePutInTheOrderOfTheRoots) {
  const Operator* const op = FindOperator("recursive");
  ASSERT_NE(op, nullptr);
  Node node{.op = "recursive", .info = ValueInfo::OfMatrix({3, 2})};
  Matrix list = *Matrix::Dense(3, 3);
  const std::array<double, 9> cells = {2, 0, 30, 0, 0, 10, 1, 1, 20};
  std::copy(cells.begin(), cells.end(), list.mutable_data());
  const Value value(list);
  const std::array<const Value*, 1> inputs = {&value};
  const std::array<ValueInfo, 1> infos = {ValueInfo::OfMatrix({3, 1})};
  KernelContext context;
  const Result<Value> rows = op->run({.node = node,
                                      .phase = Phase::kFinish,
                                      .inputs = inputs,
                                      .input_infos = infos,
                                      .row_end = 3,
                                      .total_rows = 3,
                                      .context = context});
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(rows->matrix().At(i, 1), 10.0 * static_cast<double>(i + 1));
  EXPECT_EQ(rows->matrix().At(1, 0), 1);
}

TEST(RecursiveOperatorTest, WaysOfADerivativeHaveARowForARootAndTheSizesOfParameters) {
  std::vector<ValueInfo> inputs = {ValueInfo::OfMatrix({2, 33}), ValueInfo::OfMatrix({1, 1})};
  Node forward{.op = "recursiveForward"};
  forward.SetAttribute(RecursiveAttributes::kRoots, int64_t{40});
  forward.SetAttribute(RecursiveAttributes::kWidth, int64_t{7});
  EXPECT_EQ(Infer({.node = forward, .inputs = inputs, .scalars = {}})->shape, (Shape{40, 7}));

  inputs = {ValueInfo::OfMatrix({9, 4}), ValueInfo::OfScalar(ValueType::kDouble),
            ValueInfo::OfMatrix({3, 3})};
  for (ValueInfo& parameter : inputs) parameter.element_type = ElementType::kFloat32;
  for (const Shape shape : {Shape{2, 33}, Shape{1, 1}, Shape{40, 5}})
    inputs.push_back(ValueInfo::OfMatrix(shape));
  Node backward{.op = "recursiveBackward"};
  backward.SetAttribute(RecursiveAttributes::kWanted, int64_t{2});
  std::vector<ValueInfo> results;
  ASSERT_TRUE(Infer({.node = backward, .inputs = inputs, .scalars = {}}, &results)->IsTuple());
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0], inputs[0]);
  EXPECT_EQ(results[1], ValueInfo::OfMatrix({1, 1}));  // Numbers are doubles.
}

}  // namespace
}  // namespace heddle::ops
