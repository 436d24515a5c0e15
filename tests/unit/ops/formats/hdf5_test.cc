// SPDX-License-Identifier: Apache-2.0
// Files of HDF5: those of h5py, those of Heddle, and what is none.
#include "core/environment/random.h"
#include "ops/formats/libraries/format_module.h"
#include "ops/parallel.h"
#include "tests/unit/ops/formats/cells.h"
#include "tests/unit/ops/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

const WriteOptions kHdf5 = {.format = FileFormat::kHdf5};
const std::string kData = HEDDLE_SOURCE_DIR "/tests/unit/ops/formats/data/datasets.h5";

class Hdf5Test : public FormatsTest {
 protected:
  void SetUp() override {
    if (!OpenHdf5Module().ok()) GTEST_SKIP() << OpenHdf5Module().status().message();
    std::filesystem::copy_file(kData, directory_ + "/data.h5");
  }
  Result<Matrix> Dataset(const std::string& name) { return Read("data.h5", {{"dataset", name}}); }
  std::string DatasetFault(const std::string& name) { return Fault("data.h5", {{"dataset", name}}); }
  /// What HDF5 says, in the second line, depends on its version.
  static std::string Ours(const std::string& fault) {
    const size_t end = fault.find('\n');
    EXPECT_EQ(fault.substr(end + 1, 11), "HDF5 says: ");
    return fault.substr(0, end);
  }
  void ExpectSurvives(const Matrix& matrix, const std::string& dataset = "") {
    WriteOptions options = kHdf5;
    options.dataset = dataset;
    const Status status = Write(matrix, "m.h5", options);
    ASSERT_TRUE(status.ok()) << status.ToString();
    const Result<Matrix> back = Read("m.h5", {{"dataset", dataset}});
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    ExpectSameBits(*back, matrix);
  }
};

// The cells of make_data.py.
Matrix CellsOfData() {
  Matrix cells = *Matrix::Dense(6, 4);
  for (int k = 0; k < 20; ++k) cells.mutable_data()[k] = k / 4.0;
  cells.mutable_data()[0] = -0.0;
  const double last[] = {kNaN, kInf, -kInf, 5e-324};
  std::copy(std::begin(last), std::end(last), cells.mutable_data() + 20);
  return cells;
}

TEST_F(Hdf5Test, DatasetsOfOthersAreRead) {
  const Matrix cells = CellsOfData();
  ExpectSameBits(*Dataset("cells"), cells);
  ExpectSameBits(*Dataset("/cells"), cells);
  ExpectSameBits(*Dataset("link"), cells);
  const Result<Matrix> packed = Dataset("packed");
  ASSERT_TRUE(packed.ok()) << packed.status().ToString();
  ASSERT_EQ(packed->shape(), (Shape{600, 4}));
  for (int64_t i = 0; i < 100; ++i) ExpectSameBits(packed->Rows(6 * i, 6 * i + 6), cells);
  EXPECT_EQ(Dataset("group/deep/floats")->At(4, 3), 4.75);
  ExpectCells(Dataset("integers"), 2, 2, {1, -2, 3, 0x1p40});
  ExpectCells(Dataset("booleans"), 2, 1, {1, 0});
  ExpectCells(Dataset("single"), 1, 1, {2.5});
  std::vector<double> images;
  for (int k = 0; k < 24; ++k) images.push_back(k);
  ExpectCells(Dataset("images"), 2, 12, images);
  ExpectCells(Dataset("rows_none"), 0, 3, {});
}

TEST_F(Hdf5Test, WhatIsNoMatrixIsNamed) {
  EXPECT_EQ(Fault("data.h5"),
            "cannot read 'data.h5': it holds 10 datasets\ndataset= says which: booleans, cells, "
            "group/deep/floats, images, integers, nothing, outside, packed, rows_none, single");
  EXPECT_EQ(
      DatasetFault("nix"),
      "cannot read 'data.h5': it has no dataset 'nix'\nit has: booleans, cells, group/deep/floats, images, "
      "integers, nothing, outside, packed, rows_none, single");
  EXPECT_EQ(DatasetFault("texts"), "cannot read 'data.h5': dataset 'texts' holds texts, not numbers");
  EXPECT_EQ(DatasetFault("records"),
            "cannot read 'data.h5': dataset 'records' holds records of several fields, not numbers");
  EXPECT_EQ(DatasetFault("nothing"), "cannot read 'data.h5': dataset 'nothing' is empty");
  EXPECT_EQ(DatasetFault("outside"),
            "cannot read 'data.h5': the cells of dataset 'outside' are in other files\n"
            "h5repack, or h5py, copies them into one");
  EXPECT_EQ(Ours(DatasetFault("elsewhere")), "cannot read 'data.h5': dataset 'elsewhere' cannot be opened");
  EXPECT_EQ(Ours(DatasetFault("group")), "cannot read 'data.h5': dataset 'group' cannot be opened");
  Put("t.h5", "1,2\n");
  EXPECT_EQ(Fault("t.h5", {{"format", "hdf5"}}),
            "cannot read 't.h5': it is no HDF5 file\nformat= says what it is");
  const std::string whole = Get("data.h5");
  Put("t.h5", whole.substr(0, 1500));
  EXPECT_EQ(Ours(Fault("t.h5", {{"dataset", "cells"}})), "cannot read 't.h5': it is damaged or cut short");
  EXPECT_EQ(Fault("data.h5", {{"dataset", "cells"}, {"rows", 5}}),
            "cannot read 'data.h5': rows=5 was asked for, the file has 6");
}

TEST_F(Hdf5Test, WhatIsWrittenIsReadBitForBit) {
  SeededRandom random(3);
  for (const auto& [rows, columns] : kShapes)
    for (const double density : {0.01, 0.8}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", " << density);
      ExpectSurvives(RandomCells(rows, columns, density, &random));
    }
  ExpectSurvives(CellsOfData(), "a name");
  ExpectSurvives(CellsOfData(), "/in/a/group");
}

TEST_F(Hdf5Test, TheBytesDependOnTheCellsAlone) {
  SeededRandom random(4);
  Matrix matrix = RandomCells(2000, 300, 0.3, &random);
  for (int64_t k = 0; k < matrix.cells(); ++k)
    if (matrix.data()[k] == 0) matrix.mutable_data()[k] = 0;  // a sparse matrix has no zeros with a sign
  ASSERT_TRUE(Write(matrix, "m.h5", kHdf5).ok());
  const std::string bytes = Get("m.h5");
  for (const int threads : {1, 3}) {
    Arena arena(threads);
    arena.Execute([&] {
      ASSERT_TRUE(Write(*ToSparse(matrix), "m.h5", kHdf5).ok());
      EXPECT_TRUE(Get("m.h5") == bytes);
    });
  }
}

TEST_F(Hdf5Test, NamesThatHdf5DoesNotTakeAreToldBeforeAnythingIsWritten) {
  Put("m.h5", "old");
  WriteOptions options = kHdf5;
  options.dataset = "/";
  EXPECT_EQ(Ours(Write(Make(1, 1, {1}), "m.h5", options).ToString()),
            "write: dataset='/' is no name that HDF5 takes");
  EXPECT_EQ(Get("m.h5"), "old");
}

}  // namespace
}  // namespace heddle::ops
