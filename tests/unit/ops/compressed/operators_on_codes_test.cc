// SPDX-License-Identifier: Apache-2.0
// Every operator that reads codes and dictionaries gives the bytes that it gives for the same cells dense and
// CSR, whatever the encoding, the type of cells and the view; and takes the calls that it is there for.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ops/aggregate/aggregate_codes.h"
#include "ops/base/cpu.h"
#include "ops/compressed/occurring_cells.h"
#include "tests/unit/ops/compressed/made_groups.h"
#include "tests/unit/ops/compressed/run_codes.h"

namespace heddle::ops {
namespace {

using testing::AllEncodings;
using testing::Cells;
using testing::CodesCall;
using testing::MadeGroup;
using testing::MakeCompressed;

constexpr int64_t kRows = 3001;

using Parameters = std::tuple<Cells, ElementType>;

class CodesTest : public ::testing::TestWithParam<Parameters> {
 protected:
  Cells cells() const { return std::get<0>(GetParam()); }
  ElementType type() const { return std::get<1>(GetParam()); }
  bool AreSparse() const { return cells() == Cells::kSpecialSparse; }
  // As the format kDense, and where cells allow it as kSparse.
  std::vector<bool> Formats() const {
    return cells() == Cells::kSpecial ? std::vector<bool>{false} : std::vector<bool>{false, true};
  }
  Matrix Make(uint64_t seed, std::vector<MadeGroup> groups = AllEncodings(), int64_t rows = kRows) const {
    return MakeCompressed(rows, std::move(groups), cells(), type(), seed);
  }
  // All rows, and views that begin at even and at odd rows.
  std::vector<Matrix> Views(uint64_t seed) const {
    const Matrix all = Make(seed);
    return {all, all.Rows(64, 2900), all.Rows(1, 2801)};
  }
  Matrix DenseRow(int64_t columns, uint64_t seed) const {
    return *ToDense(MakeCompressed(1, {{Encoding::kConstant, columns, 1}}, cells(), type(), seed));
  }
};

bool IsKind(const Operator& op, OperatorKind kind) { return op.run_compressed != nullptr && op.kind == kind; }

TEST_P(CodesTest, CellFunctionsOfOneMatrix) {
  int functions = 0;
  for (const Operator* op : AllOperators()) {
    if (!IsKind(*op, OperatorKind::kCells) || !op->unary) continue;
    ++functions;
    for (const Matrix& x : Views(1))
      for (const bool sparse : Formats()) CodesCall(std::string(op->name), {x}, sparse).Expect();
  }
  EXPECT_GT(functions, 15);
}

TEST_P(CodesTest, OperatorsWithAScalarOnEitherSide) {
  int operators = 0;
  for (const Operator* op : AllOperators()) {
    if (!IsKind(*op, OperatorKind::kCells) || !op->binary) continue;
    ++operators;
    const std::string name(op->name);
    for (const Matrix& x : Views(2))
      for (const bool sparse : Formats())
        for (const double scalar : {0.0, 2.0, -1.5}) {
          CodesCall(name, {x, Value(Scalar(scalar))}, sparse).Expect();
          CodesCall(name, {Value(Scalar(scalar)), x}, sparse).Expect();
        }
    CodesCall(name, {Make(2), Value(Scalar(int64_t{3}))}).Expect();
    // A single cell counts as a scalar.
    CodesCall(name, {Make(2), DenseRow(1, 5)}).Expect();
  }
  EXPECT_GT(operators, 15);
}

TEST_P(CodesTest, OperatorsWithARowVectorAndAmongThemselves) {
  for (const Operator* op : AllOperators()) {
    if (!IsKind(*op, OperatorKind::kCells) || !op->binary) continue;
    const std::string name(op->name);
    for (const Matrix& x : Views(3))
      for (const bool sparse : Formats()) {
        const Matrix row = DenseRow(x.columns(), 6);
        CodesCall(name, {x, row}, sparse).Expect();
        CodesCall(name, {x, *ToSparse(row)}, sparse).Expect();
        CodesCall(name, {x, x}, sparse).Expect();
        const std::optional<Value> above = CodesCall(">", {x, Value(Scalar(0.5))}, sparse).OfCodes();
        ASSERT_TRUE(above.has_value());
        CodesCall(name, {x, above->matrix()}, sparse).Expect();
        CodesCall(name, {above->matrix(), x}, sparse).Expect();
      }
    // A column of single cells meets a row vector of one.
    const Matrix column = Make(4, {{Encoding::kDenseCodes, 1, 9}});
    CodesCall(name, {column, DenseRow(1, 7)}).Expect();
  }
}

TEST_P(CodesTest, ChoicesAndReplacements) {
  for (const Matrix& x : Views(5))
    for (const bool sparse : Formats()) {
      const std::optional<Value> above = CodesCall(">", {x, Value(Scalar(0.5))}, sparse).OfCodes();
      ASSERT_TRUE(above.has_value());
      const Value one(Scalar(1.0)), zero(Scalar(0.0));
      CodesCall("ifelse", {*above, x, zero}, sparse).Expect();
      CodesCall("ifelse", {*above, one, x}, sparse).Expect();
      CodesCall("ifelse", {x, one, Value(Scalar(-2.5))}, sparse).Expect();
      CodesCall("ifelse", {x, x, *above}, sparse).Expect();
      for (const double pattern : {0.0, 2.5, std::numeric_limits<double>::quiet_NaN()})
        for (const double replacement : {0.0, -0.0, 7.0})
          CodesCall("replace", {x, Value(Scalar(pattern)), Value(Scalar(replacement))}, sparse).Expect();
    }
}

TEST_P(CodesTest, CellsOfUncompressedGroupsAreComputedWithThem) {
  std::vector<MadeGroup> groups = AllEncodings();
  groups.push_back({Encoding::kUncompressed, 2, 0});
  const Matrix x = Make(6, groups);
  CodesCall("*", {x, Value(Scalar(2.0))}).Expect();
  CodesCall("+", {x, DenseRow(x.columns(), 8)}).Expect();
  CodesCall("abs", {x}).Expect();
  CodesCall("*", {x.Rows(0, 2000), Value(Scalar(2.0))}).ExpectLeft();
}

TEST_P(CodesTest, AggregatesOfAllCellsRowsAndColumns) {
  const std::set<std::string> left = {"var", "sd", "colVars", "colSds"};
  std::vector<MadeGroup> mixed = AllEncodings();
  mixed.push_back({Encoding::kUncompressed, 3, 0});
  std::vector<Matrix> matrices = Views(8);
  matrices.push_back(Make(9, {{Encoding::kDenseCodes, 2, 9}, {Encoding::kRuns, 1, 5}}));
  matrices.push_back(Make(10, {{Encoding::kDefault, 1, 3}}));
  matrices.push_back(Make(11, {{Encoding::kDenseCodes, 3, 200}, {Encoding::kEmpty, 1, 1}}));
  matrices.push_back(Make(12, mixed));
  matrices.push_back(matrices.back().Rows(1, 2902));
  // So many columns that tuples are counted.
  matrices.push_back(Make(13, {{Encoding::kDenseCodes, 6, 3}, {Encoding::kDenseCodes, 14, 40}}));
  int aggregates = 0;
  for (const Operator* op : AllOperators()) {
    if (!IsKind(*op, OperatorKind::kAggregate) || op->name == "trace") continue;
    ++aggregates;
    for (const Matrix& x : matrices)
      for (const bool sparse : Formats()) {
        CodesCall call(std::string(op->name), {x}, sparse);
        if (left.contains(std::string(op->name)))
          call.ExpectLeft();
        else
          call.Expect();
      }
  }
  EXPECT_GT(aggregates, 20);
}

TEST_P(CodesTest, SumsAndExtremesWithoutInstructionsThatLookUpBytes) {
  const Cpu before = SelectedCpu();
  ASSERT_TRUE(ForceCpu(Cpu::kAvx2).ok());
  for (const Matrix& x : {Make(30), Make(31).Rows(1, 2900)})
    for (const std::string name : {"sum", "colSums", "rowSums", "rowMaxs", "rowMins", "colMaxs"})
      CodesCall(name, {x}).Expect();
  ASSERT_TRUE(ForceCpu(before).ok());
}

// Sums count the rows of each tuple, once for all matrices with these codes; views of rows have others.
TEST_P(CodesTest, CountsStayWithCodes) {
  const std::vector<std::string> names = {"sum",     "max",     "min",     "mean",
                                          "colSums", "colMins", "colMaxs", "colMeans"};
  const Matrix x = Make(14);
  ASSERT_FALSE(KnowsCounts(x));
  for (const std::string& name : names) CodesCall(name, {x}).Expect();
  const bool are_exact =
      FoldsInAnyOrder(*FindAggregate("sum"), x) || FoldsInAnyOrder(*FindAggregate("colSums"), x);
  EXPECT_EQ(KnowsCounts(x), are_exact);
  EXPECT_FALSE(KnowsCounts(x.Rows(0, kRows - 1)));
  const std::optional<Value> squares = CodesCall("*", {x, x}).OfCodes();
  ASSERT_TRUE(squares);
  EXPECT_EQ(KnowsCounts(squares->matrix()), are_exact);
  for (const std::string& name : names) {
    CodesCall(name, {*squares}).Expect();
    CodesCall(name, {x.Rows(0, kRows - 1)}).Expect();
    CodesCall(name, {x.Rows(5, kRows)}).Expect();
  }
}

TEST_P(CodesTest, PartsOfReductionsFinishToTheSameBytes) {
  for (const bool sparse : Formats()) {
    for (const Matrix& x : {Make(12), Make(12).Rows(1, 2802),
                            Make(13, {{Encoding::kDenseCodes, 2, 9}, {Encoding::kRuns, 1, 5}})}) {
      for (const int ranks : {1, 2, 3}) {
        for (const std::string name : {"min", "max", "colMins", "colMaxs"})
          CodesCall(name, {x}, sparse).ExpectParts(ranks, false);
        for (const std::string name : {"sum", "mean", "prod", "colSums", "colMeans", "colProds"})
          CodesCall(name, {x}, sparse).ExpectParts(ranks, true);
      }
    }
  }
}

TEST_P(CodesTest, RangesOfRowsAndColumns) {
  const auto index = [](int64_t i) { return Value(Scalar(i)); };
  std::vector<MadeGroup> mixed = AllEncodings();
  mixed.push_back({Encoding::kUncompressed, 3, 0});
  for (const Matrix& x : {Make(14), Make(15).Rows(5, 2905), Make(16, mixed)})
    for (const bool sparse : Formats()) {
      CodesCall("index", {x, index(3), index(2700), index(2), index(7)}, sparse).Expect();
      CodesCall("index", {x, index(11), index(2811), index(1), index(x.columns())}, sparse).Expect();
      CodesCall("index", {x, index(1), index(x.rows()), index(4), index(4)}, sparse).Expect();
      CodesCall("index", {x, index(7), index(7), index(1), index(x.columns())}, sparse).Expect();
      CodesCall("index", {x, index(7), index(9), index(3), index(3)}, sparse).Expect();
    }
}

TEST_P(CodesTest, MatricesSideBySideAndBelowEachOther) {
  const Matrix x = Make(17), y = Make(18, {{Encoding::kDenseCodes, 2, 9}});
  const Matrix ones = *ToElementType(*FilledMatrix(kRows, 1, 1), type());
  const Matrix plain = *ToDense(Make(19, {{Encoding::kDenseCodes, 1, 300}}));
  for (const bool sparse : Formats()) {
    CodesCall("cbind", {x, y}, sparse).Expect();
    CodesCall("cbind", {x, y, x}, sparse).Expect();
    CodesCall("cbind", {x, ones}, sparse).Expect();
    CodesCall("cbind", {plain, x, ones}, sparse).Expect();
    CodesCall("cbind", {x.Rows(1, 2001), y.Rows(1, 2001)}, sparse).Expect();
    CodesCall("cbind", {x.Rows(1, 2001), y.Rows(2, 2002)}, sparse).ExpectLeft();
    CodesCall("rbind", {x.Rows(0, 1000), x.Rows(1000, 2500)}, sparse).Expect();
    CodesCall("rbind", {x.Rows(0, 999), x.Rows(1301, kRows)}, sparse).Expect();
    CodesCall("rbind", {x, x.Rows(7, 700), x}, sparse).Expect();
    CodesCall("rbind", {x, Make(20)}, sparse).Expect();
    CodesCall("rbind", {x.Rows(5, 1500), Make(20).Rows(3, 77), x}, sparse).Expect();
  }
}

TEST_P(CodesTest, EmptyRowsAndColumnsAreRemoved) {
  std::vector<MadeGroup> few = {
      {Encoding::kDefault, 1, 3}, {Encoding::kEmpty, 2, 1}, {Encoding::kRuns, 1, 3}};
  const std::vector<std::pair<std::string, Scalar>> rows = {{"margin", Scalar("rows")}},
                                                    columns = {{"margin", Scalar("cols")}};
  const Matrix chosen = *ToDense(Make(21, {{Encoding::kDenseCodes, 1, 3}}));
  for (const Matrix& x : {Make(22), Make(23, few)})
    for (const bool sparse : Formats()) {
      CodesCall("removeEmpty", {x}, sparse, rows).Expect();
      CodesCall("removeEmpty", {x}, sparse, columns).Expect();
      CodesCall("removeEmpty", {x, chosen}, sparse, rows).Expect();
    }
}

TEST_P(CodesTest, RowsInOrder) {
  const auto boolean = [](bool is) { return Value(Scalar(is)); };
  for (const Matrix& x : Views(24))
    for (const bool sparse : Formats())
      for (const bool decreasing : {false, true})
        for (const bool numbers : {false, true}) {
          CodesCall("order", {x, Value(Scalar(int64_t{3})), boolean(decreasing), boolean(numbers)}, sparse)
              .Expect();
          Matrix by = *Matrix::Dense(1, 3);
          for (int64_t k = 0; k < 3; ++k) by.mutable_data()[k] = static_cast<double>(2 * k + 1);
          CodesCall("order", {x, *ToElementType(by, type()), boolean(decreasing), boolean(numbers)}, sparse)
              .Expect();
        }
}

TEST_P(CodesTest, QuantilesAndSetsOfCells) {
  Matrix several = *Matrix::Dense(3, 1);
  for (int64_t k = 0; k < 3; ++k) several.mutable_data()[k] = 0.1 + 0.4 * static_cast<double>(k);
  several = *ToElementType(several, type());
  for (const MadeGroup& group : AllEncodings()) {
    const Matrix all = Make(25, {{group.encoding, 1, group.tuples}});
    for (const Matrix& x : {all, all.Rows(3, 2702)})
      for (const bool sparse : Formats()) {
        CodesCall("median", {x}, sparse).Expect();
        for (const double p : {0.0, 0.3, 0.5, 1.0})
          CodesCall("quantile", {x, Value(Scalar(p))}, sparse).Expect();
        CodesCall("quantile", {x, several}, sparse).Expect();
        CodesCall("unique", {x}, sparse).Expect();
      }
  }
  for (const Matrix& x : Views(26))
    for (const bool sparse : Formats())
      for (const std::string name : {"unique", "countDistinct", "countDistinctApprox"})
        CodesCall(name, {x}, sparse).Expect();
}

TEST_P(CodesTest, SizesAndIdentities) {
  for (const Matrix& x : Views(28))
    for (const bool sparse : Formats()) {
      for (const std::string name : {"nrow", "ncol", "length", "as.matrix"})
        CodesCall(name, {x}, sparse).Expect();
      for (const double pattern : {0.0, 2.5, 1e9}) {
        CodesCall("contains", {x, Value(Scalar(pattern))}, sparse).Expect();
        CodesCall("contains", {x.Rows(0, 1000), Value(Scalar(pattern))}, sparse).ExpectIfTaken();
      }
    }
}

// Keys from 1 on, some of them beyond the table.
TEST(CodesTableTest, OneHotRowsOfACompressedColumn) {
  for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32})
    for (const MadeGroup& made : AllEncodings()) {
      if (made.encoding == Encoding::kEmpty) continue;
      Matrix keys = MakeCompressed(kRows, {{made.encoding, 1, std::min<int64_t>(made.tuples, 20)}},
                                   Cells::kWhole, type, 29);
      keys = CodesCall("+", {CodesCall("abs", {keys}).OfCodes()->matrix(), Value(Scalar(1.0))})
                 .OfCodes()
                 ->matrix();
      const Matrix numbers =
          *ToElementType(CodesCall("seq", {Value(Scalar(1.0)), Value(Scalar(static_cast<double>(kRows)))})
                             .OfCells()
                             .matrix(),
                         type);
      const Value one = Scalar(1.0), rows = Scalar(kRows), columns = Scalar(int64_t{7});
      const std::vector<std::pair<std::string, Scalar>> keeps = {{"keep.rows", Scalar(true)}};
      CodesCall("table", {numbers, keys, one, rows, columns}, false, keeps).Expect();
      CodesCall("table", {numbers, keys, Value(Scalar(-2.5)), rows, Value(Scalar(int64_t{15}))}, false, keeps)
          .Expect();
      CodesCall("table", {numbers, keys}, false, keeps).Expect();
      CodesCall("table", {numbers.Rows(0, 2001), keys.Rows(1, 2002), one}, false, keeps).Expect();
      EXPECT_EQ(CodesCall("table", {keys, keys, one}, false).ExpectIfTaken(), type == ElementType::kFloat64);
    }
}

// A dictionary is no help where rows are few.
TEST_P(CodesTest, ViewsOfFewRowsAreLeft) {
  const Matrix few = Make(27).Rows(10, 15);
  CodesCall("*", {few, Value(Scalar(2.0))}).ExpectLeft();
  CodesCall("max", {few}).ExpectLeft();
}

std::string NameOf(const ::testing::TestParamInfo<Parameters>& info) {
  constexpr const char* kNames[] = {"Whole", "Decimal", "Special", "SpecialSparse"};
  return std::string(kNames[static_cast<size_t>(std::get<0>(info.param))]) + "_" +
         std::string(Name(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(All, CodesTest,
                         ::testing::Combine(::testing::Values(Cells::kWhole, Cells::kDecimal, Cells::kSpecial,
                                                              Cells::kSpecialSparse),
                                            ::testing::Values(ElementType::kFloat64, ElementType::kFloat32)),
                         NameOf);

// No operator that reads codes is without a test above, but for products, fused operators and compress()
// (products_test.cc, tests/unit/ops/fused/compressed_inputs_test.cc, compress_test.cc,
// groups_of_codes_test.cc), and write() (tests/unit/ops/io/formats/column_groups_file_test.cc).
TEST(CodesCatalogTest, OperatorsThatReadCodesAreKnownHere) {
  const std::set<std::string> tested = {"ifelse",   "replace",     "index",         "cbind",
                                        "rbind",    "removeEmpty", "order",         "quantile",
                                        "median",   "unique",      "countDistinct", "countDistinctApprox",
                                        "nrow",     "ncol",        "length",        "as.matrix",
                                        "contains", "table",       "aggregate",     "indexAssign"};
  for (const Operator* op : AllOperators()) {
    const bool is_elsewhere = op->kind == OperatorKind::kProduct || op->name.starts_with("fused") ||
                              op->name.ends_with("compress") || op->name == "write";
    if (op->run_compressed == nullptr || is_elsewhere) continue;
    const std::string name(op->name);
    EXPECT_TRUE(op->unary || op->binary || op->kind == OperatorKind::kAggregate || tested.contains(name))
        << name;
  }
}

// Whether sums are exact is told from the largest cells and their number.
TEST(CodesExactTest, SumsAreTakenInAnyOrderUpToTheLastExactOne) {
  const auto column = [](double value) {
    auto groups = std::make_shared<ColumnGroups>();
    groups->rows = 1000;
    groups->columns = 1;
    ColumnGroup group;
    group.encoding = Encoding::kConstant;
    group.columns = {0};
    group.dictionary = *FilledMatrix(1, 1, value);
    groups->groups.push_back(group);
    return Matrix::OfGroups(groups);
  };
  const auto is_free = [&](const std::string& name, double value) {
    const Matrix x = column(value);
    CodesCall(name, {x}).Expect();
    return FoldsInAnyOrder(*FindAggregate(name), x);
  };
  // One of two numbers that follow each other is odd, so that one is the unit.
  const double below = std::floor(std::ldexp(1.0, 53) / 1000) - 1;
  const double odd = std::fmod(below, 2) == 1 ? below : below - 1;
  for (const std::string name : {"sum", "mean", "colSums", "colMeans"}) {
    EXPECT_TRUE(is_free(name, odd)) << name;
    EXPECT_FALSE(is_free(name, 2 * odd + 1)) << name;
    EXPECT_FALSE(is_free(name, 0.1)) << name;
    EXPECT_FALSE(is_free(name, std::numeric_limits<double>::infinity())) << name;
    EXPECT_FALSE(is_free(name, 1e306)) << name;  // Adds up beyond the largest double.
  }
  EXPECT_TRUE(is_free("max", 0.1));
}

}  // namespace
}  // namespace heddle::ops
