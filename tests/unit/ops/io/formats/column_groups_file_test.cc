// SPDX-License-Identifier: Apache-2.0
// Binary files that hold column groups: what is written reads back bit for bit, by groups, whoever writes it
// and whichever rows are read; what is damaged is refused.
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "core/memory/counted_heap.h"
#include "core/values/column_groups.h"
#include "ops/base/cpu.h"
#include "ops/io/exchange/inspect_file.h"
#include "ops/io/formats/binary/binary_file.h"
#include "ops/io/formats/binary/binary_layout.h"
#include "ops/io/formats/binary/row_coding.h"
#include "ops/io/formats/write/write_pieces.h"
#include "tests/unit/ops/io/formats/cells.h"
#include "tests/unit/ops/io/formats/joint_write_fixture.h"
#include "tests/unit/ops/io/formats/sealed_file.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

WriteOptions ByGroups(int64_t parts = 0) {
  WriteOptions options = In(FileFormat::kBinary, Packing::kNone, parts);
  options.by_groups = true;
  return options;
}

// Columns of every kind: zeros, one cell, few cells, many, sorted ones, mostly one cell, any cells.
Matrix ColumnsOfEveryKind(int64_t rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr int64_t kColumns = 16;
  Matrix matrix = *Matrix::Dense(rows, kColumns);
  const double special[] = {-0.0, 0.0, kNaN, kInf, -kInf, 1e-310};
  for (int64_t i = 0; i < rows; ++i) {
    const uint64_t drawn = random();
    double* const row = matrix.mutable_data() + i * kColumns;
    row[0] = 0;
    row[1] = static_cast<double>(drawn % 2);
    row[2] = -0.0;
    row[3] = static_cast<double>(drawn % 3) / 3;
    row[4] = special[drawn / 7 % std::size(special)];
    row[5] = static_cast<double>(drawn / 64 % 200);
    row[6] = static_cast<double>(drawn / 64 % 5000) * 0.1;
    row[7] = std::floor(static_cast<double>(i) / 900);  // sorted
    row[8] = drawn % 97 == 0 ? static_cast<double>(drawn / 97 % 9 + 1) : 4;
    row[9] = static_cast<double>(drawn) / 7;
    row[10] = drawn % 50 == 0 ? special[drawn / 50 % 4] : 0;
    row[11] = static_cast<double>(drawn / 5 % 6);
    row[12] = kNaN;
    row[13] = static_cast<double>(drawn >> 40) * 1.25;
    row[14] = static_cast<double>(drawn / 11 % 2);
    row[15] = static_cast<double>(drawn / 13 % 16);
  }
  return matrix;
}

class ColumnGroupsFileTest : public JointWriteTest {
 protected:
  BinaryFile Opened(const std::string& name) { return *BinaryFile::Open({.path = name}, *files_); }
  Result<Matrix> RowsAs(const std::string& name, int64_t begin, int64_t end) {
    HEDDLE_ASSIGN_OR_RETURN(const BinaryFile file, BinaryFile::Open({.path = name}, *files_));
    HEDDLE_ASSIGN_OR_RETURN(Matrix rows, RowsOf(file, Format::kDense, begin, end, nullptr));
    if (rows.IsCompressed()) HEDDLE_RETURN_IF_ERROR(Verify(rows.groups()));
    return rows;
  }
};

TEST_F(ColumnGroupsFileTest, GroupsOfEveryEncodingSurviveBitForBit) {
  for (const int64_t rows : {0, 1, 2, 5, 3000, 8192, 70'001}) {
    SCOPED_TRACE(rows);
    const Matrix matrix = ColumnsOfEveryKind(rows, 3);
    ASSERT_TRUE(Write(matrix, "m", ByGroups()).ok());
    ExpectSameBits(*Read("m"), matrix);
    const Result<Matrix> back = RowsAs("m", 0, rows);
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    ExpectSameBits(*back, matrix);
    if (rows < 70'001) continue;
    EXPECT_TRUE(back->IsCompressed());
    std::set<Encoding> encodings;
    for (const ColumnGroup& group : back->groups().groups) encodings.insert(group.encoding);
    EXPECT_EQ(encodings.size(), 6u);
    const auto bytes = static_cast<double>(Get("m").size());
    EXPECT_LT(bytes, 0.25 * static_cast<double>(matrix.bytes()));
    // What is in memory is what is in the file.
    EXPECT_LT(static_cast<double>(back->groups().bytes()), 1.01 * bytes);
    EXPECT_GT(static_cast<double>(back->groups().bytes()), 0.99 * bytes);
  }
}

// Columns with 2, 3 and 2 cells have one code of 4 bits; one more column would take as many bits as alone.
TEST_F(ColumnGroupsFileTest, ColumnsOfFewCellsShareACode) {
  ASSERT_TRUE(Write(ColumnsOfEveryKind(5000, 3), "m", ByGroups()).ok());
  const BinaryFile file = Opened("m");
  std::vector<std::vector<int32_t>> with_codes;
  for (const ColumnGroup& group : file.coding()->groups().groups)
    if (group.encoding == Encoding::kDenseCodes) with_codes.push_back(group.columns);
  const std::vector<std::vector<int32_t>> expected = {{1, 3, 14}, {4}, {5}, {11}, {15}};
  EXPECT_EQ(with_codes, expected);
}

TEST_F(ColumnGroupsFileTest, InspectNamesTheGroups) {
  ASSERT_TRUE(Write(ColumnsOfEveryKind(5000, 3), "m", ByGroups()).ok());
  const Result<FileFacts> facts = InspectFile("m", {}, *files_);
  ASSERT_TRUE(facts.ok()) << facts.status().ToString();
  EXPECT_NE(facts->column_groups.find("7 columns in 5 groups DDC"), std::string::npos)
      << facts->column_groups;
  EXPECT_EQ(facts->rows_looked_at, 5000);
  EXPECT_EQ(facts->facts[5].greatest, 199);
}

TEST_F(ColumnGroupsFileTest, AnyRowsAreRead) {
  const Matrix matrix = ColumnsOfEveryKind(70'001, 5);
  ASSERT_TRUE(Write(matrix, "m", ByGroups()).ok());
  const int64_t of_block = Opened("m").rows_of_block();
  std::mt19937_64 random(1);
  const auto row = [&] { return static_cast<int64_t>(random() % 70'002); };
  std::vector<std::pair<int64_t, int64_t>> ranges = {
      {0, 0},          {1, 2}, {70'000, 70'001}, {of_block - 1, of_block + 1}, {of_block, 2 * of_block},
      {65'535, 65'537}};
  for (int i = 0; i < 20; ++i) {
    const int64_t a = row(), b = row();
    ranges.emplace_back(std::min(a, b), std::max(a, b));
  }
  for (const auto& [begin, end] : ranges) {
    SCOPED_TRACE(::testing::Message() << begin << " to " << end);
    const Result<Matrix> rows = RowsAs("m", begin, end);
    ASSERT_TRUE(rows.ok()) << rows.status().ToString();
    EXPECT_EQ(rows->IsCompressed(), begin < end);
    ExpectSameBits(*rows, matrix.Rows(begin, end));
  }
}

TEST_F(ColumnGroupsFileTest, ManyWritersMakeTheBytesOfOne) {
  std::mt19937_64 random(7);
  const Matrix every_kind = ColumnsOfEveryKind(20'000, 9);
  Matrix few = *FilledMatrix(9000, 40, 0);
  for (int64_t i = 0; i < 9000; ++i) few.mutable_data()[i * 40 + i * i % 40] = static_cast<double>(i % 3);
  Matrix floats = *ToElementType(every_kind, ElementType::kFloat32);
  const std::vector<Value> values = {Value(every_kind), Value(*ToSparse(few)), Value(floats),
                                     Value(SomeCells(10, 4)), Value(*FilledMatrix(5, 70'000, 2.5))};
  for (int round = 0; round < 25; ++round) {
    const Value& value = values[random() % values.size()];
    const int64_t rows = value.shape().rows;
    std::vector<int64_t> cuts = {0, rows};
    for (auto more = random() % 5; more > 0; --more)
      cuts.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(rows + 1)));
    std::sort(cuts.begin(), cuts.end());
    SCOPED_TRACE(::testing::Message() << "round " << round << ", " << ::testing::PrintToString(cuts));
    ExpectSameFiles(value, cuts, ByGroups(static_cast<int64_t>(random() % 4)));
  }
}

TEST_F(ColumnGroupsFileTest, BytesDependOnCellsAlone) {
  Matrix matrix = ColumnsOfEveryKind(20'000, 11);
  ASSERT_TRUE(Write(matrix, "m", ByGroups()).ok());
  const std::string bytes = Get("m");
  // Rows that come a few at a time.
  for (const int64_t at_once : {1000, 1001, 19'999}) {
    const PiecedValue pieces = {
        .shape = matrix.shape(),
        .rows_at_once = at_once,
        .read = [&](int64_t begin, int64_t end) -> Result<Value> { return Value(matrix.Rows(begin, end)); }};
    ASSERT_TRUE(WritePieces(pieces, "m", ByGroups(), *files_).ok());
    EXPECT_EQ(Get("m"), bytes) << at_once;
  }
  // Which NaN a plan has made, and how cells are stored; a sparse matrix has no zeros with a sign.
  for (int64_t k = 0; k < matrix.cells(); ++k) {
    double& cell = matrix.mutable_data()[k];
    if (std::isnan(cell)) cell = std::bit_cast<double>(0xfff8000000000abcu);
    if (cell == 0) cell = 0;
  }
  ASSERT_TRUE(Write(matrix, "m", ByGroups()).ok());
  const std::string without_signs = Get("m");
  ASSERT_TRUE(Write(*ToSparse(matrix), "m", ByGroups()).ok());
  EXPECT_EQ(Get("m"), without_signs);
}

// A compressed matrix that has no room decoded is written all the same, with the bytes of its cells.
TEST_F(ColumnGroupsFileTest, CompressedMatricesAreWrittenAFewRowsAtATime) {
  const Matrix matrix = ColumnsOfEveryKind(300'000, 13);
  ASSERT_TRUE(Write(matrix, "dense", ByGroups()).ok());
  const Matrix compressed = *RowsAs("dense", 0, matrix.rows());
  ASSERT_TRUE(compressed.IsCompressed());
  for (const char* const format : {"binary", "csv"}) {
    const bool by_groups = format[0] == 'b';
    WriteOptions options = {.format = *ParseFileFormat(format)};
    options.by_groups = by_groups;
    ASSERT_TRUE(Write(matrix, "dense", options).ok());
    testing::Attributes attributes = {{"format", Scalar(format)}};
    if (by_groups) attributes.emplace_back("compression", Scalar("groups"));
    testing::Invocation call("write", {Value(compressed), Value(Scalar("compressed"))}, attributes);
    call.context.files = files_.get();
    MemoryBudget& budget = MemoryBudget::Process();
    const int64_t limit = budget.limit();
    budget.SetLimit(budget.used() + matrix.bytes() / 2);
    const Status status = call.RunRows(0, 0, 0, /*threads=*/2).status();
    budget.SetLimit(limit);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(BytesOf("compressed") == BytesOf("dense")) << format;
  }
}

// Where rows come a few at a time, the cells of the columns are there once while they are counted, and then
// the dictionaries, their hash tables and the header: about five times 16 bytes of each different cell.
TEST_F(ColumnGroupsFileTest, CountedCellsAreHeldOnce) {
  if (!HeapIsCounted()) GTEST_SKIP() << "the heap is not counted here";
  constexpr int64_t kRows = 180'000, kColumns = 16, kDifferent = 40'000;
  Matrix matrix = *Matrix::Dense(kRows, kColumns);
  for (int64_t k = 0; k < matrix.cells(); ++k)
    matrix.mutable_data()[k] = static_cast<double>(k / kColumns * 7 % kDifferent);
  const PiecedValue pieces = {
      .shape = matrix.shape(),
      .rows_at_once = 5000,
      .read = [&](int64_t begin, int64_t end) -> Result<Value> { return Value(matrix.Rows(begin, end)); }};
  BlockPool::Process().Trim();
  // The first bytes of the heap are free.
  const std::unique_ptr<char[]> allowance(new char[MemoryBudget::kHeapAllowance]);
  MemoryBudget& budget = MemoryBudget::Process();
  const int64_t limit = budget.limit();
  budget.SetLimit(budget.used() + 5 * 16 * kColumns * kDifferent);
  const Status status = WithinMemory("write", [&] { return WritePieces(pieces, "m", ByGroups(), *files_); });
  budget.SetLimit(limit);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_NE(Opened("m").coding(), nullptr);
}

// A dictionary in which most cells stand once saves little, and who reads the file would look all of it up.
TEST_F(ColumnGroupsFileTest, CellsThatAreNearlyAllDifferentHaveNoCodes) {
  Matrix matrix = *Matrix::Dense(20'000, 2);
  for (int64_t i = 0; i < 20'000; ++i) {
    matrix.mutable_data()[2 * i] = static_cast<double>(i % 6000) / 7;
    matrix.mutable_data()[2 * i + 1] = static_cast<double>(i % 4000) / 7;
  }
  ASSERT_TRUE(Write(matrix, "m", ByGroups()).ok());
  const BinaryFile file = Opened("m");
  ASSERT_NE(file.coding(), nullptr);
  const std::vector<ColumnGroup>& groups = file.coding()->groups().groups;
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].encoding, Encoding::kUncompressed);
  EXPECT_EQ(groups[1].encoding, Encoding::kDenseCodes);
}

TEST_F(ColumnGroupsFileTest, WhatSavesNothingIsWrittenAsItIs) {
  std::mt19937_64 numbers(5);
  Matrix any = *Matrix::Dense(1000, 8);
  for (int64_t k = 0; k < any.cells(); ++k) any.mutable_data()[k] = static_cast<double>(numbers()) / 7;
  for (const Matrix& matrix : {any, *Matrix::Dense(0, 3), *Matrix::Dense(3, 0), Make(1, 2, {1, 2})}) {
    ASSERT_TRUE(Write(matrix, "m", ByGroups()).ok());
    const std::string bytes = Get("m");
    ASSERT_TRUE(Write(matrix, "m", {.format = FileFormat::kBinary}).ok());
    EXPECT_EQ(Get("m"), bytes);
  }
}

// A matrix comes by groups where who reads it knows them and it fits in no cache; else as its format says.
TEST_F(ColumnGroupsFileTest, WhatFitsInACacheIsDecoded) {
  const auto storage_of = [&](const Matrix& matrix, bool by_groups) {
    EXPECT_TRUE(Write(matrix, "m", ByGroups()).ok());
    EXPECT_NE(Opened("m").coding(), nullptr);
    ReadOptions options = *ResolveReadOptions(Node(), "m", *files_);
    options.by_groups = by_groups;
    const FileSummary summary = *Summarize(options, *files_);
    EXPECT_NE(summary.column_groups.find("1 column in 1 group RLE"), std::string::npos)
        << summary.column_groups;
    return ReadRows(options, summary, 0, matrix.rows(), *files_)->storage();
  };
  const Matrix large = ColumnsOfEveryKind(SecondLevelCacheBytes() / 64, 3);
  EXPECT_EQ(storage_of(large, true), Storage::kColumnGroups);
  EXPECT_EQ(storage_of(large, false), Storage::kDense);
  EXPECT_EQ(storage_of(large.Rows(0, 3000), true), Storage::kDense);
  Matrix zeros = *FilledMatrix(1000, 20, 0);
  for (int64_t i = 0; i < 1000; ++i) zeros.mutable_data()[i * 20] = std::floor(static_cast<double>(i) / 300);
  EXPECT_EQ(storage_of(zeros, true), Storage::kCsr);
}

// A zero with a sign of a sparse matrix is a cell that is stored: groups, of which operators make CSR without
// zeros, would lose it.
TEST_F(ColumnGroupsFileTest, SignedZerosOfSparseMatricesAreKept) {
  Matrix matrix = *FilledMatrix(60'000, 20, 0);
  for (int64_t i = 0; i < matrix.rows(); ++i) matrix.mutable_data()[i * 20] = static_cast<double>(i % 4);
  ASSERT_TRUE(Write(matrix, "m", ByGroups()).ok());
  EXPECT_NE(Opened("m").coding(), nullptr);
  matrix.mutable_data()[30'000 * 20 + 7] = -0.0;
  ASSERT_TRUE(Write(matrix, "m", ByGroups()).ok());
  EXPECT_EQ(Opened("m").coding(), nullptr);
  ExpectSameBits(*Read("m"), matrix);
  // The first file of three is dense and has groups; the matrix is sparse as a whole.
  for (int64_t i = 0; i < 20'000; ++i) std::fill_n(matrix.mutable_data() + i * 20, 12, 1.0);
  matrix.mutable_data()[7] = -0.0;
  ASSERT_TRUE(Write(matrix, "m", ByGroups(3)).ok());
  EXPECT_NE(Opened("m/part-00000.bin").coding(), nullptr);
  EXPECT_TRUE(Read("m")->IsSparse());
  ExpectSameBits(*Read("m"), matrix);
}

TEST_F(ColumnGroupsFileTest, FoldersOfFilesAreOneMatrix) {
  const Matrix matrix = ColumnsOfEveryKind(40'000, 3);
  ASSERT_TRUE(Write(matrix, "m", ByGroups(3)).ok());
  const Result<Matrix> back = Read("m");
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  ExpectSameBits(*back, matrix);
}

// Every byte is under a checksum, and no beginning of a file is a file.
TEST_F(ColumnGroupsFileTest, EveryChangedByteAndEveryCutIsFound) {
  ASSERT_TRUE(Write(ColumnsOfEveryKind(70, 3), "m", ByGroups()).ok());
  const std::string bytes = Get("m");
  ASSERT_NE(Opened("m").coding(), nullptr);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ (1 << i % 8));
    Put("m", changed);
    EXPECT_EQ(Read("m").status().code(), StatusCode::kDataLoss) << "byte " << i;
    Put("m", bytes.substr(0, i));
    EXPECT_EQ(Read("m").status().code(), StatusCode::kDataLoss) << "cut at " << i;
  }
}

// Of changed bytes under right checksums, those of codes and cells are other cells, and all else is refused:
// what is read is always a matrix.
TEST_F(ColumnGroupsFileTest, SealedChangesAreRefusedOrAMatrix) {
  std::mt19937_64 random(11);
  ASSERT_TRUE(Write(ColumnsOfEveryKind(9000, 3), "m", ByGroups()).ok());
  const std::string bytes = Get("m");
  std::filesystem::remove(directory_ + "/m.mtd");
  const BinaryFile file = Opened("m");
  const auto header_end = static_cast<size_t>(file.Block(0).offset);
  const size_t index = bytes.size() - kEndBytes - static_cast<size_t>(file.BlocksUpTo(9000)) * kEntryBytes;
  int refused = 0, read = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string changed = bytes;
    for (uint64_t k = 0; k <= random() % 3; ++k) {
      // As often in the header, in the index and its end, at the beginning of a block, anywhere.
      const uint64_t where = random() % 4, drawn = random();
      const size_t at = where == 0   ? drawn % header_end
                        : where == 1 ? index + drawn % (bytes.size() - index)
                        : where == 2 ? static_cast<size_t>(file.Block(0).bytes) * 9 / 10 + drawn % 2000
                                     : drawn % bytes.size();
      changed[at] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    }
    Seal(&changed);
    Put("m", changed);
    const Result<Matrix> rows = RowsAs("m", 4000, 9000);  // Verifies it.
    rows.ok() ? ++read : ++refused;
    ASSERT_TRUE(rows.ok() || rows.status().code() == StatusCode::kResourceExhausted ||
                (rows.status().code() == StatusCode::kDataLoss &&
                 rows.status().message().starts_with("cannot read 'm': ")))
        << rows.status().ToString();
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(read, 100);
}

// One column of each kind, so that places in the only block are known.
class LyingFileTest : public ColumnGroupsFileTest {
 protected:
  static constexpr int64_t kRows = 2000;

  void Write(const std::function<double(int64_t)>& cell) {
    Matrix matrix = *Matrix::Dense(kRows, 1);
    for (int64_t i = 0; i < kRows; ++i) matrix.mutable_data()[i] = cell(i);
    ASSERT_TRUE(WriteValue(matrix, "m", ByGroups(), *files_).ok());
    bytes_ = Get("m");
    block_ = static_cast<size_t>(Opened("m").Block(0).offset);
  }
  template <typename T>
  std::string FaultOf(size_t at, T value) {
    std::string changed = bytes_;
    std::memcpy(changed.data() + at, &value, sizeof(value));
    Seal(&changed);
    Put("m", changed);
    return Fault("m");
  }
  std::string bytes_;
  size_t block_ = 0;
};

TEST_F(LyingFileTest, CodesBeyondTheDictionaryAreRefused) {
  Write([](int64_t i) { return static_cast<double>(i * 7 % 5); });
  ASSERT_EQ(Opened("m").coding()->groups().groups[0].encoding, Encoding::kDenseCodes);
  EXPECT_EQ(FaultOf(block_ + 17, uint8_t{0x41}), "it is read");
  const std::string fault =
      "cannot read 'm': rows 1 to 2000: what is stored of a column group has a code beyond its dictionary";
  EXPECT_EQ(FaultOf(block_ + 17, uint8_t{0x51}), fault);
  EXPECT_EQ(FaultOf(block_ + 17, uint8_t{0x1f}), fault);
  EXPECT_EQ(FaultOf(13, uint8_t{2}),
            "cannot read 'm': its blocks are compressed in a way that this Heddle does not know");
  EXPECT_EQ(FaultOf(32, uint16_t{3}), "cannot read 'm': its header is damaged");  // rows of a block
  // How long the groups are, and how many: more than there can be.
  EXPECT_EQ(FaultOf(kHeaderBytes, uint64_t{1} << 62), "cannot read 'm': its column groups are damaged");
  EXPECT_EQ(FaultOf(kHeaderBytes + 24, uint64_t{1} << 60), "cannot read 'm': its column groups are damaged");
  // Its columns: other than those of the file.
  EXPECT_EQ(FaultOf(kHeaderBytes + 16, uint64_t{2}), "cannot read 'm': its column groups are damaged");
}

// What stands in the header, under a right checksum, and in the index: encodings, codes and dictionaries that
// there are not, sizes that nothing could hold, and sums that are none.
TEST_F(LyingFileTest, HeadersAndIndexesThatLieAreRefused) {
  Write([](int64_t i) { return static_cast<double>(i * 7 % 5); });
  const std::string damaged = "cannot read 'm': its column groups are damaged";
  constexpr size_t kRowsOfGroups = kHeaderBytes + 8, kGroup = kRowsOfGroups + 32;
  EXPECT_EQ(FaultOf(kRowsOfGroups, uint64_t{2000}), damaged);
  EXPECT_EQ(FaultOf(kRowsOfGroups, uint64_t{1} << 62), damaged);
  EXPECT_EQ(FaultOf(kRowsOfGroups + 16, uint64_t{0}), damaged);       // no group
  EXPECT_EQ(FaultOf(kRowsOfGroups + 24, uint64_t{1}), damaged);       // floats
  for (const uint32_t encoding : {0, 1, 3, 5, 6, 77})                 // its codes and tuples are of DDC
    EXPECT_EQ(FaultOf(kGroup, encoding), damaged) << encoding;
  EXPECT_EQ(FaultOf(kGroup, uint32_t{4}),                             // codes are no runs
            "cannot read 'm': rows 1 to 2000: what is stored of a column group has more codes than rows");
  for (const uint32_t bits : {0, 3, 5, 8, 16, 64})                    // other than five tuples need
    EXPECT_EQ(FaultOf(kGroup + 4, bits), damaged) << bits;
  constexpr uint64_t kSizes[] = {0, 2, uint64_t{1} << 31, uint64_t{1} << 61, ~uint64_t{0}};
  for (const uint64_t size : kSizes) {
    SCOPED_TRACE(size);
    EXPECT_EQ(FaultOf(kGroup + 8, size), damaged);                    // columns
    if (size != 0) {
      EXPECT_EQ(FaultOf(kGroup + 16, size), damaged);                 // codes
    }
    if (size != ~uint64_t{0}) {
      EXPECT_EQ(FaultOf(kGroup + 24, size), damaged);                 // shares the dictionary of a group
    }
    EXPECT_EQ(FaultOf(kGroup + 32, size), damaged);                   // tuples
    if (size != ~uint64_t{0}) {
      EXPECT_EQ(FaultOf(kGroup + 40, size), damaged);                 // entries of a sparse dictionary
    }
  }
  EXPECT_EQ(FaultOf(kGroup + 48, uint32_t{1}), damaged);              // a column that is not there
  EXPECT_EQ(FaultOf(kGroup + 48, ~uint32_t{0}), damaged);
  EXPECT_EQ(FaultOf(kGroup + 56, 8.5), "it is read");                 // a cell of the dictionary
  // The only block and its entry of the index: where it begins, its bytes, its cells, its layout.
  const size_t index = bytes_.size() - kEndBytes - kEntryBytes;
  const std::string of_block = "cannot read 'm': rows 1 to 2000: the index does not agree with itself";
  for (const uint64_t wrong : {uint64_t{0}, uint64_t{1} << 40, ~uint64_t{0}}) {
    EXPECT_EQ(FaultOf(index, wrong), of_block) << wrong;
    EXPECT_EQ(FaultOf(index + 8, wrong), of_block) << wrong;
  }
  EXPECT_EQ(FaultOf(index + 16, uint64_t{2001}), of_block);
  EXPECT_EQ(FaultOf(index + 16, uint64_t{1999}), "cannot read 'm': the index does not agree with itself");
  for (const uint32_t layout : {0, 3, 4, 7, 99}) EXPECT_EQ(FaultOf(index + 24, layout), of_block) << layout;
  // Rows: more than the blocks have, and so many that no index names their blocks.
  EXPECT_EQ(FaultOf(16, uint64_t{2002}),
            "cannot read 'm': rows 1 to 2002: the index does not agree with itself");
  EXPECT_EQ(FaultOf(16, uint64_t{1} << 40),
            "cannot read 'm': it is cut off, or its index is damaged\nthe index stands at the end of the file");
  EXPECT_EQ(FaultOf(16, uint64_t{1} << 55), "cannot read 'm': its header is damaged");
}

TEST_F(LyingFileTest, RunsOutOfOrderAreRefused) {
  Write([](int64_t i) { return std::floor(static_cast<double>(i) / 100); });
  ASSERT_EQ(Opened("m").coding()->groups().groups[0].encoding, Encoding::kRuns);
  const size_t rows = block_ + 8, codes = rows + 40;  // Of 20 runs.
  EXPECT_EQ(FaultOf(rows + 2, uint16_t{101}), "it is read");
  const std::string place = "cannot read 'm': rows 1 to 2000: what is stored of a column group ";
  EXPECT_EQ(FaultOf(rows + 2, uint16_t{200}), place + "has rows out of order");
  EXPECT_EQ(FaultOf(rows + 38, uint16_t{2000}), place + "has rows out of order");
  EXPECT_EQ(FaultOf(rows, uint16_t{1}), place + "has rows without a run");
  EXPECT_EQ(FaultOf(codes, uint8_t{20}), place + "has a code beyond its dictionary");
  EXPECT_EQ(FaultOf(block_, uint64_t{0}), place + "has rows without a run");
  EXPECT_EQ(FaultOf(block_, uint64_t{100}), place + "is cut off");
  EXPECT_EQ(FaultOf(block_, uint64_t{1} << 63 | 20), place + "has more codes than rows");
}

TEST_F(LyingFileTest, ExceptionsOutOfOrderAreRefused) {
  Write([](int64_t i) { return i % 100 == 3 ? 2.0 : 7.0; });
  ASSERT_EQ(Opened("m").coding()->groups().groups[0].encoding, Encoding::kDefault);
  const size_t rows = block_ + 8;
  const std::string place = "cannot read 'm': rows 1 to 2000: what is stored of a column group ";
  EXPECT_EQ(FaultOf(rows + 2, uint16_t{104}), "it is read");
  EXPECT_EQ(FaultOf(rows + 2, uint16_t{3}), place + "has rows out of order");
  EXPECT_EQ(FaultOf(rows + 38, uint16_t{2000}), place + "has rows out of order");
  EXPECT_EQ(FaultOf(block_, uint64_t{0}), place + "has bytes behind it");
  EXPECT_EQ(FaultOf(block_, uint64_t{2001}), place + "has more codes than rows");
}

TEST_F(ColumnGroupsFileTest, OptionsThatContradictAreRefused) {
  EXPECT_EQ(WriteValue(SomeTexts(3, {}), "f", ByGroups(), *files_).ToString(),
            "write: compression=\"groups\" is of matrices, this is a frame");
}

}  // namespace
}  // namespace heddle::ops
