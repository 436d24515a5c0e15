// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/einsum.h"

#include <cmath>
#include <map>

#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Forms;
using testing::Inputs;
using testing::Invocation;
using testing::RandomCells;
using testing::Rows;

Invocation Call(const std::string& equation, const std::vector<Matrix>& operands) {
  Inputs inputs;
  for (const Matrix& operand : operands) inputs.emplace_back(Value(operand));
  return Invocation("einsum", std::move(inputs), {{"equation", Scalar(equation)}});
}

// One matrix for each operand, letters of different sizes.
std::vector<Matrix> OperandsOf(const std::string& equation) {
  const std::map<char, int64_t> sizes = {{'i', 5}, {'j', 7}, {'k', 3}, {'l', 4}, {'f', 5},
                                         {'x', 6}, {'g', 3}, {'z', 8}, {'J', 1}};
  std::vector<Matrix> operands;
  std::string names;
  for (const char c : equation.substr(0, equation.find("->")) + ",") {
    if (c == ' ') continue;
    if (c != ',') {
      names += c;
      continue;
    }
    const auto seed = static_cast<uint32_t>(operands.size() + 1);
    operands.push_back(RandomCells(sizes.at(names[0]), names.size() == 1 ? 1 : sizes.at(names[1]), seed, 1));
    names.clear();
  }
  return operands;
}

TEST(EinsumTest, EqualsTheReference) {
  for (const std::string equation : {"ij,jk->ik",
                                     "ij,jk->ki",
                                     "ji,jk->ik",
                                     "ij,kj->ik",
                                     "ij,jk,kl->il",
                                     "kl,jk,ij->il",
                                     "ij,jk->i",
                                     "ij,ij->ij",
                                     "ij,ji->i",
                                     "ij,ij->",
                                     "ij,i->ij",
                                     "ij,j->ij",
                                     "i,j->ij",
                                     "i,j->ji",
                                     "i,j->",
                                     "i,i->",
                                     "i,i->i",
                                     "ij->",
                                     "ij->i",
                                     "ij->j",
                                     "ij->ji",
                                     "ij->ij",
                                     "i->i",
                                     "ii->i",
                                     "ii->",
                                     "ii,i->i",
                                     "ij,kl->ji",
                                     "fx,fg,fz,xg,zx,zg->g",
                                     "ij,ij,ji,i,j->j",
                                     "i j , j k -> i k",
                                     "iJ,Jk->ik"}) {
    const std::vector<Matrix> operands = OperandsOf(equation);
    const Matrix expected = reference::Einsum(equation, operands);
    for (size_t form = 0; form < 3; ++form) {
      std::vector<Matrix> stored;
      for (const Matrix& operand : operands) stored.push_back(Forms(operand)[form]);
      const Value value = Call(equation, stored).Run(2);
      const bool is_scalar = equation.ends_with("->");
      ASSERT_EQ(value.IsScalar(), is_scalar) << equation;
      if (is_scalar) {
        EXPECT_NEAR(value.scalar().AsDouble(), expected.At(0, 0), 1e-9) << equation;
        continue;
      }
      ASSERT_EQ(value.matrix().shape(), expected.shape()) << equation;
      for (int64_t k = 0; k < expected.cells(); ++k)
        EXPECT_NEAR(value.matrix().data()[k], expected.data()[k], 1e-9) << equation << " " << k;
    }
  }
}

TEST(EinsumTest, VectorsMayLieInRows) {
  const Matrix row = Rows({{1, 2, 3}}), x = Rows({{1, 2, 3}, {4, 5, 6}});
  EXPECT_TRUE(Matrix::SameCells(Call("ij,j->i", {x, row}).RunMatrix(), Rows({{14}, {32}})));
  EXPECT_TRUE(Matrix::SameCells(Call("i->i", {row}).RunMatrix(), Rows({{1}, {2}, {3}})));
  EXPECT_EQ(Call("ij->", {*FilledMatrix(0, 3, 0)}).Run().scalar().AsDouble(), 0);
}

TEST(EinsumTest, ErrorsNameTheLetter) {
  const Matrix a = Rows({{1, 2, 3}, {4, 5, 6}}), b = Rows({{1, 2}, {3, 4}, {5, 6}});
  EXPECT_EQ(Call("ij,jk", {a, b}).Error(), "einsum: the equation \"ij,jk\" has no ->");
  EXPECT_EQ(Call("ij,kj->ik", {a, b}).Error(), "einsum: the letter j is 2 in operand 2 but 3 before it");
  EXPECT_EQ(Call("ij,jk->ijk", {a, b}).Error(),
            "einsum: the result has 3 letters, \"ijk\", but a matrix has two");
  EXPECT_EQ(Call("ij->ii", {a}).Error(), "einsum: the result has the letter i twice");
  EXPECT_EQ(Call("ij->k", {a}).Error(), "einsum: no operand has the letter k of the result");
  EXPECT_EQ(Call("ij,jk->ik", {a}).Error(),
            "einsum: the equation \"ij,jk->ik\" has 2 operands, but 1 are given");
  EXPECT_EQ(Call("ijk->i", {a}).Error(), "einsum: operand 1 has 3 letters, but a matrix has one or two");
  EXPECT_EQ(Call("i->i", {a}).Error(), "einsum: operand 1 is 2x3 but has one letter");
  EXPECT_EQ(Call("i*->i", {a}).Error(), "einsum: '*' is no letter of an equation");
}

}  // namespace
}  // namespace heddle::ops
