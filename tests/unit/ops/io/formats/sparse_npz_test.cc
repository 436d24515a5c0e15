// SPDX-License-Identifier: Apache-2.0
// Sparse matrices of SciPy: all its formats, those of Heddle, and what is damaged.
#include "core/environment/random.h"
#include "ops/base/parallel.h"
#include "ops/io/formats/numpy/npy.h"
#include "ops/io/formats/numpy/zip_file.h"
#include "tests/unit/ops/io/formats/cells.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

const WriteOptions kSparse = {.format = FileFormat::kNpz, .sparse = true};

template <typename T>
std::string Array(const std::string& kind, const std::string& sizes, const std::vector<T>& cells) {
  std::string bytes = HeaderOfArray(kind, sizes);
  bytes.append(reinterpret_cast<const char*>(cells.data()), cells.size() * sizeof(T));
  return bytes;
}

class SparseNpzTest : public FormatsTest {
 protected:
  using Members = std::vector<std::pair<std::string, std::string>>;
  void PutArchive(const Members& members) {
    std::vector<ZipSource> sources;
    for (const auto& [name, bytes] : members)
      sources.push_back({name + ".npy", static_cast<int64_t>(bytes.size()),
                         [bytes = bytes](const ByteSink& sink) { return sink(bytes); }});
    std::string archive;
    ASSERT_TRUE(WriteZip(sources, [&](std::string_view bytes) {
                  archive += bytes;
                  return OkStatus();
                }).ok());
    Put("a.npz", archive);
  }
  // A 2 x 3 matrix of one cell in csr, where `changed` is another array than it should be.
  std::string FaultWith(const std::string& name, const std::string& changed) {
    Members members = {{"format", HeaderOfArray("|S3", "") + "csr"},
                       {"shape", Array<int64_t>("<i8", "2,", {2, 3})},
                       {"indptr", Array<int32_t>("<i4", "3,", {0, 1, 1})},
                       {"indices", Array<int32_t>("<i4", "1,", {2})},
                       {"data", Array<double>("<f8", "1,", {5})}};
    for (auto& [member, bytes] : members)
      if (member == name) bytes = changed;
    std::erase_if(members, [](const auto& member) { return member.second.empty(); });
    PutArchive(members);
    return Fault("a.npz");
  }
};

TEST_F(SparseNpzTest, AllFormatsOfSciPyAreRead) {
  const std::vector<double> cells = {0, 1.5, 0, 0, 0, 0, 0, 0, -2, 0, 0, 3};
  for (const char* name : {"csr", "csc", "coo", "bsr", "dia", "array"}) {
    SCOPED_TRACE(name);
    const std::string file = fmt::format("sparse_{}.npz", name);
    PutData(file);
    const Result<Matrix> matrix = Read(file);
    ExpectCells(matrix, 3, 4, cells);
    const Result<Matrix> turned = Read(file, {{"transposed", true}});
    ASSERT_TRUE(turned.ok()) << turned.status().ToString();
    ASSERT_EQ(turned->shape(), (Shape{4, 3}));
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 4; ++j) EXPECT_EQ(turned->At(j, i), matrix->At(i, j));
  }
  // Few cells are stored of these, and one of the arrays is a matrix of its own.
  EXPECT_TRUE(Read("sparse_csr.npz")->IsSparse());
  ExpectCells(Read("sparse_csr.npz", {{"dataset", "indices"}}), 3, 1, {1, 0, 3});
  PutData("sparse_blocks.npz");
  const double b[] = {1, 2};
  std::vector<double> blocks(4 * 6);
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 6; ++j) blocks[i * 6 + j] = i / 2 == j / 3 ? b[i / 2] : 0;
  ExpectCells(Read("sparse_blocks.npz"), 4, 6, blocks);
  PutData("sparse_list.npz");
  ExpectCells(Read("sparse_list.npz"), 4, 1, {0, 2.5, 0, 1});
}

TEST_F(SparseNpzTest, CellsThatComeTwiceAreAddedUp) {
  PutData("sparse_twice.npz");
  ExpectCells(Read("sparse_twice.npz"), 2, 3, {2, 0, 0, 0, 0, 5});
}

TEST_F(SparseNpzTest, WhatIsWrittenIsReadCellForCell) {
  SeededRandom random(3);
  for (const auto& [rows, columns] : kShapes)
    for (const double density : {0.01, 0.8}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", " << density);
      Matrix matrix = RandomCells(rows, columns, density, &random);
      for (int64_t k = 0; k < matrix.cells(); ++k)
        if (matrix.data()[k] == 0) matrix.mutable_data()[k] = 0;  // Zeros are not written, nor their signs.
      ASSERT_TRUE(Write(matrix, "m.npz", kSparse).ok());
      const std::string bytes = Get("m.npz");
      const Result<Matrix> back = Read("m.npz");
      ASSERT_TRUE(back.ok()) << back.status().ToString();
      EXPECT_TRUE(Matrix::SameCells(*back, matrix));
      ASSERT_TRUE(Write(*ToSparse(matrix), "m.npz", kSparse).ok());
      EXPECT_TRUE(Get("m.npz") == bytes);
    }
}

// As the archive of SciPy is: numpy.load() finds these arrays.
TEST_F(SparseNpzTest, WhatIsWrittenAreTheArraysOfSciPy) {
  ASSERT_TRUE(Write(Make(2, 3, {0, 0, 5, 0, 7, 0}), "m.npz", kSparse).ok());
  Put("m.npz.mtd", "{}");  // Which says the sizes of the matrix.
  ExpectCells(Read("m.npz", {{"dataset", "indices"}}), 2, 1, {2, 1});
  ExpectCells(Read("m.npz", {{"dataset", "indptr"}}), 3, 1, {0, 1, 2});
  ExpectCells(Read("m.npz", {{"dataset", "shape"}}), 2, 1, {2, 3});
  ExpectCells(Read("m.npz", {{"dataset", "data"}}), 2, 1, {5, 7});
  EXPECT_NE(Get("m.npz").find("'descr': '|S3', 'fortran_order': False, 'shape': (), }"), std::string::npos);
  WriteOptions named = kSparse;
  named.dataset = "x";
  EXPECT_EQ(Write(Make(1, 1, {1}), "n.npz", named).ToString(),
            "write: dataset='x' names an array, a sparse matrix in npz is several\n"
            "leave out dataset= or sparse=TRUE");
}

TEST_F(SparseNpzTest, WhatIsDamagedIsNamed) {
  const std::string start = "cannot read 'a.npz': its arrays are not those of a sparse matrix: ";
  EXPECT_EQ(FaultWith("", ""), "it is read");
  EXPECT_EQ(FaultWith("indices", ""), start + "'indices' is missing");
  EXPECT_EQ(FaultWith("indices", Array<double>("<f8", "1,", {2})), start + "'indices' must be whole numbers");
  EXPECT_EQ(FaultWith("indptr", Array<int32_t>("<i4", "2,", {0, 1})),
            start + "'indptr' does not fit the shape");
  for (const std::vector<int32_t>& ends : {std::vector<int32_t>{0, 2, 1}, {1, 1, 1}, {0, 0, 9}, {0, -5, 1}})
    EXPECT_EQ(FaultWith("indptr", Array<int32_t>("<i4", "3,", ends)),
              start + "'indptr' does not ascend from 0 to the number of 'indices'");
  EXPECT_EQ(FaultWith("data", Array<double>("<f8", "0,", {})), start + "'data' is shorter than 'indices'");
  EXPECT_EQ(FaultWith("shape", Array<int64_t>("<i8", "2,", {-2, 3})), start + "'shape' is none");
  for (const int32_t index : {3, -1})
    EXPECT_EQ(
        FaultWith("indices", Array<int32_t>("<i4", "1,", {index})),
        fmt::format("cannot read 'a.npz': stored cell 1, (1, {}), is outside of the 2x3 matrix", index + 1));
  EXPECT_EQ(FaultWith("shape", Array<int64_t>("<i8", "3,", {2, 3, 4})),
            "cannot read 'a.npz': it is a sparse array of 3 indexes\n"
            "Heddle reads those of one or two; array.reshape() makes a matrix");
  EXPECT_EQ(FaultWith("format", HeaderOfArray("|S3", "") + "lil"),
            "cannot read 'a.npz': it is a sparse matrix in format 'lil'\n"
            "Heddle reads csr, csc, coo, bsr and dia: scipy.sparse.save_npz(FILE, matrix.tocsr())");
  EXPECT_EQ(FaultWith("format", HeaderOfArray("|S300", "") + std::string(300, 'c')),
            "cannot read 'a.npz': it is not the short text that it should be");
  EXPECT_EQ(FaultWith("shape", Array<int64_t>("<i8", "2,", {2, int64_t{3'000'000'000}})),
            "cannot read 'a.npz': it is 2x3000000000, a sparse matrix has at most 2147483647 columns");
  const std::string shape = Array<int64_t>("<i8", "2,", {2, 3});
  const auto named = [](const std::string& format) { return HeaderOfArray("|S3", "") + format; };
  PutArchive({{"format", named("bsr")},
              {"shape", shape},
              {"indptr", Array<int32_t>("<i4", "3,", {0, 1, 1})},
              {"indices", Array<int32_t>("<i4", "1,", {0})},
              {"data", Array<double>("<f8", "1,", {5})}});
  EXPECT_EQ(Fault("a.npz"), start + "'data' must be as many blocks as there are 'indices'");
  PutArchive({{"format", named("coo")},
              {"shape", shape},
              {"row", Array<int32_t>("<i4", "2,", {0, 1})},
              {"col", Array<int32_t>("<i4", "1,", {0})},
              {"data", Array<double>("<f8", "1,", {5})}});
  EXPECT_EQ(Fault("a.npz"), start + "'row', 'col' and 'data' must be as long as each other");
  PutArchive({{"format", named("coo")},
              {"shape", shape},
              {"coords", Array<int32_t>("<i4", "2, 2", {0, 1, 0, 1})},
              {"data", Array<double>("<f8", "1,", {5})}});
  EXPECT_EQ(Fault("a.npz"), start + "'coords' and 'data' do not fit each other");
  PutArchive({{"format", named("dia")},
              {"shape", shape},
              {"offsets", Array<int32_t>("<i4", "2,", {0, 1})},
              {"data", Array<double>("<f8", "1, 3", {5, 6, 7})}});
  EXPECT_EQ(Fault("a.npz"), start + "'data' must have a row for each of 'offsets'");
  PutData("sparse_complex.npz");
  EXPECT_TRUE(
      Fault("sparse_complex.npz").starts_with("cannot read 'sparse_complex.npz': its cells have the type"));
}

// The places and sizes that an archive says of itself: its end, its directory, the heads of its members.
TEST_F(SparseNpzTest, ArchivesThatContradictThemselvesAreNamed) {
  const std::string start = "cannot read 'a.npz': it is a zip archive that is cut off or damaged: ";
  ASSERT_TRUE(Write(Make(1, 2, {1, 2}), "m.npz", {.format = FileFormat::kNpz}).ok());
  const std::string whole = Get("m.npz");
  const size_t end = whole.rfind("PK\x05\x06"), entry = whole.find("PK\x01\x02");
  ASSERT_NE(end, std::string::npos);
  ASSERT_NE(entry, std::string::npos);
  const auto fault = [&](size_t at, const std::string& bytes) {
    std::string damaged = whole;
    damaged.replace(at, bytes.size(), bytes);
    Put("a.npz", damaged);
    return Fault("a.npz", {{"format", "npz"}});
  };
  EXPECT_EQ(fault(end + 16, "\xff\xff\xff\x7f"), start + "its directory is not inside of it");
  EXPECT_EQ(fault(entry, "XX"), start + "entry 1 of its directory");
  EXPECT_EQ(fault(entry + 8, "\x01"), "cannot read 'a.npz': 'arr_0.npy' in it is encrypted");
  EXPECT_EQ(
      fault(entry + 10, "\x0c"),
      "cannot read 'a.npz': 'arr_0.npy' in it is packed in a way that Heddle does not know (method 12)");
  EXPECT_EQ(fault(entry + 42, "\x05"), start + "a member is not where it should be");
  // A locator in front of the end says where the end of archives beyond 4 GB is.
  const auto with_locator = [&](uint64_t place) {
    std::string locator("PK\x06\x07\0\0\0\0", 8);
    locator.append(reinterpret_cast<const char*>(&place), sizeof place).append(4, '\0');
    Put("a.npz", whole.substr(0, end) + locator + whole.substr(end));
    return Fault("a.npz");
  };
  EXPECT_EQ(with_locator(uint64_t{1} << 40), start + "its end record points behind its end");
  EXPECT_EQ(with_locator(0), start + "its end record is none");
}

TEST_F(SparseNpzTest, NamesOfArraysHaveABound) {
  EXPECT_EQ(Write(Make(1, 1, {1}), "n.npz", {.format = FileFormat::kNpz, .dataset = std::string(60'001, 'a')})
                .ToString(),
            "write: the name of an array in an npz file has 60000 bytes at most, not 60001");
}

}  // namespace
}  // namespace heddle::ops
