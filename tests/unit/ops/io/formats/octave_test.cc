// SPDX-License-Identifier: Apache-2.0
// Text files of Octave: every kind of variable, and what is none or is cut off.
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

class OctaveTest : public FormatsTest {
 protected:
  void SetUp() override { PutData("octave.txt"); }
  Result<Matrix> Variable(const std::string& name) { return Read("octave.txt", {{"dataset", name}}); }
  std::string VariableFault(const std::string& name) { return Fault("octave.txt", {{"dataset", name}}); }
};

TEST_F(OctaveTest, VariablesAreReadAsTheyAreThere) {
  ExpectCells(Variable("X"), 2, 3, {1, 2, 3, 4, 5, 6});
  const Result<Matrix> sparse = Variable("S");
  ExpectCells(sparse, 3, 5, {1.5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, -2, 0, 0, 0});
  EXPECT_TRUE(sparse->IsSparse());
  ExpectCells(Variable("E"), 0, 3, {});
  ExpectCells(Variable("I"), 3, 2, {1, -2, 3, 4, 5, 6});
  ExpectCells(Variable("L"), 2, 2, {1, 0, 0, 1});
  ExpectCells(Variable("N"), 1, 4, {kNaN, kInf, -kInf, kNaN});
  ExpectCells(Variable("P"), 3, 3, {0, 1, 0, 0, 0, 1, 1, 0, 0});
  ExpectCells(Variable("D"), 3, 2, {2, 0, 0, 3, 0, 0});
  ExpectCells(Variable("R"), 1, 5, {1, 1.5, 2, 2.5, 3});
  ExpectCells(Variable("b"), 1, 1, {1});
  ExpectCells(Variable("s"), 1, 1, {2.5});
  ExpectCells(Variable("f"), 1, 2, {1.5, 2.5});
  // T(i, j, k) is 1 + i + 2 j + 6 k, counted from 0; the last index runs fastest here.
  const Result<Matrix> tensor = Variable("T");
  ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
  ASSERT_EQ(tensor->shape(), (Shape{2, 12}));
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t k = 0; k < 4; ++k)
        EXPECT_EQ(tensor->At(i, j * 4 + k), static_cast<double>(1 + i + 2 * j + 6 * k));
}

// Variables inside of cell arrays and structs, and texts that look like heads, are none.
TEST_F(OctaveTest, WhatIsNoMatrixIsNamed) {
  EXPECT_EQ(Fault("octave.txt"),
            "cannot read 'octave.txt': it holds 13 matrices\n"
            "dataset= says which: D, E, I, L, N, P, R, S, T, X, b, f, s");
  EXPECT_EQ(VariableFault("text"),
            "cannot read 'octave.txt': variable 'text' is a string, not a matrix of real numbers");
  EXPECT_EQ(VariableFault("z"),
            "cannot read 'octave.txt': variable 'z' is a complex matrix, not a matrix of real numbers");
  EXPECT_EQ(VariableFault("cell"),
            "cannot read 'octave.txt': variable 'cell' is a cell, not a matrix of real numbers");
  for (const char* name : {"a", "evil", "<cell-element>"})
    EXPECT_EQ(VariableFault(name), fmt::format("cannot read 'octave.txt': it has no variable '{}'\n"
                                               "it has: D, E, I, L, N, P, R, S, T, X, b, f, s",
                                               name));
}

TEST_F(OctaveTest, AFileIsFoundByItsFirstLines) {
  const std::string matrix = "# name: X\n# type: matrix\n# rows: 1\n# columns: 2\n 1 2\n\n\n";
  Put("x", "# Created by Octave 9.2.0, Sat Nov 28 15:05:24 2026 UTC <a@b>\n" + matrix);
  ExpectCells(Read("x"), 1, 2, {1, 2});
  Put("x", matrix);
  ExpectCells(Read("x"), 1, 2, {1, 2});
  ExpectCells(Read("x", {{"format", "octave"}, {"rows", 1}}), 1, 2, {1, 2});
  EXPECT_EQ(Fault("x", {{"rows", 2}}), "cannot read 'x': rows=2 was asked for, the file has 1");
}

TEST_F(OctaveTest, FaultsNameTheirLine) {
  const auto fault = [&](const std::string& text) {
    Put("x", "# name: X\n# type: " + text);
    return Fault("x", {{"format", "octave"}});
  };
  const std::string head = "matrix\n# rows: 2\n# columns: 2\n";
  EXPECT_EQ(fault(head + " 1 2\n 3\n"), "cannot read 'x': line 6: ' 3': it has too few numbers");
  EXPECT_EQ(fault(head + " 1 2\n 3 4 5\n"), "cannot read 'x': line 6: ' 3 4 5': it has too many numbers");
  EXPECT_EQ(fault(head + " 1 b\n 3 4\n"),
            "cannot read 'x': line 5: ' 1 b': it holds something else than numbers");
  EXPECT_EQ(fault(head + " 1 2\n"), "cannot read 'x': it is cut off inside of variable 'X'");
  EXPECT_EQ(fault("matrix\n# rows: 2\n"), "cannot read 'x': line 3: '# rows: 2': it must be '# columns:'");
  EXPECT_EQ(fault("matrix\n# rows: -2\n# columns: 2\n"),
            "cannot read 'x': line 3: '# rows: -2': it must be a number");
  EXPECT_EQ(fault("sparse matrix\n# nnz: 1\n# rows: 2\n# columns: 2\n3 1 5\n"),
            "cannot read 'x': stored cell 1, (3, 1), is outside of the 2x2 matrix");
  EXPECT_EQ(fault("string\n# elements: 1\n# length: 2\nab\n"),
            "cannot read 'x': it holds no matrix of numbers\nsave -text FILE X, in Octave, writes one");
  const std::pair<const char*, const char*> heads[] = {
      {"permutation matrix\n# size: 2\n", "line 3: '# size: 2': the size of a permutation is missing"},
      {"permutation matrix\n# size: 2\n# rows: 2\n", "line 4: '# rows: 2': it must be '# orient:'"},
      {"range\n# base, limit, increment\n", "line 3: '# base, limit, increment': a range is cut off"},
      {"range\n# base, limit, increment\n1 2\n",
       "line 4: '1 2': a range has a first number, a limit and a step"},
      {"range\n# base, limit, increment\n0 1e300 1\n", "line 4: '0 1e300 1': a range has too many numbers"},
      {"matrix\n", "line 2: '# type: matrix': its sizes are missing"},
      {"matrix\n# size: 2\n", "line 3: '# size: 2': it must be '# rows:' or '# ndims:'"},
      {"matrix\n# ndims: 0\n", "line 3: '# ndims: 0': its sizes are missing"},
      {"matrix\n# ndims: 2\n 1 -1\n", "line 4: ' 1 -1': it must be the sizes of an array"},
      {"string\n# elements: 1\n# length: 5\nab\n", "line 5: 'ab': a text is cut off"},
      {"sparse matrix\n# nnz: 1\n# rows: 2\n# columns: 2\nx y 5\n",
       "line 6: 'x y 5': it must begin with a row and a column"},
  };
  for (const auto& [text, message] : heads)
    EXPECT_EQ(fault(text), fmt::format("cannot read 'x': {}", message)) << text;
  Put("x", "# name: X\n# rows: 2\n");
  EXPECT_EQ(Fault("x", {{"format", "octave"}}),
            "cannot read 'x': line 2: '# rows: 2': '# type:' must follow '# name:'");
}

}  // namespace
}  // namespace heddle::ops
