// SPDX-License-Identifier: Apache-2.0
// Binary files: what is written reads back bit for bit, and what is damaged or foreign is refused.
#include <bit>
#include <cmath>
#include <cstring>

#include "core/environment/random.h"
#include "ops/io/checksums/crc32c.h"
#include "ops/io/formats/binary/binary_file.h"
#include "ops/io/formats/binary/binary_layout.h"
#include "tests/support/frames.h"
#include "tests/unit/ops/io/formats/cells.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"
#include "tests/unit/ops/io/formats/sealed_file.h"

namespace heddle::ops {
namespace {

const WriteOptions kBinary = {.format = FileFormat::kBinary};

class BinaryTest : public FormatsTest {
 protected:
  std::string FrameFault(const std::string& name,
                         std::vector<std::pair<std::string, Scalar>> attributes = {}) {
    const Result<Frame> frame = ReadFrame(name, std::move(attributes));
    return frame.ok() ? "it is read" : frame.status().ToString();
  }
  // Writes and reads; compares bits, so that -0.0 is not 0.0.
  void ExpectSurvives(const Matrix& matrix) {
    ASSERT_TRUE(Write(matrix, "m", kBinary).ok());
    const Result<Matrix> back = Read("m");
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_EQ(back->element_type(), ElementType::kFloat64);
    ExpectSameBits(*back, matrix);
  }
};

TEST_F(BinaryTest, MatricesOfEveryShapeSurviveBitForBit) {
  SeededRandom random(7);
  for (const auto& [rows, columns] : kShapes)
    for (const double density : {0.0, 0.001, 0.1, 0.35, 0.6, 1.0}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", " << density);
      ExpectSurvives(RandomCells(rows, columns, density, &random));
    }
}

// A sparse matrix whose last rows are dense: blocks of both layouts, and rows of both kinds of result.
TEST_F(BinaryTest, BlocksOfBothLayoutsMakeOneMatrix) {
  Matrix matrix = *FilledMatrix(4000, 100, 0);
  for (int64_t i = 0; i < 4000; ++i)
    for (int64_t j = 0; j < 100; ++j)
      if (i >= 3000 || j == i % 100) matrix.mutable_data()[i * 100 + j] = static_cast<double>(i + j);
  ExpectSurvives(matrix);
  EXPECT_TRUE(Read("m")->IsSparse());
  for (int64_t i = 2000; i < 3000; ++i) std::fill_n(matrix.mutable_data() + i * 100, 100, 2.5);
  ExpectSurvives(matrix);
  EXPECT_FALSE(Read("m")->IsSparse());
}

TEST_F(BinaryTest, BytesDependOnCellsAlone) {
  SeededRandom random(3);
  for (const double density : {0.01, 0.9}) {
    Matrix dense = RandomCells(600, 70, density, &random);
    // A sparse matrix has no zeros with a sign.
    for (int64_t k = 0; k < dense.cells(); ++k)
      if (dense.data()[k] == 0) dense.mutable_data()[k] = 0;
    ASSERT_TRUE(Write(dense, "m", kBinary).ok());
    const std::string bytes = Get("m");
    ASSERT_TRUE(Write(*ToSparse(dense), "m", kBinary).ok());
    EXPECT_EQ(Get("m"), bytes);
    // Nor does it matter which NaN a plan has made.
    for (int64_t k = 0; k < dense.cells(); ++k)
      if (std::isnan(dense.data()[k])) dense.mutable_data()[k] = std::bit_cast<double>(0xfff8000000000abcu);
    ASSERT_TRUE(Write(dense, "m", kBinary).ok());
    EXPECT_EQ(Get("m"), bytes);
  }
}

TEST_F(BinaryTest, FloatsTakeHalfTheBytes) {
  Matrix floats = *Matrix::Dense(3, 2, ElementType::kFloat32);
  const float cells[] = {1.5f, -0.0f, 0.1f, std::numeric_limits<float>::denorm_min(), -1e30f, 7};
  std::copy(std::begin(cells), std::end(cells), floats.mutable_data<float>());
  ExpectSurvives(floats);
  EXPECT_EQ(Get("m").size(), static_cast<size_t>(kHeaderBytes + 6 * 4 + kEntryBytes + kEndBytes));
  ExpectSurvives(*ToSparse(floats));
}

TEST_F(BinaryTest, FramesSurvive) {
  for (const int64_t rows : {0, 1, 7, 100, 50'000})
    for (const bool may_miss : {true, false}) {
      SCOPED_TRACE(testing::Message() << rows << " " << may_miss);
      const Frame frame = NumberedFrame(rows, 3, may_miss);
      ASSERT_TRUE(WriteValue(frame, "f", kBinary, *files_).ok());
      const Result<Frame> back = ReadFrame("f");
      ASSERT_TRUE(back.ok()) << back.status().ToString();
      EXPECT_TRUE(Frame::SameCells(*back, frame));
      EXPECT_EQ(*back->schema(), *frame.schema());
      // A view has the bytes of its cells, not of what it was cut from.
      const std::string bytes = Get("f");
      ASSERT_TRUE(
          WriteValue(NumberedFrame(rows + 9, 0, may_miss).Rows(3, 3 + rows), "f", kBinary, *files_).ok());
      EXPECT_EQ(Get("f"), bytes);
    }
}

TEST_F(BinaryTest, TextsMayHoldAnything) {
  const std::vector<std::string_view> texts = {"",
                                               " ",
                                               "a,b",
                                               "\"quoted\"",
                                               "line\nend",
                                               "carriage\r\nreturn",
                                               "\t",
                                               "\u00e4\u4e2d\U0001f600",
                                               "null",
                                               "#Meta",
                                               std::string_view("zero\0byte", 9),
                                               "\xff\xfe no UTF-8"};
  auto schema = std::make_shared<Schema>();
  schema->types = {ColumnType::kString};
  schema->names = {"a name, with \"all\"\nof that"};
  const Frame frame(schema, {*Column::OfTexts(texts)});
  ASSERT_TRUE(WriteValue(frame, "f", kBinary, *files_).ok());
  const Result<Frame> back = ReadFrame("f");
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_TRUE(Frame::SameCells(*back, frame));
  EXPECT_EQ(*back->schema(), *schema);
}

TEST_F(BinaryTest, BytesAreThoseOfTheDocumentation) {
  ASSERT_TRUE(Write(Make(1, 2, {1, 0}), "m", kBinary).ok());
  const std::string bytes = Get("m");
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  EXPECT_EQ(hex,
            "8948444c0d0a1a0a"
            "01000000"
            "01"
            "00"
            "0000"
            "0100000000000000"
            "0200000000000000"
            "0100000000000000"
            "0000000000000000"
            "000000000000000000000000"
            "758d0e5e"
            "000000000000f03f"
            "0000000000000000"
            "4000000000000000"
            "1000000000000000"
            "0100000000000000"
            "00000000"
            "65c05d76"
            "5000000000000000"
            "0100000000000000"
            "00000000"
            "041ccc5c"
            "48444c656e640d0a");
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);  // the check value of the polynomial
  EXPECT_EQ(Crc32c("6789", Crc32c("12345")), 0xe3069283u);
  EXPECT_EQ(
      Get("m.mtd"),
      "{\n    \"data_type\": \"matrix\",\n    \"value_type\": \"double\",\n    \"rows\": 1,\n    \"cols\": 2,\n    \"nnz\": 1,\n"
      "    \"format\": \"binary\"\n}\n");
}

TEST_F(BinaryTest, FoundWithoutMetadata) {
  ASSERT_TRUE(Write(Make(2, 2, {1, 2, 3, 4}), "m", kBinary).ok());
  std::filesystem::remove(directory_ + "/m.mtd");
  ExpectCells(Read("m"), 2, 2, {1, 2, 3, 4});
  ASSERT_TRUE(WriteValue(NumberedFrame(5), "f", kBinary, *files_).ok());
  std::filesystem::remove(directory_ + "/f.mtd");
  EXPECT_TRUE(Frame::SameCells(*ReadFrame("f"), NumberedFrame(5)));
}

TEST_F(BinaryTest, WhatIsNoBinaryFileIsNamed) {
  Put("s", "SEQ\x06!org.apache.hadoop.io.LongWritable");
  const std::string systemds =
      "cannot read 's': it is a binary file of SystemDS, which Heddle does not read\n"
      "let SystemDS write it as format=\"csv\" or format=\"text\"";
  EXPECT_EQ(Fault("s", {{"format", "binary"}}), systemds);
  EXPECT_EQ(Fault("s"), systemds);
  EXPECT_EQ(FrameFault("s"), systemds);
  std::filesystem::create_directory(directory_ + "/folder");
  Put("folder/0-m-00000", "SEQ\x06!org.apache.hadoop.io.LongWritable");
  EXPECT_EQ(Fault("folder", {{"format", "binary"}}),
            "cannot read 'folder/0-m-00000': it is a binary file of SystemDS, which Heddle does not read\n"
            "let SystemDS write it as format=\"csv\" or format=\"text\"");
  Put("folder/0-m-00000", "1,2\n");
  EXPECT_EQ(Fault("folder", {{"format", "binary"}}),
            "cannot read 'folder/0-m-00000': it is no binary file of Heddle\n"
            "format= says what it is: csv, text, mm or libsvm");
  Put("t", "1,2\n");
  EXPECT_EQ(
      Fault("t", {{"format", "binary"}}),
      "cannot read 't': it is no binary file of Heddle\nformat= says what it is: csv, text, mm or libsvm");
  Put("e", "");
  EXPECT_EQ(
      Fault("e", {{"format", "binary"}}),
      "cannot read 'e': it is no binary file of Heddle\nformat= says what it is: csv, text, mm or libsvm");
  EXPECT_EQ(Fault("none", {{"format", "binary"}}), "cannot read 'none': no such file");
}

TEST_F(BinaryTest, WhatIsAskedForMustBeThere) {
  ASSERT_TRUE(Write(Make(2, 2, {1, 2, 3, 4}), "m", kBinary).ok());
  ASSERT_TRUE(WriteValue(NumberedFrame(5), "f", kBinary, *files_).ok());
  std::filesystem::remove(directory_ + "/m.mtd");
  std::filesystem::remove(directory_ + "/f.mtd");
  EXPECT_EQ(Fault("m", {{"rows", 3}}), "cannot read 'm': rows=3 was asked for, the file has 2");
  EXPECT_EQ(Fault("m", {{"cols", 1}}), "cannot read 'm': cols=1 was asked for, the file has 2");
  EXPECT_EQ(Fault("f"), "cannot read 'f': it holds a frame, not a matrix\nsay data_type=\"frame\"");
  EXPECT_EQ(
      FrameFault("m"),
      "cannot read 'm': it holds a matrix, not a frame\nread it as a matrix; as.frame() makes a frame of it");
  EXPECT_EQ(
      FrameFault("f", {{"schema", "string"}}),
      "cannot read 'f': its columns have the types STRING, FP64, FP32, INT64, INT32, BOOLEAN, CHARACTER, "
      "the schema says others");
}

TEST_F(BinaryTest, DamageIsNamed) {
  ASSERT_TRUE(Write(*FilledMatrix(5, 3, 1.5), "m", kBinary).ok());
  const std::string bytes = Get("m");
  const auto fault_at = [&](size_t offset, const std::string& replacement) {
    std::string changed = bytes;
    changed.replace(offset, replacement.size(), replacement);
    Put("m", changed);
    return Fault("m");
  };
  EXPECT_EQ(fault_at(4, "\n\x1a\n"),
            "cannot read 'm': its line ends were changed, as when a binary file is copied as text");
  EXPECT_EQ(fault_at(8, "\x02"),
            "cannot read 'm': it is a binary file of version 2, this Heddle reads version 1\n"
            "a newer Heddle reads it, and writes it in another format");
  EXPECT_EQ(fault_at(16, "\x07"), "cannot read 'm': its header is damaged");
  EXPECT_EQ(fault_at(70, "x"), "cannot read 'm': rows 1 to 5: they are damaged, their checksum is wrong");
  EXPECT_EQ(
      fault_at(bytes.size() - 40, "x"),
      "cannot read 'm': it is cut off, or its index is damaged\nthe index stands at the end of the file");
  Put("m", bytes.substr(0, 60));
  EXPECT_EQ(Fault("m"), "cannot read 'm': it is cut off behind 60 bytes");
}

// Every byte is under a checksum, and no beginning of a file is a file.
TEST_F(BinaryTest, EveryChangedByteAndEveryCutIsFound) {
  ASSERT_TRUE(Write(Make(3, 4, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0}), "m", kBinary).ok());
  ASSERT_TRUE(WriteValue(NumberedFrame(3), "f", kBinary, *files_).ok());
  for (const char* name : {"m", "f"}) {
    const std::string bytes = Get(name);
    const auto is_refused = [&] {
      const bool frame = name[0] == 'f';
      const Status status = frame ? ReadFrame(name).status() : Read(name).status();
      return status.code() == StatusCode::kDataLoss;
    };
    for (size_t i = 0; i < bytes.size(); ++i) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << i % 8));
      Put(name, changed);
      EXPECT_TRUE(is_refused()) << name << ", byte " << i;
      Put(name, bytes.substr(0, i));
      EXPECT_TRUE(is_refused()) << name << ", cut at " << i;
    }
    Put(name, bytes + "x");
    EXPECT_TRUE(is_refused()) << name;
  }
}

TEST_F(BinaryTest, ContentThatIsNoneIsRefusedUnderRightChecksums) {
  // Two entries: values at 64, columns at 80, ends of rows at 88.
  ASSERT_TRUE(Write(Make(2, 9, {0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}), "m", kBinary).ok());
  const std::string bytes = Get("m");
  const auto fault_at = [&](size_t offset, uint32_t value) {
    std::string changed = bytes;
    std::memcpy(changed.data() + offset, &value, sizeof(value));
    Seal(&changed);
    Put("m", changed);
    return Fault("m");
  };
  EXPECT_EQ(fault_at(64, 0), "it is read");
  EXPECT_EQ(fault_at(80, 9), "cannot read 'm': rows 1 to 2: their columns are out of order");
  EXPECT_EQ(fault_at(80, 0xffffffff), "cannot read 'm': rows 1 to 2: their columns are out of order");
  EXPECT_EQ(fault_at(88, 3), "cannot read 'm': rows 1 to 2: their rows overlap");
  EXPECT_EQ(fault_at(92, 1), "cannot read 'm': rows 1 to 2: they have fewer cells than the index says");
  EXPECT_EQ(fault_at(22, 1), "cannot read 'm': its header is damaged");  // rows: 2^48 more
  EXPECT_EQ(
      fault_at(20, 1),  // rows: 2^32 more, each block of which would have an entry
      "cannot read 'm': it is cut off, or its index is damaged\nthe index stands at the end of the file");
  EXPECT_EQ(fault_at(13, 2),
            "cannot read 'm': its blocks are compressed in a way that this Heddle does not know");
  EXPECT_EQ(fault_at(bytes.size() - 24, 9), "cannot read 'm': the index does not agree with itself");
  EXPECT_EQ(fault_at(bytes.size() - 48, 9),
            "cannot read 'm': rows 1 to 2: the index does not agree with itself");
}

TEST_F(BinaryTest, ATypeThatNoColumnHasIsRefused) {
  ASSERT_TRUE(WriteValue(NumberedFrame(3), "f", kBinary, *files_).ok());
  std::string bytes = Get("f");
  bytes[kHeaderBytes + 1] = '\xff';
  Seal(&bytes);
  Put("f", bytes);
  EXPECT_EQ(FrameFault("f"), "cannot read 'f': its schema is damaged");
}

// The index of a sparse matrix says for how many entries room is made, also where a block is dense.
TEST_F(BinaryTest, ABlockWithMoreCellsThanTheIndexSaysIsRefused) {
  Matrix matrix = *FilledMatrix(4000, 100, 0);
  for (int64_t i = 0; i < 4000; ++i)
    for (int64_t j = 0; j < 100; ++j)
      if (i >= 3000 || j == i % 100) matrix.mutable_data()[i * 100 + j] = static_cast<double>(i + j + 1);
  ASSERT_TRUE(Write(matrix, "m", kBinary).ok());
  std::string bytes = Get("m");
  auto end = Load<BinaryEnd>(bytes.data() + bytes.size() - kEndBytes);
  int changed = 0;
  for (size_t at = end.index; at + kEntryBytes <= bytes.size() - kEndBytes; at += kEntryBytes) {
    auto entry = Load<BinaryEntry>(bytes.data() + at);
    if (static_cast<BlockLayout>(entry.layout) != BlockLayout::kDense64) continue;
    --entry.stored;
    --end.stored;
    ++changed;
    std::memcpy(bytes.data() + at, &entry, sizeof(entry));
  }
  ASSERT_GT(changed, 0);
  std::memcpy(bytes.data() + bytes.size() - kEndBytes, &end, sizeof(end));
  Seal(&bytes);
  Put("m", bytes);
  const std::string fault = Fault("m");
  EXPECT_TRUE(fault.ends_with(": they have more cells than the index says")) << fault;
}

TEST_F(BinaryTest, SealedChangesNeverCrash) {
  SeededRandom random(11);
  ASSERT_TRUE(Write(Make(3, 4, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0}), "m", kBinary).ok());
  ASSERT_TRUE(WriteValue(NumberedFrame(9), "f", kBinary, *files_).ok());
  for (const char* name : {"m", "f"}) {
    const std::string bytes = Get(name);
    std::filesystem::remove(directory_ + "/" + name + ".mtd");
    int refused = 0;
    for (int i = 0; i < 400; ++i) {
      std::string changed = bytes;
      for (uint64_t k = 0; k <= random.Next() % 3; ++k)
        changed[random.Next() % changed.size()] =
            static_cast<char>(random.Next() % 3 == 0 ? 0xff : random.Next());
      Seal(&changed);
      Put(name, changed);
      const Status status = name[0] == 'f' ? ReadFrame(name).status() : Read(name).status();
      refused += !status.ok();
      ASSERT_TRUE(status.ok() || status.code() == StatusCode::kDataLoss ||
                  status.code() == StatusCode::kResourceExhausted)
          << status.ToString();
    }
    EXPECT_GT(refused, 60) << name;
  }
}

}  // namespace
}  // namespace heddle::ops
