// SPDX-License-Identifier: Apache-2.0
// What groups of roots add to the adjoints of parameters: the same bits whoever has computed which of them.
#include "ops/recursion/adjoint/adjoint_total.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "ops/recursion/structure/root_groups.h"

namespace heddle::ops {
namespace {

using Term = RecursiveAdjoint::Term;
using Wanted = std::map<std::string, ValueInfo>;

Wanted TwoParameters(ElementType type) {
  Wanted wanted = {{"E", ValueInfo::OfMatrix({5, 3})}, {"W", ValueInfo::OfMatrix({2, 4})}};
  for (auto& [name, info] : wanted) info.element_type = type;
  return wanted;
}

Matrix Numbers(int64_t rows, int64_t columns, ElementType type, uint64_t seed) {
  Matrix matrix = *Matrix::Dense(rows, columns, type);
  for (int64_t i = 0; i < matrix.cells(); ++i) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    const double cell = static_cast<double>(seed >> 11) * 0x1p-53 - 0.5;
    if (type == ElementType::kFloat64)
      matrix.mutable_data<double>()[i] = cell;
    else
      matrix.mutable_data<float>()[i] = static_cast<float>(cell);
  }
  return matrix;
}

// Of a group: a matrix for W, unless the group is a multiple of 5, and `group` rows of E.
AdjointSums SumsOf(int64_t group, const Wanted& wanted, ElementType type) {
  AdjointSums sums(wanted);
  if (group % 5 != 0) {
    EXPECT_TRUE(sums.AddCells({.parameter = "W", .shape = {2, 4}},
                              Numbers(1, 8, type, static_cast<uint64_t>(group)), 0)
                    .ok());
  }
  Linearized::Class leaves;
  for (int64_t i = 0; i < group; ++i) leaves.numbers.push_back(static_cast<double>(1 + (i * group) % 5));
  const Matrix rows = Numbers(group, 2, type, static_cast<uint64_t>(100 + group));
  KernelContext context;
  EXPECT_TRUE(sums.Add({.kind = Term::Kind::kLookup, .parameter = "E", .column = 1, .shape = {1, 2}}, leaves,
                       rows, rows, CatalogKernels(), context)
                  .ok());
  return sums;
}

std::vector<double> CellsOf(AdjointTotal* total, const Wanted& wanted) {
  std::vector<double> cells;
  for (const auto& [name, info] : wanted) {
    const Matrix adjoint = *total->Take(name);
    EXPECT_EQ(adjoint.shape(), info.shape);
    EXPECT_EQ(adjoint.element_type(), info.element_type);
    for (int64_t i = 0; i < adjoint.rows(); ++i)
      for (int64_t j = 0; j < adjoint.columns(); ++j) cells.push_back(adjoint.At(i, j));
  }
  return cells;
}

// The order of docs/numerics.md, in plain loops.
std::vector<double> Tree(const std::map<int64_t, std::vector<double>>& leaves, int64_t begin, int64_t end) {
  if (end - begin == 1) {
    const auto leaf = leaves.find(begin);
    return leaf == leaves.end() ? std::vector<double>() : leaf->second;
  }
  int64_t half = 1;
  while (half * 2 < end - begin) half *= 2;
  std::vector<double> left = Tree(leaves, begin, begin + half);
  const std::vector<double> right = Tree(leaves, begin + half, end);
  if (left.empty()) return right;
  for (size_t i = 0; i < right.size(); ++i) left[i] += right[i];
  return left;
}

TEST(AdjointTotalTest, GroupsArePutTogetherByTheTreeAndRowsOneAfterTheOther) {
  constexpr int64_t kGroups = 13;
  const Wanted wanted = TwoParameters(ElementType::kFloat64);
  std::map<int64_t, std::vector<double>> leaves;
  std::vector<double> rows(15, 0.0);
  AdjointTotal total(wanted);
  total.BeginAll(kGroups);
  for (int64_t group = 0; group < kGroups; ++group) {
    AdjointSums sums = SumsOf(group, wanted, ElementType::kFloat64);
    for (const auto& [name, cells] : sums.cells()) leaves[group].assign(cells.data(), cells.data() + 8);
    for (const AdjointSums::LookupRows& looked : sums.lookups())
      for (int64_t i = 0; i < looked.rows.rows(); ++i)
        for (int64_t j = 0; j < 2; ++j)
          rows[(static_cast<size_t>(looked.numbers[static_cast<size_t>(i)]) - 1) * 3 + 1 +
               static_cast<size_t>(j)] += looked.rows.At(i, j);
    total.Add(group, std::move(sums));
  }
  std::vector<double> expected = rows;
  const std::vector<double> root = Tree(leaves, 0, kGroups);
  expected.insert(expected.end(), root.begin(), root.end());
  EXPECT_EQ(CellsOf(&total, wanted), expected);
}

TEST(AdjointTotalTest, ListsOfSeveralGiveTheBitsOfOne) {
  for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32})
    for (const int64_t groups : {1, 2, 7, 40}) {
      const Wanted wanted = TwoParameters(type);
      // Of groups that are given no adjoints nobody knows.
      std::vector<int64_t> given;
      for (int64_t group = 0; group < groups; ++group)
        if (group % 4 != 2 || group + 1 == groups) given.push_back(group);
      AdjointTotal alone(wanted);
      alone.BeginAll(given.back() + 1);
      for (const int64_t group : given) alone.Add(group, SumsOf(group, wanted, type));
      const std::vector<double> expected = CellsOf(&alone, wanted);
      for (size_t ranks = 1; ranks <= 4; ++ranks) {
        SCOPED_TRACE(testing::Message() << groups << " groups of " << ranks);
        std::vector<const double*> list;
        std::vector<Matrix> lists;
        for (size_t rank = 0; rank < ranks; ++rank) {
          const size_t begin = given.size() * rank / ranks, end = given.size() * (rank + 1) / ranks;
          AdjointTotal part(wanted);
          if (begin < end) part.BeginPart(given[begin], given[end - 1] + 1);
          for (size_t i = begin; i < end; ++i) part.Add(given[i], SumsOf(given[i], wanted, type));
          lists.push_back(*part.ToList());
        }
        for (const Matrix& one : lists)
          for (int64_t i = 0; i < one.rows(); ++i) list.insert(list.begin(), one.data() + i * one.columns());
        Matrix all = *Matrix::Dense(static_cast<int64_t>(list.size()), lists[0].columns());
        for (size_t i = 0; i < list.size(); ++i)
          std::memcpy(all.mutable_data() + static_cast<int64_t>(i) * all.columns(), list[i],
                      static_cast<size_t>(all.columns()) * sizeof(double));
        AdjointTotal total(wanted);
        ASSERT_TRUE(total.AddLists(all).ok());
        EXPECT_EQ(CellsOf(&total, wanted), expected);
      }
    }
}

TEST(RootGroupsTest, RootsAreInGroupsNextToEachOtherAsEvenAsCanBe) {
  for (const int64_t count : {1, 31, 32, 33, 64, 65, 100, 1000}) {
    SCOPED_TRACE(count);
    std::vector<int64_t> roots, again;
    for (int64_t i = 0; i < count; ++i) roots.push_back(10 * i);
    const Matrix groups = *RowsOfGroups(roots);
    EXPECT_EQ(groups.rows(), (count + 31) / 32);
    std::set<size_t> sizes;
    for (int64_t group = 0; group < groups.rows(); ++group) {
      EXPECT_EQ(groups.At(group, 0), static_cast<double>(group));
      const std::vector<int64_t> own = RootsOf(groups, group);
      sizes.insert(own.size());
      for (size_t i = 0; i < own.size(); ++i)
        EXPECT_EQ(GroupOf(static_cast<int64_t>(again.size() + i), count), group);
      again.insert(again.end(), own.begin(), own.end());
    }
    EXPECT_EQ(again, roots);
    EXPECT_LE(*sizes.rbegin() - *sizes.begin(), 1u);
  }
}

}  // namespace
}  // namespace heddle::ops
