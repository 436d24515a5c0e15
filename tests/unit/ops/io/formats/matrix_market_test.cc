// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

class MatrixMarketTest : public FormatsTest {
 protected:
  Result<Matrix> Of(const std::string& text) {
    Put("a.mtx", text);
    return Read("a.mtx");
  }
  std::string FaultOf(const std::string& text) {
    const Result<Matrix> matrix = Of(text);
    return matrix.ok() ? "it is read" : std::string(matrix.status().message());
  }
};

TEST_F(MatrixMarketTest, WordsInAnyCaseAndBlanksAnywhere) {
  ExpectCells(Of("%%MatrixMarket  MATRIX    Coordinate    Real General\n\n   3  3         4\n\n1 1  1.5\n"
                 "  2 2     -2.8E2\n3 1 7.\n     3      3     12.\n\n"),
              3, 3, {1.5, 0, 0, 0, -280, 0, 7, 0, 12});
  ExpectCells(
      Of("%%MATRIXMARKET matrix ARRAY Integer GENERAL\r\n% note\r\n\r\n2 1\r\n 1\r\n% note\r\n\t2\r\n"), 2, 1,
      {1, 2});
}

TEST_F(MatrixMarketTest, FortranExponents) {
  ExpectCells(Of("%%MatrixMarket matrix coordinate real general\n2 3 5\n1 1 1.0D+03\n1 2 -.5d-1\n1 3 2.5D0\n"
                 "2 1 1.0-003\n2 2 +3.Q+1\n"),
              2, 3, {1000, -0.05, 2.5, 0.001, 30, 0});
  EXPECT_EQ(FaultOf("%%MatrixMarket matrix array real general\n1 1\n1-2-3\n"),
            "cannot read 'a.mtx': line 3: '1-2-3' is not a number");
}

TEST_F(MatrixMarketTest, Symmetries) {
  ExpectCells(Of("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n"), 2, 2,
              {0, -3, 3, 0});
  ExpectCells(Of("%%MatrixMarket matrix coordinate real Hermitian\n2 2 2\n1 1 1\n2 1 3\n"), 2, 2,
              {1, 3, 3, 0});
  EXPECT_EQ(FaultOf("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 3\n"),
            "cannot read 'a.mtx': line 3: a skew-symmetric matrix has zeros on its diagonal");
}

TEST_F(MatrixMarketTest, WhatIsNoRealMatrixIsNamed) {
  const auto fault = [](const std::string& what) {
    return "cannot read 'a.mtx': it is a MatrixMarket " + what;
  };
  EXPECT_EQ(FaultOf("%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 1 0\n"),
            fault("matrix (coordinate complex hermitian): its cells are complex numbers"));
  EXPECT_EQ(FaultOf("%%MatrixMarket matrix array Complex general\n1 1\n1 0\n"),
            fault("matrix (array complex general): its cells are complex numbers"));
  EXPECT_EQ(FaultOf("%%MatrixMarket vector coordinate real general\n1 1\n1 1\n"),
            fault("vector (coordinate real general): that is no matrix"));
  EXPECT_EQ(FaultOf("%%MatrixMarket matrix array pattern general\n1 1\n"),
            fault("matrix (array pattern general): an array has values"));
  EXPECT_EQ(FaultOf("%%MatrixMarket matrix coordinate pattern skew-symmetric\n1 1 0\n"),
            fault("matrix (coordinate pattern skew-symmetric): a pattern has no signs"));
  EXPECT_EQ(FaultOf("%%MatrixMarket matrix coordinate real persymmetric\n1 1 0\n"),
            fault("matrix (coordinate real persymmetric): the symmetry is not known"));
  EXPECT_EQ(FaultOf("%%MatrixMarket matrix elemental real general\n1 1 0\n"),
            fault("matrix (elemental real general): the layout is not known"));
  EXPECT_EQ(FaultOf("%%MatrixMarket matrix coordinate string general\n1 1 0\n"),
            fault("matrix (coordinate string general): the kind of its cells is not known"));
}

TEST_F(MatrixMarketTest, SizeLines) {
  EXPECT_EQ(FaultOf("%%MatrixMarket matrix coordinate real general\n2 2\n1 1 1\n"),
            "cannot read 'a.mtx': line 2: '2 2' is not a size line");
  EXPECT_EQ(FaultOf("%%MatrixMarket matrix array real general\n1 1 1\n1\n"),
            "cannot read 'a.mtx': line 2: '1 1 1' is not a size line");
  EXPECT_EQ(FaultOf("%%MatrixMarket matrix array real general\n% only notes\n"),
            "cannot read 'a.mtx': the size line is missing");
  Put("b.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n");
  EXPECT_EQ(Read("b.mtx", {{"rows", 2}}).status().message(),
            "cannot read 'b.mtx': rows=2 was asked for, the file says 1");
  Put("c.mtx", "1 1 1\n");
  EXPECT_EQ(Read("c.mtx", {{"format", "mm"}}).status().message(),
            "cannot read 'c.mtx': line 1 is not a MatrixMarket header");
}

}  // namespace
}  // namespace heddle::ops
