// SPDX-License-Identifier: Apache-2.0
// Files of HDF5: those of h5py, those of Heddle, and what is none.
#include <cstring>

#include "core/environment/random.h"
#include "core/memory/block_pool.h"
#include "core/memory/memory_budget.h"
#include "ops/base/parallel.h"
#include "ops/io/formats/libraries/format_module.h"
#include "tests/unit/ops/io/formats/cells.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

const WriteOptions kHdf5 = {.format = FileFormat::kHdf5};
const std::string kData = HEDDLE_SOURCE_DIR "/tests/unit/ops/io/formats/data/datasets.h5";

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

// The places are those in types.h5: of the sizes of the lists of X (what they are and may become), and of
// where the cells of `indptr` are.
TEST_F(Hdf5Test, SparseMatricesThatAreDamagedAreNamed) {
  PutData("types.h5");
  const std::string whole = Get("types.h5");
  const auto fault = [&](size_t place, const std::vector<int64_t>& now, const std::vector<int64_t>& then) {
    std::string changed = whole;
    const size_t bytes = now.size() * sizeof(int64_t);
    EXPECT_EQ(std::memcmp(whole.data() + place, now.data(), bytes), 0);
    std::memcpy(changed.data() + place, then.data(), bytes);
    Put("t.h5", changed);
    return Fault("t.h5", {{"dataset", "X"}});
  };
  const std::string start = "cannot read 't.h5': sparse matrix 'X' is damaged: ";
  EXPECT_EQ(fault(11568, {3, 3}, {1, 1}), start + "its sizes do not fit each other");
  EXPECT_EQ(fault(11296, {2, 2}, {1, 1}), start + "it has too few cells");
  EXPECT_EQ(fault(5976, {0x61746164}, {0x62746164}),  // data and datb
            "cannot read 't.h5': sparse matrix 'X' holds no real numbers");
  EXPECT_EQ(fault(1729, {2}, {1000}), "cannot read 't.h5': it holds no dataset of numbers");
  EXPECT_EQ(Ours(fault(11634, {2108}, {int64_t{1} << 40})), "cannot read 't.h5': its cells cannot be read");
}

// The places are those in matlab73.mat of the sizes of E, and of how many those are.
TEST_F(Hdf5Test, EmptyMatricesThatAreDamagedAreNamed) {
  PutData("matlab73.mat");
  const auto fault = [&](size_t place, int64_t first, int64_t second) {
    std::string changed = Get("matlab73.mat");
    std::memcpy(changed.data() + place, &first, sizeof(first));
    std::memcpy(changed.data() + place + sizeof(first), &second, sizeof(second));
    Put("t.h5", changed);
    return Fault("t.h5", {{"dataset", "E"}});
  };
  EXPECT_EQ(fault(3408, 5, 3), "cannot read 't.h5': dataset 'E' is marked as empty, but has cells");
  EXPECT_EQ(fault(1944, 65, 65),
            "cannot read 't.h5': dataset 'E' is marked as empty, but does not tell its sizes");
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

TEST_F(Hdf5Test, MissingValuesOfRAreNone) {
  PutData("r.h5");
  ExpectCells(Read("r.h5", {{"dataset", "integers"}}), 3, 1, {1, kNaN, 3});
  ExpectCells(Read("r.h5", {{"dataset", "logicals"}}), 3, 1, {1, kNaN, 0});
  ExpectCells(Read("r.h5", {{"dataset", "doubles"}}), 3, 2, {1.5, kNaN, 3, 4, 5, 6});
  ExpectCells(Read("r.h5", {{"dataset", "doubles"}, {"transposed", true}}), 2, 3, {1.5, 3, 5, kNaN, 4, 6});
  PutData("types.h5");
  ExpectCells(Read("types.h5", {{"dataset", "enumeration"}}), 3, 1, {1, kNaN, 0});
}

TEST_F(Hdf5Test, BitFieldsOfAByteAreBooleans) {
  PutData("types.h5");
  ExpectCells(Read("types.h5", {{"dataset", "bits"}}), 3, 1, {0, 1, 1});
  EXPECT_EQ(Fault("types.h5", {{"dataset", "wide"}}),
            "cannot read 'types.h5': dataset 'wide' holds bit fields of 2 bytes, not numbers");
  EXPECT_EQ(Fault("types.h5", {{"dataset", "complex"}}),
            "cannot read 'types.h5': dataset 'complex' holds complex numbers, not numbers");
}

// MATLAB 7.3 puts half a kilobyte before it, h5py's userblock_size any power of two.
TEST_F(Hdf5Test, ABlockBeforeTheMarkIsLookedBehind) {
  PutData("matlab73.mat");
  ExpectCells(Read("matlab73.mat", {{"dataset", "X"}}), 3, 2, {0, 3, 1, 4, 2, 5});
  PutData("types.h5");
  ExpectCells(Read("types.h5", {{"dataset", "X"}}), 2, 3, {0, 0, 1.5, -2, 0, 0});
  Put("m.h5", std::string(1 << 16, 'x') + Get("data.h5"));
  EXPECT_NE(Fault("m.h5"), "it is read");  // The block's size is told by the file, here it lies.
}

TEST_F(Hdf5Test, EmptyMatricesOfMatlabAndOctaveHaveTheirSizes) {
  PutData("matlab73.mat");
  PutData("octave.h5");
  for (const bool transposed : {false, true}) {
    ExpectCells(Read("matlab73.mat", {{"dataset", "E"}, {"transposed", transposed}}), 0, 3, {});
    ExpectCells(Read("octave.h5", {{"dataset", "E"}, {"transposed", transposed}}), 0, 3, {});
  }
}

TEST_F(Hdf5Test, MatricesOfMatlabAndOctaveAreTurnedWhereItIsAskedFor) {
  PutData("matlab73.mat");
  PutData("octave.h5");
  const auto turned = [&](const std::string& file, const std::string& name) {
    return Read(file, {{"dataset", name}, {"transposed", true}});
  };
  ExpectCells(turned("matlab73.mat", "X"), 2, 3, {0, 1, 2, 3, 4, 5});
  ExpectCells(Read("octave.h5", {{"dataset", "X"}}), 3, 2, {1, 4, 2, 5, 3, 6});
  ExpectCells(turned("octave.h5", "X"), 2, 3, {1, 2, 3, 4, 5, 6});
  std::vector<double> tensor;
  for (int k = 0; k < 24; ++k) tensor.push_back(k);
  ExpectCells(turned("matlab73.mat", "T"), 2, 12, tensor);
  const std::vector<double> sparse = {1.5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, -2, 0, 0, 0};
  ExpectCells(turned("octave.h5", "S"), 3, 5, sparse);
  ExpectCells(Read("octave.h5", {{"dataset", "S"}}), 5, 3, {1.5, 0, 0, 0, 0, -2, 0, 0, 0, 0, 3, 0, 0, 0, 0});
}

// Every way in which cells lie in a file: together, in chunks, with one, two and three indexes.
TEST_F(Hdf5Test, TransposedIsTheOtherOrderOfIndexes) {
  PutData("types.h5");
  const Result<Matrix> chunks = Read("types.h5", {{"dataset", "chunks"}});
  const Result<Matrix> turned = Read("types.h5", {{"dataset", "chunks"}, {"transposed", true}});
  ASSERT_TRUE(turned.ok()) << turned.status().ToString();
  ASSERT_EQ(turned->shape(), (Shape{7, 5}));
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 7; ++j) EXPECT_EQ(turned->At(j, i), chunks->At(i, j));
  const Result<Matrix> tensor = Read("types.h5", {{"dataset", "tensor"}, {"transposed", true}});
  ASSERT_TRUE(tensor.ok()) << tensor.status().ToString();
  ASSERT_EQ(tensor->shape(), (Shape{4, 6}));
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t k = 0; k < 4; ++k)
        EXPECT_EQ(tensor->At(k, j * 2 + i), static_cast<double>(i * 12 + j * 4 + k));
  ExpectCells(Read("data.h5", {{"dataset", "booleans"}, {"transposed", true}}), 2, 1, {1, 0});
  ExpectCells(Read("data.h5", {{"dataset", "single"}, {"transposed", true}}), 1, 1, {2.5});
  EXPECT_EQ(Read("data.h5", {{"dataset", "rows_none"}, {"transposed", true}})->shape(), (Shape{3, 0}));
  ExpectCells(Read("types.h5", {{"dataset", "X"}, {"transposed", true}}), 3, 2, {0, -2, 0, 0, 1.5, 0});
  Put("t.csv", "1,2\n");
  const Status fault = Read("t.csv", {{"transposed", true}}).status();
  EXPECT_EQ(fault.ToString(),
            "read: transposed= is of arrays, 't.csv' is in format 'csv'\nt() transposes a matrix");
}

TEST_F(Hdf5Test, WhatIsNewerThanTheLibraryIsTold) {
  PutData("newer.h5");
  const std::string fault = Fault("newer.h5");
  if (fault == "it is read") GTEST_SKIP() << "this HDF5 is as new";
  EXPECT_EQ(Ours(fault), "cannot read 'newer.h5': dataset 'booleans' cannot be opened");
  EXPECT_NE(fault.find("\nHDF5 1.12 or later wrote it, this Heddle has HDF5 1."), std::string::npos) << fault;
  EXPECT_NE(fault.find("libver=(\"earliest\", \"v110\")"), std::string::npos) << fault;
}

// Some hundred bytes whose one chunk is 128 MB.
TEST_F(Hdf5Test, AChunkThatDoesNotFitIsRefusedBeforeItIsRead) {
  PutData("large_chunk.h5");
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  BlockPool::Process().Trim(INT64_MAX);  // What earlier tests have left there would make room.
  budget.SetLimit(budget.used() + (int64_t{100} << 20));
  const Result<Matrix> refused = Read("large_chunk.h5");
  const int64_t used = budget.used();
  budget.SetLimit(limit);
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(refused.status().message().starts_with(
      "out of memory: what HDF5 takes to read 'large_chunk.h5', 272629792 bytes, does not fit: "))
      << refused.status().ToString();
  EXPECT_LE(used, budget.used() + (int64_t{1} << 20));  // What it was charged is given back.
  ExpectCells(Read("large_chunk.h5"), 2, 2, {1, 2, 3, 4});
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
