// SPDX-License-Identifier: Apache-2.0
// Files of MATLAB: version 5 of SciPy and Octave, 4, and 7.3, which is HDF5.
#include "ops/io/formats/libraries/format_module.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

class MatTest : public FormatsTest {
 protected:
  void SetUp() override {
    if (!OpenMatModule().ok()) GTEST_SKIP() << OpenMatModule().status().message();
    for (const char* file : {"matlab4.mat", "matlab5.mat", "matlab73.mat", "octave4.mat", "octave7.mat"})
      PutData(file);
  }
  Result<Matrix> Variable(const std::string& file, const std::string& name, bool transposed = false) {
    return Read(file, {{"dataset", name}, {"transposed", transposed}});
  }
};

TEST_F(MatTest, VariablesOfVersion5AreReadAsTheyAreThere) {
  ExpectCells(Variable("matlab5.mat", "X"), 2, 3, {0, 1, 2, 3, 4, 5});
  ExpectCells(Variable("matlab5.mat", "S"), 2, 3, {0, 1.5, 0, 2, 0, 0});
  ExpectCells(Variable("matlab5.mat", "E"), 0, 3, {});
  ExpectCells(Variable("matlab5.mat", "L"), 1, 2, {1, 0});
  ExpectCells(Variable("matlab5.mat", "I"), 1, 2, {1, -2});
  std::vector<double> tensor;
  for (int k = 0; k < 24; ++k) tensor.push_back(k);
  ExpectCells(Variable("matlab5.mat", "T"), 2, 12, tensor);
  ExpectCells(Variable("octave7.mat", "L"), 2, 2, {1, 0, 0, 1});
  const Result<Matrix> sparse = Variable("octave7.mat", "S");
  ExpectCells(sparse, 3, 5, {1.5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, -2, 0, 0, 0});
  EXPECT_TRUE(sparse->IsSparse());
}

// libmatio takes what is missing for zeros, and does not look at checksums.
TEST_F(MatTest, CutAndDamagedFilesGiveNoOtherCells) {
  const std::string whole = Get("matlab5.mat");
  const Result<Matrix> right = Variable("matlab5.mat", "T");
  ASSERT_TRUE(right.ok());
  int refused = 0;
  for (size_t size = 0; size < whole.size(); size += 13) {
    Put("cut.mat", whole.substr(0, size));
    const Result<Matrix> read = Variable("cut.mat", "T");
    refused += read.ok() ? 0 : 1;
    EXPECT_TRUE(!read.ok() || Matrix::SameCells(*read, *right)) << size;
  }
  EXPECT_GT(refused, 10);
  for (size_t at = 137; at < whole.size(); at += 29) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    Put("damaged.mat", damaged);
    const Result<Matrix> read = Variable("damaged.mat", "T");
    EXPECT_TRUE(!read.ok() || Matrix::SameCells(*read, *right)) << at;
  }
}

TEST_F(MatTest, TransposedIsTheOtherOrderOfIndexes) {
  ExpectCells(Variable("matlab5.mat", "X", true), 3, 2, {0, 3, 1, 4, 2, 5});
  ExpectCells(Variable("matlab5.mat", "S", true), 3, 2, {0, 2, 1.5, 0, 0, 0});
  const Result<Matrix> tensor = Variable("matlab5.mat", "T", true);
  ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t k = 0; k < 4; ++k)
        EXPECT_EQ(tensor->At(k, j * 2 + i), static_cast<double>(i * 12 + j * 4 + k));
}

TEST_F(MatTest, Version4IsKnownByItsFirstVariable) {
  ExpectCells(Read("matlab4.mat"), 2, 3, {0, 1, 2, 3, 4, 5});
  ExpectCells(Variable("octave4.mat", "S"), 3, 5, {1.5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, -2, 0, 0, 0});
  Put("m", Get("matlab4.mat"));  // Not named so: the format has to be said.
  ExpectCells(Read("m", {{"format", "mat"}}), 2, 3, {0, 1, 2, 3, 4, 5});
}

// As other matrices of MATLAB, where the format says that it is one of those.
TEST_F(MatTest, Version73GoesToHdf5) {
  if (!OpenHdf5Module().ok()) GTEST_SKIP() << OpenHdf5Module().status().message();
  ExpectCells(Read("matlab73.mat", {{"format", "mat"}, {"dataset", "X"}}), 2, 3, {0, 1, 2, 3, 4, 5});
  ExpectCells(Variable("matlab73.mat", "X"), 3, 2, {0, 3, 1, 4, 2, 5});
  ExpectCells(Read("matlab73.mat", {{"format", "matlab"}, {"dataset", "E"}}), 0, 3, {});
}

TEST_F(MatTest, WhatIsNoMatrixIsNamed) {
  EXPECT_EQ(Fault("matlab5.mat"),
            "cannot read 'matlab5.mat': it holds 6 matrices\ndataset= says which: X, S, E, L, I, T");
  const auto fault = [&](const std::string& name) { return Fault("matlab5.mat", {{"dataset", name}}); };
  EXPECT_EQ(fault("text"), "cannot read 'matlab5.mat': variable 'text' holds texts, not real numbers");
  EXPECT_EQ(fault("z"), "cannot read 'matlab5.mat': variable 'z' holds complex numbers, not real numbers");
  EXPECT_EQ(fault("cell"), "cannot read 'matlab5.mat': variable 'cell' holds a cell array, not real numbers");
  EXPECT_EQ(fault("Y"), "cannot read 'matlab5.mat': it has no variable 'Y'\nit has: X, S, E, L, I, T");
  Put("t.mat", "1,2\n");
  EXPECT_EQ(Fault("t.mat", {{"format", "mat"}}),
            "cannot read 't.mat': it is no MATLAB file\nformat= says what it is");
  EXPECT_EQ(Fault("matlab5.mat", {{"format", "hdf5"}}),
            "cannot read 'matlab5.mat': it is no HDF5 file\n"
            "it is a MATLAB file of an older version: format=\"mat\"");
  const std::string whole = Get("matlab5.mat");
  for (size_t size = 128; size < whole.size(); size += 50) {
    Put("t.mat", whole.substr(0, size));
    Fault("t.mat", {{"dataset", "T"}});  // Which expects the exit code of faults in data.
  }
  EXPECT_EQ(Write(Make(1, 1, {1}), "w.mat", {.format = FileFormat::kMat}).message(),
            "write: a matrix cannot be written in format 'mat'");
}

}  // namespace
}  // namespace heddle::ops
