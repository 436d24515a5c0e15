// SPDX-License-Identifier: Apache-2.0
// Arrays of NumPy: every kind of cell, both orders, what is damaged, and archives of several.
#include "ops/io/formats/numpy/npy.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "core/environment/random.h"
#include "ops/io/formats/format_table.h"
#include "ops/io/formats/numpy/zip_file.h"
#include "tests/unit/ops/io/formats/cells.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

using std::string_literals::operator""s;

const WriteOptions kNpy = {.format = FileFormat::kNpy};

// As NumPy writes it: the header padded to a multiple of 64 bytes.
std::string Npy(const std::string& header, const std::string& cells, int version = 1) {
  std::string text = header;
  const size_t before = version == 1 ? 10 : 12;
  while ((before + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string bytes = "\x93NUMPY"s + static_cast<char>(version) + '\0';
  for (size_t i = 0; i < before - 8; ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 255);
  return bytes + text + cells;
}

std::string Header(const std::string& kind, bool fortran, const std::string& shape) {
  return "{'descr': '" + kind + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

template <typename T>
std::string Bytes(const std::vector<T>& cells, bool swapped = false) {
  std::string bytes;
  for (const T cell : cells) {
    std::string one(sizeof(T), '\0');
    std::memcpy(one.data(), &cell, sizeof(T));
    if (swapped) std::reverse(one.begin(), one.end());
    bytes += one;
  }
  return bytes;
}

class NpyTest : public FormatsTest {
 protected:
  template <typename T>
  void ExpectKind(const std::string& letter, const std::vector<T>& cells,
                  const std::vector<double>& expected) {
    for (const bool swapped : {false, true}) {
      SCOPED_TRACE(letter + (swapped ? " swapped" : ""));
      const std::string kind = (sizeof(T) == 1 ? "|" : swapped ? ">" : "<") + letter;
      Put("a.npy", Npy(Header(kind, false, "(2, 2)"), Bytes(cells, swapped)));
      const Result<Matrix> back = Read("a.npy");
      ASSERT_TRUE(back.ok()) << back.status().ToString();
      ExpectSameBits(*back, Make(2, 2, expected));
    }
  }
  std::string Fault(const std::string& bytes) {
    Put("a", bytes);
    return FormatsTest::Fault("a", {{"format", "npy"}});
  }
};

TEST_F(NpyTest, EveryKindOfCell) {
  ExpectKind<double>("f8", {1.5, -0.0, kInf, 5e-324}, {1.5, -0.0, kInf, 5e-324});
  ExpectKind<float>("f4", {0.1f, -0.0f, -1e30f, 1e-45f},
                    {double{0.1f}, -0.0, double{-1e30f}, double{1e-45f}});
  ExpectKind<int8_t>("i1", {-128, 127, 0, 1}, {-128, 127, 0, 1});
  ExpectKind<uint8_t>("u1", {255, 1, 0, 2}, {255, 1, 0, 2});
  ExpectKind<int16_t>("i2", {-300, 300, 0, 1}, {-300, 300, 0, 1});
  ExpectKind<uint16_t>("u2", {65535, 1, 0, 2}, {65535, 1, 0, 2});
  ExpectKind<int32_t>("i4", {INT32_MIN, 7, 0, 1}, {-2147483648.0, 7, 0, 1});
  ExpectKind<uint32_t>("u4", {UINT32_MAX, 7, 0, 1}, {4294967295.0, 7, 0, 1});
  ExpectKind<int64_t>("i8", {INT64_MIN, 1LL << 53, -1, 0}, {-0x1p63, 0x1p53, -1, 0});
  ExpectKind<uint64_t>("u8", {UINT64_MAX, 3, 0, 1}, {0x1p64, 3, 0, 1});
  ExpectKind<uint8_t>("b1", {1, 0, 1, 0}, {1, 0, 1, 0});
  // Halves: 1, -0, the smallest, infinity; then the largest, one third, -2, what is no number.
  ExpectKind<uint16_t>("f2", {0x3c00, 0x8000, 0x0001, 0x7c00}, {1, -0.0, 0x1p-24, kInf});
  ExpectKind<uint16_t>("f2", {0x7bff, 0x3555, 0xc000, 0x7e00}, {65504, 0.333251953125, -2, kNaN});
}

TEST_F(NpyTest, BothOrdersAndEveryNumberOfIndexes) {
  Put("c.npy", Npy(Header("<f8", false, "(2, 3)"), Bytes<double>({1, 2, 3, 4, 5, 6})));
  ExpectCells(Read("c.npy"), 2, 3, {1, 2, 3, 4, 5, 6});
  Put("f.npy", Npy(Header("<f8", true, "(2, 3)"), Bytes<double>({1, 4, 2, 5, 3, 6})));
  ExpectCells(Read("f.npy"), 2, 3, {1, 2, 3, 4, 5, 6});
  Put("zero.npy", Npy(Header("<f8", false, "()"), Bytes<double>({7})));
  ExpectCells(Read("zero.npy"), 1, 1, {7});
  Put("one.npy", Npy(Header("<f8", true, "(3,)"), Bytes<double>({7, 8, 9})));
  ExpectCells(Read("one.npy"), 3, 1, {7, 8, 9});
  // What follows the first index is columns, the last index fastest.
  std::vector<double> c_order, fortran_order(24);
  for (int k = 0; k < 24; ++k) c_order.push_back(k);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k)
        fortran_order[static_cast<size_t>(i + 2 * (j + 3 * k))] = i * 12 + j * 4 + k;
  Put("c.npy", Npy(Header("<f8", false, "(2, 3, 4)"), Bytes(c_order)));
  ExpectCells(Read("c.npy"), 2, 12, c_order);
  Put("f.npy", Npy(Header("<f8", true, "(2, 3, 4)"), Bytes(fortran_order)));
  ExpectCells(Read("f.npy"), 2, 12, c_order);
}

TEST_F(NpyTest, LargeArraysInFortranOrder) {
  SeededRandom random(5);
  const Matrix matrix = RandomCells(3000, 70, 0.7, &random);
  std::vector<double> columns;
  for (int64_t j = 0; j < 70; ++j)
    for (int64_t i = 0; i < 3000; ++i) columns.push_back(matrix.At(i, j));
  Put("f.npy", Npy(Header("<f8", true, "(3000, 70)"), Bytes(columns)));
  ExpectSameBits(*Read("f.npy"), matrix);
}

TEST_F(NpyTest, HeadersOfEveryVersionAndWriter) {
  const std::string cells = Bytes<double>({1, 2});
  for (const int version : {1, 2, 3}) {
    Put("a.npy", Npy(Header("<f8", false, "(1, 2)"), cells, version));
    ExpectCells(Read("a.npy"), 1, 2, {1, 2});
  }
  for (const char* header : {"{\"shape\":(1L,2L),\"fortran_order\":False,\"descr\":\"<f8\"}",
                             "{ 'fortran_order' : False , 'descr': '<f8', 'shape': ( 1 , 2 , ) }"}) {
    Put("a.npy", Npy(header, cells));
    ExpectCells(Read("a.npy"), 1, 2, {1, 2});
  }
}

TEST_F(NpyTest, WhatIsWrittenIsReadBitForBit) {
  SeededRandom random(7);
  for (const auto& [rows, columns] : kShapes)
    for (const double density : {0.0, 0.01, 0.6, 1.0}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", " << density);
      const Matrix matrix = RandomCells(rows, columns, density, &random);
      ASSERT_TRUE(Write(matrix, "m.npy", kNpy).ok());
      const Result<Matrix> back = Read("m.npy");  // sparse where the metadata say so
      ASSERT_TRUE(back.ok()) << back.status().ToString();
      ExpectSameBits(*back, matrix);
      const std::string bytes = Get("m.npy");
      EXPECT_EQ(bytes.size() % 8, 0u);
      std::filesystem::remove(directory_ + "/m.npy.mtd");
      ExpectSameBits(*Read("m.npy"), matrix);
      // The bytes are those of the cells, however they are stored; a sparse matrix has no zeros with a sign.
      Matrix plain = Make(rows, columns, {matrix.data(), matrix.data() + matrix.cells()});
      for (int64_t k = 0; k < plain.cells(); ++k)
        if (plain.data()[k] == 0) plain.mutable_data()[k] = 0;
      ASSERT_TRUE(Write(plain, "plain.npy", kNpy).ok());
      ASSERT_TRUE(Write(*ToSparse(plain), "sparse.npy", kNpy).ok());
      EXPECT_EQ(Get("plain.npy"), Get("sparse.npy"));
    }
}

TEST_F(NpyTest, BytesAreThoseOfNumPy) {
  ASSERT_TRUE(Write(Make(1, 2, {1, -2}), "m.npy", kNpy).ok());
  EXPECT_EQ(Get("m.npy"), Npy(Header("<f8", false, "(1, 2)"), Bytes<double>({1, -2})));
}

TEST_F(NpyTest, DamageIsNamed) {
  const std::string good = Npy(Header("<f8", false, "(1, 2)"), Bytes<double>({1, 2}));
  EXPECT_EQ(Fault("1,2\n"),
            "cannot read 'a': it is no npy file\n"
            "numpy.save() writes such a file; format= says what else it is");
  EXPECT_EQ(Fault(good.substr(0, 9)), "cannot read 'a': it is cut off inside of its header");
  EXPECT_EQ(Fault(good.substr(0, 60)), "cannot read 'a': it is cut off inside of its header");
  EXPECT_EQ(Fault(good.substr(0, good.size() - 1)),
            "cannot read 'a': it is cut off: its header says 16 bytes of cells, it has 15");
  EXPECT_EQ(Fault(good + "x"),
            "cannot read 'a': 1 bytes follow the array\n"
            "a file that Heddle reads holds one array; numpy.savez() writes several");
  std::string newer = good;
  newer[6] = 4;
  EXPECT_EQ(Fault(newer),
            "cannot read 'a': it is an npy file of version 4.0\nHeddle reads versions 1, 2 and 3");
  for (const char* header :
       {"{'descr': '<f8', 'fortran_order': False, }",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': (1, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1, -2), }", "{'descr", "", "{'other': '<f8'}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), } more"})
    EXPECT_EQ(Fault(Npy(header, Bytes<double>({1, 2}))), "cannot read 'a': its header is damaged") << header;
  for (const char* kind : {"<c16", "|O", "<U5", "|S8", "<M8[ns]", "<f16", "<i3", "f8"})
    EXPECT_EQ(Fault(Npy(Header(kind, false, "(1, 2)"), Bytes<double>({1, 2}))),
              "cannot read 'a': its cells have the type '"s + kind +
                  "'\nHeddle reads integers, booleans and floats of up to 8 bytes; array.astype(\"float64\") "
                  "makes such");
  EXPECT_EQ(
      Fault(Npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,), }", Bytes<double>({1, 2}))),
      "cannot read 'a': its cells are records of several fields\n"
      "save each field into a file of its own: numpy.save(\"FILE.npy\", array[\"FIELD\"])");
  EXPECT_EQ(Fault(Npy(Header("<f8", false, "(999999999999, 999999999999)"), "")),
            "cannot read 'a': it is larger than a matrix can be");
  EXPECT_EQ(Fault(Npy(Header("<f8", false, "(0, 999999999999)"), "")),
            "cannot read 'a': it is larger than a matrix can be");
  EXPECT_EQ(Fault(Npy(Header("<f8", false, "(1000000, 1000000)"), "")),
            "cannot read 'a': it is cut off: its header says 8000000000000 bytes of cells, it has 0");
  Put("a", good);
  EXPECT_EQ(FormatsTest::Fault("a", {{"rows", 3}}), "cannot read 'a': rows=3 was asked for, the file has 1");
  EXPECT_EQ(
      ReadFrame("a").status().ToString(),
      "read: no frame can be in format 'npy'\nformats of frames are " + NamesOfFormats(DataType::kFrame));
  std::filesystem::create_directory(directory_ + "/folder");
  EXPECT_EQ(FormatsTest::Fault("folder", {{"format", "npz"}}),
            "cannot read 'folder': it is a folder, in format npz a matrix is one file");
}

// An archive as NumPy's savez() writes it, made of stored members.
std::string Archive(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string bytes, directory;
  const auto append = [](uint64_t value, int count, std::string* out) {
    for (int i = 0; i < count; ++i) out->push_back(static_cast<char>(value >> (8 * i) & 255));
  };
  for (const auto& [name, content] : members) {
    const uint64_t begin = bytes.size();
    std::string common;
    append(45, 2, &common);
    append(0, 2, &common);
    append(0, 2, &common);
    append(0, 8, &common);  // time, day, checksum: which nobody looks at where members are stored
    append(0xffffffff, 4, &common);
    append(0xffffffff, 4, &common);
    append(name.size(), 2, &common);
    std::string sizes;
    append(1, 2, &sizes);
    append(16, 2, &sizes);
    append(content.size(), 8, &sizes);
    append(content.size(), 8, &sizes);
    bytes += "PK\x03\x04" + common;
    append(sizes.size(), 2, &bytes);
    bytes += name + sizes + content;
    directory += "PK\x01\x02"s + "\x2d\0"s + common;
    append(sizes.size(), 2, &directory);
    append(0, 14 - 4, &directory);
    append(begin, 4, &directory);
    directory += name + sizes;
  }
  std::string end = "PK\x05\x06";
  append(0, 4, &end);
  append(members.size(), 2, &end);
  append(members.size(), 2, &end);
  append(directory.size(), 4, &end);
  append(bytes.size(), 4, &end);
  append(0, 2, &end);
  return bytes + directory + end;
}

TEST_F(NpyTest, ArchivesOfOneAndOfSeveralArrays) {
  const std::string a = Npy(Header("<f8", false, "(1, 2)"), Bytes<double>({1, 2}));
  const std::string b = Npy(Header("<i4", true, "(2, 1)"), Bytes<int32_t>({3, 4}));
  Put("one.npz", Archive({{"a.npy", a}}));
  ExpectCells(Read("one.npz"), 1, 2, {1, 2});
  Put("two.npz", Archive({{"a.npy", a}, {"b.npy", b}, {"text", "no array"}}));
  ExpectCells(Read("two.npz", {{"dataset", "a"}}), 1, 2, {1, 2});
  ExpectCells(Read("two.npz", {{"dataset", "b"}}), 2, 1, {3, 4});
  EXPECT_EQ(FormatsTest::Fault("two.npz"),
            "cannot read 'two.npz': it holds 2 arrays\ndataset= says which: a, b");
  EXPECT_EQ(FormatsTest::Fault("two.npz", {{"dataset", "c"}}),
            "cannot read 'two.npz': it has no array 'c'\nit has: a, b");
  Put("none.npz", Archive({}));
  EXPECT_EQ(FormatsTest::Fault("none.npz", {{"format", "npz"}}),
            "cannot read 'none.npz': it is a zip archive without arrays\n"
            "numpy.savez() writes an archive of arrays");
  const std::string whole = Archive({{"a.npy", a}});
  Put("cut.npz", whole.substr(0, whole.size() - 1));
  EXPECT_EQ(FormatsTest::Fault("cut.npz"),
            "cannot read 'cut.npz': it is a zip archive that is cut off or damaged: it has no end record");
  Put("text.npz", "1,2\n");
  EXPECT_EQ(FormatsTest::Fault("text.npz", {{"format", "npz"}}),
            "cannot read 'text.npz': it is no npz file\n"
            "numpy.savez() writes such a file; format= says what else it is");
  // What is cut or changed anywhere is an error or the same cells, never anything else.
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] ^= 1;
    Put("changed.npz", changed);
    Read("changed.npz", {{"format", "npz"}}).ok();
    Put("changed.npz", whole.substr(0, i));
    EXPECT_FALSE(Read("changed.npz", {{"format", "npz"}}).ok()) << i;
  }
}

TEST_F(NpyTest, DeflatedArraysOfNumPyAreRead) {
  std::filesystem::copy_file(HEDDLE_SOURCE_DIR "/tests/unit/ops/io/formats/data/arrays.npz",
                             directory_ + "/a.npz");
  Matrix cells = *Matrix::Dense(6, 4);  // of make_data.py
  for (int k = 0; k < 20; ++k) cells.mutable_data()[k] = k / 4.0;
  cells.mutable_data()[0] = -0.0;
  const double last[] = {kNaN, kInf, -kInf, 5e-324};
  std::copy(std::begin(last), std::end(last), cells.mutable_data() + 20);
  ExpectSameBits(*Read("a.npz", {{"dataset", "cells"}}), cells);
  ExpectSameBits(*Read("a.npz", {{"dataset", "fortran"}}), cells);
  ExpectCells(Read("a.npz", {{"dataset", "ones"}}), 3, 1, {1, 1, 1});
  // What is changed is an error or the same cells.
  const std::string whole = Get("a.npz");
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] ^= 8;
    Put("a.npz", changed);
    const Result<Matrix> found = Read("a.npz", {{"dataset", "cells"}, {"format", "npz"}});
    if (found.ok()) ExpectSameBits(*found, cells);
  }
}

TEST_F(NpyTest, ArchivesSurvive) {
  SeededRandom random(9);
  for (const auto& [rows, columns] : kShapes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns);
    const Matrix matrix = RandomCells(rows, columns, 0.7, &random);
    ASSERT_TRUE(Write(matrix, "m.npz", {.format = FileFormat::kNpz}).ok());
    ExpectSameBits(*Read("m.npz"), matrix);
    ASSERT_TRUE(Write(matrix, "m.npz", {.format = FileFormat::kNpz, .dataset = "weights"}).ok());
    ExpectSameBits(*Read("m.npz", {{"dataset", "weights"}}), matrix);
  }
}

}  // namespace
}  // namespace heddle::ops
