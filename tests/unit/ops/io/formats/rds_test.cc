// SPDX-License-Identifier: Apache-2.0
// Files of R: matrices, sparse ones, lists and workspaces, and what is no matrix.
#include "ops/io/files/gzip.h"
#include "tests/support/r_objects.h"
#include "tests/unit/ops/io/formats/formats_fixture.h"

namespace heddle::ops {
namespace {

namespace r = testing_support::r;
using Attributes = std::vector<std::pair<std::string, Scalar>>;

std::string Gzip(const std::string& bytes) {
  std::string packed;
  EXPECT_TRUE(AppendGzipMember(bytes, &packed).ok());
  return packed;
}

class RdsTest : public FormatsTest {
 protected:
  Result<Matrix> ReadObject(const std::string& object, Attributes attributes = {}) {
    Put("x.rds", r::Rds(object));
    return Read("x.rds", std::move(attributes));
  }
  std::string FaultOf(const std::string& object, Attributes attributes = {}) {
    Put("x.rds", r::Rds(object));
    return Fault("x.rds", std::move(attributes));
  }
  static inline const std::string kX = r::Doubles({1, 2, 3, 4, 5, 6}, r::Dim({2, 3}));
};

TEST_F(RdsTest, MatricesOfAllTypesAreReadRowByRow) {
  ExpectCells(ReadObject(kX), 2, 3, {1, 3, 5, 2, 4, 6});
  ExpectCells(ReadObject(kX, {{"transposed", true}}), 3, 2, {1, 2, 3, 4, 5, 6});
  ExpectCells(ReadObject(r::Doubles({1.5, r::kNaDouble, kNaN, -kInf}, r::Dim({2, 2}))), 2, 2,
              {1.5, kNaN, kNaN, -kInf});
  ExpectCells(ReadObject(r::Integers({1, r::kNaInteger, -3, 4}, r::Dim({2, 2}))), 2, 2, {1, -3, kNaN, 4});
  ExpectCells(ReadObject(r::Logicals({1, 0, r::kNaInteger, 1}, r::Dim({1, 4}))), 1, 4, {1, 0, kNaN, 1});
  ExpectCells(ReadObject(r::Vector(24, 3, "\x01\x02\xFF", {})), 3, 1, {1, 2, 255});
  ExpectCells(ReadObject(r::Doubles({7, 8})), 2, 1, {7, 8});
  ExpectCells(ReadObject(r::Doubles({}, r::Dim({0, 3}))), 0, 3, {});
  ExpectCells(ReadObject(r::WideIntegers({5, INT64_MIN, -6})), 3, 1, {5, kNaN, -6});
}

TEST_F(RdsTest, ArraysHaveTheirLastIndexFastest) {
  std::vector<double> cells;
  for (int k = 0; k < 24; ++k) cells.push_back(k);
  const std::string array = r::Doubles(cells, r::Dim({2, 3, 4}));
  const Result<Matrix> plain = ReadObject(array), turned = ReadObject(array, {{"transposed", true}});
  ASSERT_TRUE(plain.ok() && turned.ok()) << plain.status().ToString() << turned.status().ToString();
  ASSERT_EQ(plain->shape(), (Shape{2, 12}));
  ASSERT_EQ(turned->shape(), (Shape{4, 6}));
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) {
        EXPECT_EQ(plain->At(i, j * 4 + k), i + 2 * j + 6 * k);
        EXPECT_EQ(turned->At(k, j * 2 + i), i + 2 * j + 6 * k);
      }
  ExpectCells(ReadObject(r::Doubles({1, 2}, r::Dim({2}))), 2, 1, {1, 2});
}

// Rows are cut out of columns of more cells than are read at once, in files that are packed and not.
TEST_F(RdsTest, LargeMatricesAreTheSameInPieces) {
  constexpr int kRows = 70'000, kColumns = 3;
  std::vector<double> cells;
  for (int k = 0; k < kRows * kColumns; ++k) cells.push_back(k);
  const std::string file = r::Rds(r::Doubles(cells, r::Dim({kRows, kColumns})));
  Put("x.rds", file);
  Put("packed.rds", Gzip(file));
  const Result<Matrix> matrix = Read("x.rds");  // Also both halves of it.
  ASSERT_TRUE(matrix.ok()) << matrix.status().ToString();
  ASSERT_EQ(matrix->shape(), (Shape{kRows, kColumns}));
  for (int i = 0; i < kRows; i += 997)
    for (int j = 0; j < kColumns; ++j) ASSERT_EQ(matrix->At(i, j), i + kRows * j);
  const Result<Matrix> packed = Read("packed.rds");
  ASSERT_TRUE(packed.ok()) << packed.status().ToString();
  EXPECT_TRUE(Matrix::SameCells(*matrix, *packed));
  const Result<Matrix> turned = Read("x.rds", {{"transposed", true}});
  ASSERT_TRUE(turned.ok()) << turned.status().ToString();
  EXPECT_EQ(turned->At(2, 12'345), 12'345 + 2 * kRows);
}

TEST_F(RdsTest, AllFormsOfTheFileAreRead) {
  Put("a.rds", r::HeadOfVersion2() + kX);
  ExpectCells(Read("a.rds"), 2, 3, {1, 3, 5, 2, 4, 6});
  Put("noname", Gzip(r::Rds(kX)));
  ExpectCells(Read("noname"), 2, 3, {1, 3, 5, 2, 4, 6});
  Put("w.RData", r::Workspace({{"x", kX}}));
  ExpectCells(Read("w.RData"), 2, 3, {1, 3, 5, 2, 4, 6});
  ExpectCells(Read("w.RData", {{"dataset", "x"}, {"format", "rdata"}}), 2, 3, {1, 3, 5, 2, 4, 6});
  // Little endian, as serialize(x, NULL, xdr = FALSE) writes it: the bytes of each number the other way
  // round.
  const std::string big = r::HeadOfVersion2() + r::Integers({1, -2, 3});
  std::string little = "B\n";
  for (size_t at = 2; at < big.size(); at += 4)
    for (size_t k = 4; k > 0; --k) little += big[at + k - 1];
  Put("b.rds", little);
  ExpectCells(Read("b.rds"), 3, 1, {1, -2, 3});
}

TEST_F(RdsTest, VectorsInOtherFormsAreTheirCells) {
  ExpectCells(ReadObject(r::Sequence(4, 3, 1)), 4, 1, {3, 4, 5, 6});
  ExpectCells(ReadObject(r::Sequence(3, 1, -1)), 3, 1, {1, 0, -1});
  ExpectCells(ReadObject(r::Sequence(2, 2.5, 1, "compact_realseq")), 2, 1, {2.5, 3.5});
  const std::string metadata = r::Integers({1, 1});
  ExpectCells(ReadObject(r::Alternative("wrap_real", "base", r::Dotted(r::Doubles({1, 2}), metadata))), 2, 1,
              {1, 2});
  ExpectCells(ReadObject(r::Alternative("wrap_integer", "base", r::Dotted(r::Sequence(4, 1, 1), metadata),
                                        r::Dim({2, 2}))),
              2, 2, {1, 3, 2, 4});
  EXPECT_EQ(FaultOf(r::Alternative("mmap_real", "simplemmap", r::Null())),
            "cannot read 'x.rds': it holds a vector of class 'mmap_real', which its own package reads, no "
            "matrix and no data frame\n"
            "as.matrix(x) or as.data.frame(x), in R, may make one of it");
}

TEST_F(RdsTest, DatasetSaysWhichObject) {
  const std::string y = r::Integers({9}), text = r::Texts({"a"});
  const std::string inner = r::List({kX, y}, {{"names", r::Texts({"X", "Y"})}});
  const std::string list = r::List({kX, text, y, inner}, {{"names", r::Texts({"X", "text", "", "in"})}});
  ExpectCells(ReadObject(list, {{"dataset", "X"}}), 2, 3, {1, 3, 5, 2, 4, 6});
  ExpectCells(ReadObject(list, {{"dataset", "3"}}), 1, 1, {9});
  ExpectCells(ReadObject(list, {{"dataset", "in$Y"}}), 1, 1, {9});
  EXPECT_EQ(FaultOf(list), "cannot read 'x.rds': it holds 2 matrices and tables\ndataset= says which: X, 3");
  EXPECT_EQ(FaultOf(list, {{"dataset", "Z"}}),
            "cannot read 'x.rds': it has no object 'Z'\nit has: X, text, 3, in");
  EXPECT_EQ(FaultOf(list, {{"dataset", "in$Z"}}),
            "cannot read 'x.rds': it has no object 'in$Z'\nit has: X, Y");
  EXPECT_EQ(FaultOf(list, {{"dataset", "text"}}),
            "cannot read 'x.rds': column 1 holds texts\n"
            "say data_type=\"frame\"; transformencode makes numbers of texts");
  ExpectCells(ReadObject(r::List({text, kX})), 2, 3, {1, 3, 5, 2, 4, 6});
  EXPECT_EQ(FaultOf(kX, {{"dataset", "X"}}),
            "cannot read 'x.rds': it holds one object, none that is called 'X'\nleave out dataset=");
  Put("w.rda", r::Workspace({{"x", kX}, {"y", y}, {"a$b", r::Integers({8})}}));
  ExpectCells(Read("w.rda", {{"dataset", "y"}}), 1, 1, {9});
  ExpectCells(Read("w.rda", {{"dataset", "a$b"}}), 1, 1, {8});
  EXPECT_EQ(Fault("w.rda"),
            "cannot read 'w.rda': it holds 3 matrices and tables\ndataset= says which: x, y, a$b");
}

// A closure with its environment, byte code, a formula and a pointer stand before the matrix, which names its
// attribute by a reference to a symbol that stood in all that.
TEST_F(RdsTest, WhatIsNoDataIsReadOver) {
  const std::string environment =
      r::Int(4) + r::Int(0) + r::Int(242) + r::PairsOf({{"dim", r::Integers({1})}}) + r::Null() + r::Null();
  const std::string call = r::Int(6) + r::Symbol("+") + r::Int(2) + r::Symbol("x") + r::Null();
  // A constant, a call that stands once more, and a function within.
  const std::string compiled = r::Int(21) + r::Int(1) + r::Integers({7, 7}) + r::Int(4) +  //
                               r::Int(14) + r::Doubles({1}) +                              //
                               r::Int(244) + r::Int(0) + r::Int(240) + r::PairsOf({{"a", r::Null()}}) +
                               r::Null() + r::Int(1) + r::Symbol("f") + r::Int(254) + r::Null() +  //
                               r::Int(243) + r::Int(0) +                                           //
                               r::Int(21) + r::Integers({7}) + r::Int(0);
  const std::string closure =
      r::Int(3 | r::kHasTag) + environment + r::PairsOf({{"x", r::Int(251)}}) + compiled;
  const std::string formula = r::Int(6 | r::kHasAttributes) +
                              r::PairsOf({{"class", r::Texts({"formula"})}, {".Environment", r::Int(253)}}) +
                              r::Symbol("~") + call;
  const std::string pointer = r::Int(22) + r::Null() + r::Null();
  const std::string builtin = r::Int(8) + r::Int(3) + "sum";
  const std::string space = r::Int(249) + r::Int(0) + r::Int(1) + r::Text("stats");
  // Of what later objects may refer to, the environment is the first, the symbol "dim" the second.
  const std::string matrix = r::Int(13 | r::kHasAttributes) + r::Int(2) + r::Int(5) + r::Int(6) +
                             r::Int(2 | r::kHasTag) + r::Int(255 | 2 << 8) + r::Integers({1, 2}) + r::Null();
  const r::Pairs before = {{"p", pointer}, {"f", builtin}, {"s", space}, {"q", formula}, {"c", call}};
  std::string bytes = "RDX3\n" + r::Head() + r::Int(2) + closure;
  for (const auto& [name, object] : before) bytes += r::Int(2 | r::kHasTag) + r::Symbol(name) + object;
  Put("w.RData", bytes + r::Int(2 | r::kHasTag) + r::Symbol("m") + matrix + r::Null());
  ExpectCells(Read("w.RData"), 1, 2, {5, 6});
  const auto fault = [&](const std::string& name) {
    const std::string text = Fault("w.RData", {{"dataset", name}});
    return text.substr(0, text.find(", no matrix"));
  };
  EXPECT_EQ(fault("1"), "cannot read 'w.RData': it holds a function");
  EXPECT_EQ(fault("f"), "cannot read 'w.RData': it holds a function");
  EXPECT_EQ(fault("p"), "cannot read 'w.RData': it holds a pointer");
  EXPECT_EQ(fault("s"), "cannot read 'w.RData': it holds an environment");
  EXPECT_EQ(fault("q"), "cannot read 'w.RData': it holds an object of class 'formula'");
  EXPECT_EQ(fault("c"), "cannot read 'w.RData': it holds a call");
}

TEST_F(RdsTest, SparseMatricesOfThePackageMatrix) {
  const auto columns = [](const std::string& name) {
    return r::ColumnSparse(name, {3, 3}, {0, 1, 2, 4}, {0, 0, 1, 2}, {1.5, 2, 3, 4});
  };
  const Result<Matrix> sparse =
      ReadObject(r::ColumnSparse("dgCMatrix", {3, 5}, {0, 1, 2, 2, 3, 3}, {0, 2, 1}, {1.5, r::kNaDouble, 3}));
  ExpectCells(sparse, 3, 5, {1.5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, kNaN, 0, 0, 0});
  EXPECT_TRUE(sparse->IsSparse());
  ExpectCells(ReadObject(columns("dgCMatrix")), 3, 3, {1.5, 2, 0, 0, 0, 3, 0, 0, 4});
  ExpectCells(ReadObject(columns("dgCMatrix"), {{"transposed", true}}), 3, 3, {1.5, 0, 0, 2, 0, 0, 0, 3, 4});
  ExpectCells(ReadObject(columns("dsCMatrix")), 3, 3, {1.5, 2, 0, 2, 0, 3, 0, 3, 4});
  ExpectCells(ReadObject(columns("ngCMatrix")), 3, 3, {1, 1, 0, 0, 0, 1, 0, 0, 1});
  const auto of = [](const std::string& name, r::Pairs slots) {
    slots.emplace_back("class", r::Texts({name}));
    return r::S4(slots);
  };
  const std::string cells = r::Doubles({5, 6}), size = r::Integers({2, 3});
  ExpectCells(ReadObject(of(
                  "dgRMatrix",
                  {{"p", r::Integers({0, 0, 2})}, {"j", r::Integers({0, 2})}, {"Dim", size}, {"x", cells}})),
              2, 3, {0, 0, 0, 5, 0, 6});
  ExpectCells(ReadObject(of("dgTMatrix", {{"i", r::Integers({1, 1, 1})},
                                          {"j", r::Integers({0, 2, 0})},
                                          {"Dim", size},
                                          {"x", r::Doubles({5, 6, 1})}})),
              2, 3, {0, 0, 0, 6, 0, 6});
  ExpectCells(
      ReadObject(
          of("lgTMatrix",
             {{"i", r::Integers({0})}, {"j", r::Integers({1})}, {"Dim", size}, {"x", r::Logicals({1})}})),
      2, 3, {0, 1, 0, 0, 0, 0});
  ExpectCells(ReadObject(of("dtTMatrix", {{"i", r::Integers({0})},
                                          {"j", r::Integers({1})},
                                          {"Dim", r::Integers({2, 2})},
                                          {"x", r::Doubles({7})},
                                          {"diag", r::Texts({"U"})}})),
              2, 2, {1, 7, 0, 1});
  const auto diagonal = [&](const std::string& kind, const std::vector<double>& numbers) {
    return of("ddiMatrix",
              {{"diag", r::Texts({kind})}, {"Dim", r::Integers({2, 2})}, {"x", r::Doubles(numbers)}});
  };
  ExpectCells(ReadObject(diagonal("N", {3, 4})), 2, 2, {3, 0, 0, 4});
  ExpectCells(ReadObject(diagonal("U", {})), 2, 2, {1, 0, 0, 1});
  ExpectCells(ReadObject(of("dgeMatrix", {{"Dim", size}, {"x", r::Doubles({1, 2, 3, 4, 5, 6})}})), 2, 3,
              {1, 3, 5, 2, 4, 6});
  EXPECT_EQ(FaultOf(of("Person", {{"name", r::Texts({"a"})}})),
            "cannot read 'x.rds': it holds an object of class 'Person', no matrix and no data frame\n"
            "as.matrix(x) or as.data.frame(x), in R, may make one of it");
}

TEST_F(RdsTest, SparseMatricesThatAreDamagedAreNamed) {
  const auto fault = [&](const std::vector<int32_t>& ends, const std::vector<int32_t>& rows) {
    return FaultOf(r::ColumnSparse("dgCMatrix", {3, 2}, ends, rows, {1, 2}));
  };
  EXPECT_EQ(fault({0, 1, 2}, {0, 3}),
            "cannot read 'x.rds': stored cell 2, (4, 2), is outside of the 3x2 matrix");
  EXPECT_EQ(fault({0, 2, 1}, {0, 1}),
            "cannot read 'x.rds': it is damaged: where the columns or rows of a "
            "sparse matrix begin does not ascend");
  EXPECT_EQ(fault({0, 1}, {0, 1}),
            "cannot read 'x.rds': it is damaged: where the columns or rows of a sparse "
            "matrix begin does not fit its sizes");
  EXPECT_EQ(fault({0, 1, 3}, {0, 1, 2}),
            "cannot read 'x.rds': it is damaged: a sparse matrix has more places than cells");
  EXPECT_EQ(fault({0, 1, 2}, {0, r::kNaInteger}),
            "cannot read 'x.rds': it is damaged: a place in a sparse matrix is NA");
}

TEST_F(RdsTest, WhatIsNoMatrixIsNamed) {
  const std::string ending =
      ", no matrix and no data frame\nas.matrix(x) or as.data.frame(x), in R, may make one of it";
  EXPECT_EQ(FaultOf(r::Null()), "cannot read 'x.rds': it holds NULL" + ending);
  EXPECT_EQ(FaultOf(r::Int(253)), "cannot read 'x.rds': it holds an environment" + ending);
  EXPECT_EQ(FaultOf(r::Vector(15, 1, std::string(16, '\0'), {})),
            "cannot read 'x.rds': it holds a vector of complex numbers" + ending);
  EXPECT_EQ(FaultOf(r::List({kX, r::Texts({"a"})},
                            {{"names", r::Texts({"coefficients", "call"})}, {"class", r::Texts({"lm"})}})),
            "cannot read 'x.rds': it holds an object of class 'lm', no matrix and no data frame\n"
            "dataset= reads a part of it: coefficients");
  EXPECT_EQ(Write(Make(1, 1, {1}), "w.rds", {.format = FileFormat::kRds}).message(),
            "write: a matrix cannot be written in format 'rds'");
}

TEST_F(RdsTest, FilesThatAreNotReadSayWhatWritesOneThatIs) {
  const auto fault = [&](const std::string& name, const std::string& bytes, Attributes attributes = {}) {
    Put(name, bytes);
    return Fault(name, std::move(attributes));
  };
  const std::string with_gzip =
      ", which Heddle does not read\n"
      "in R: saveRDS(x, FILE, compress = \"gzip\"), or save(..., compress = \"gzip\")";
  EXPECT_EQ(fault("b.rds", "BZh91AY&SY\x93"), "cannot read 'b.rds': it is packed by bzip2" + with_gzip);
  EXPECT_EQ(fault("x.RData", std::string("\xFD\x37zXZ\0\0", 7)),
            "cannot read 'x.RData': it is packed by xz" + with_gzip);
  const std::string as_text =
      "it holds R objects as text, which Heddle does not read\n"
      "leave out ascii = TRUE in saveRDS() or save()";
  EXPECT_EQ(fault("a.rds", "A\n3\n262658\n"), "cannot read 'a.rds': " + as_text);
  EXPECT_EQ(fault("a", "RDA3\nA\n3\n"), "cannot read 'a': " + as_text);
  EXPECT_EQ(fault("v.rds", "X\n" + r::Int(4) + r::Int(0) + r::Int(0) + kX),
            "cannot read 'v.rds': it is of version 4 of R's form of files, Heddle reads 2 and 3\n"
            "saveRDS(x, FILE, version = 3), in R, writes one that is read");
  EXPECT_EQ(fault("c", "1,2\n", {{"format", "rds"}}),
            "cannot read 'c': it is no file of saveRDS() or save() of R\nformat= says what it is");
  // A table is none of R's because its first line is "A".
  Put("t", "A\n3\n5\n");
  ExpectCells(Read("t", {{"header", true}}), 2, 1, {3, 5});
}

TEST_F(RdsTest, SizesAreThoseOfTheFile) {
  EXPECT_EQ(FaultOf(r::Int(14) + r::Int(2'000'000'000) + r::Wide(0)),
            "cannot read 'x.rds': it is cut off inside of a vector of 2000000000 cells");
  // 2^40 cells, in two halves.
  EXPECT_EQ(FaultOf(r::Int(14) + r::Int(-1) + r::Wide(uint64_t{1} << 40)),
            "cannot read 'x.rds': it is cut off inside of a vector of 1099511627776 cells");
  EXPECT_EQ(FaultOf(r::Int(19) + r::Int(2'000'000'000)),
            "cannot read 'x.rds': it is cut off inside of an object");
  EXPECT_EQ(FaultOf(r::Doubles({1, 2}, r::Dim({2, 2}))),
            "cannot read 'x.rds': it is damaged: the sizes of an array are not those of its 2 cells");
  EXPECT_EQ(FaultOf(r::Doubles({1, 2}, r::Dim({-1, -2}))),
            "cannot read 'x.rds': it is damaged: the sizes of an array are not those of its 2 cells");
  EXPECT_EQ(FaultOf(r::Doubles({}, r::Dim({0, 2'000'000'000, 2'000'000'000, 2'000'000'000}))),
            "cannot read 'x.rds': it is larger than a matrix can be");
  EXPECT_EQ(FaultOf(r::Int(255 | 7 << 8)),
            "cannot read 'x.rds': it is damaged at byte 27: it refers to an object that is not there");
  EXPECT_EQ(FaultOf(r::Int(77)), "cannot read 'x.rds': it is damaged at byte 27: no object has the type 77");
  EXPECT_EQ(FaultOf(r::Sequence(1e300, 1, 1)).substr(0, 36), "cannot read 'x.rds': it is damaged a");
  EXPECT_EQ(FaultOf(r::Sequence(0x1p52, 1, 1, "compact_realseq")),
            "cannot read 'x.rds': it is larger than a matrix can be");
  std::string lists;
  for (int i = 0; i < 100'000; ++i) lists += r::Int(19) + r::Int(1);
  EXPECT_EQ(FaultOf(lists), "cannot read 'x.rds': its objects are inside of each other, more than 500");
  std::string symbols;
  for (int i = 0; i < 100'000; ++i) symbols += r::Int(1);
  EXPECT_EQ(FaultOf(symbols).substr(0, 36), "cannot read 'x.rds': it is damaged a");
}

// What no R writes: a byte says where it is.
TEST_F(RdsTest, DamagedObjectsAreNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {r::Int(14) + r::Int(-1) + r::Wide(uint64_t{1} << 63), "a vector has less than no cells"},
      {r::Int(7) + r::Int(-1), "a name has less than no bytes"},
      {r::Int(9) + r::Int(-2), "a text has less than no bytes"},
      {r::Int(1) + r::Int(9) + r::Int(-2), "a text has less than no bytes"},
      {r::Symbol(std::string(10'001, 'a')), "a name is too long"},
      {r::Int(238) + r::Null() + r::Null() + r::Null(), "a vector does not say of which class it is"},
      {r::Alternative("deferred_string", "base", r::Null()), "texts are of no numbers"},
      {r::Alternative("wrap_real", "base", r::Null()), "a vector is missing"},
      {r::Alternative("compact_intseq", "base", r::Doubles({1, 2})), "a sequence is of no three numbers"},
      {r::Sequence(1.5, 1, 1), "a sequence is of no numbers"},
  };
  for (const auto& [object, what] : cases) {
    const std::string fault = FaultOf(object);
    EXPECT_TRUE(fault.starts_with("cannot read 'x.rds': it is damaged at byte ")) << fault;
    EXPECT_TRUE(fault.ends_with(std::string(": ") + what)) << fault;
  }
  // A compiled function: its code, how many constants, and constants that are functions, or lists of pairs.
  std::string functions = r::Int(21) + r::Int(1), pairs = functions + r::Null() + r::Int(1);
  for (int i = 0; i < 1000; ++i) functions += r::Null() + r::Int(1) + r::Int(21);
  for (int i = 0; i < 1000; ++i) pairs += r::Int(2) + r::Null();
  for (const std::string& object : {functions, pairs})
    EXPECT_EQ(FaultOf(object), "cannot read 'x.rds': its objects are inside of each other, more than 500");
  Put("x.rds", "X\n" + r::Int(3) + r::Int(0x40202) + r::Int(0x30500) + r::Int(300) + std::string(300, 'a'));
  EXPECT_EQ(Fault("x.rds"), "cannot read 'x.rds': it is damaged at byte 18: no encoding has such a name");
}

TEST_F(RdsTest, ObjectsAndNamesHaveABound) {
  constexpr int32_t kMost = 1 << 20;
  // The elements of a list; names of which nothing is kept, those of an expression.
  std::string objects = r::Int(19) + r::Int(kMost), names = r::Int(20) + r::Int(kMost + 1);
  for (int32_t i = 0; i < kMost; ++i) objects += r::Null();
  const std::string name = r::Symbol("a");
  for (int32_t i = 0; i <= kMost; ++i) names += name;
  EXPECT_EQ(FaultOf(objects), "cannot read 'x.rds': it holds more than 1048576 objects");
  EXPECT_EQ(FaultOf(names), "cannot read 'x.rds': it holds too many names");
}

TEST_F(RdsTest, MatricesThatLackAPartAreNamed) {
  const auto of = [](const std::string& name, r::Pairs slots) {
    slots.emplace_back("class", r::Texts({name}));
    return r::S4(slots);
  };
  const std::string size = r::Integers({2, 2}), cells = r::Doubles({1, 2, 3, 4}), texts = r::Texts({"a"}),
                    one = r::Integers({0});
  const std::pair<std::string, const char*> cases[] = {
      {r::Doubles({1, 2}, {{"dim", r::Doubles({1, 2})}}), "the sizes of an array are none"},
      {of("dgeMatrix", {{"Dim", size}, {"x", r::Doubles({1})}}), "a matrix has other sizes than cells"},
      {of("dgeMatrix", {{"Dim", size}}), "a matrix has no cells"},
      {of("dgeMatrix", {{"Dim", size}, {"x", texts}}), "the cells of a matrix are no numbers"},
      {of("dgeMatrix", {{"x", cells}}), "a matrix has no sizes"},
      {of("dgeMatrix", {{"Dim", r::Integers({-1, 2})}, {"x", cells}}), "a matrix has no sizes"},
      {of("dgTMatrix", {{"i", one}, {"j", one}, {"Dim", size}, {"x", texts}}),
       "the cells of a sparse matrix are no numbers"},
      {of("dgTMatrix", {{"i", one}, {"j", one}, {"Dim", size}}), "a sparse matrix has no cells"},
      {of("ddiMatrix", {{"Dim", size}, {"x", r::Doubles({1})}}), "a diagonal is too short"},
      {of("dgTMatrix", {{"i", one}, {"Dim", size}, {"x", r::Doubles({1})}}),
       "the places of the cells of a sparse matrix are missing"},
      {of("dgTMatrix", {{"i", one}, {"j", r::Integers({})}, {"Dim", size}, {"x", r::Doubles({1})}}),
       "a sparse matrix has rows without columns"},
  };
  for (const auto& [object, what] : cases)
    EXPECT_EQ(FaultOf(object), fmt::format("cannot read 'x.rds': it is damaged: {}", what));
}

// More rows than memory has room for, in a file of a hundred bytes.
TEST_F(RdsTest, NumbersThatNoFileHoldsFindNoRoom) {
  for (const std::string& object :
       {r::Sequence(0x1p47, 1, 1, "compact_realseq"),
        r::Alternative("deferred_string", "base",
                       r::Dotted(r::Sequence(0x1p47, 1, 1, "compact_realseq"), r::Integers({0})))}) {
    Put("x.rds", r::Rds(object));
    const bool are_texts = object.find("deferred") != std::string::npos;
    const Status status = are_texts ? ReadFrame("x.rds").status() : Read("x.rds").status();
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.ToString();
  }
}

}  // namespace
}  // namespace heddle::ops
