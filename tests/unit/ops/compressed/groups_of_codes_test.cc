// SPDX-License-Identifier: Apache-2.0
// aggregate() by groups and table() from how many rows have which codes.
#include <gtest/gtest.h>

#include "tests/unit/ops/compressed/encoded.h"
#include "tests/unit/ops/compressed/made_groups.h"
#include "tests/unit/ops/compressed/run_codes.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Cells;
using testing::CodesCall;
using testing::Drawn;
using testing::MakeCompressed;

constexpr int64_t kRows = 30'001;

// A column of keys from 1 to `most`, some with a fraction.
Matrix Keys(int64_t rows, int64_t most, int64_t seed) {
  Matrix keys = *Matrix::Dense(rows, 1);
  for (int64_t i = 0; i < rows; ++i)
    keys.mutable_data()[i] =
        static_cast<double>(1 + Drawn(i * 13 + seed, most)) + (Drawn(i, 5) == 0 ? 0.75 : 0.0);
  return keys;
}
Matrix Compressed(const Matrix& column, Encoding encoding = Encoding::kDenseCodes) {
  return testing::EncodedMatrix(column, testing::SingleGroups(column.columns(), encoding));
}

std::vector<std::pair<std::string, Scalar>> Function(std::string_view name) {
  return {{"fn", Scalar(std::string(name))}};
}

// All groups of few tuples.
std::vector<testing::MadeGroup> FewTuples() {
  std::vector<testing::MadeGroup> groups = testing::AllEncodings();
  groups.pop_back();
  return groups;
}

TEST(GroupsOfCodesTest, AggregatesHaveTheBytesOfCells) {
  for (const Encoding encoding : {Encoding::kDenseCodes, Encoding::kDefault, Encoding::kRuns})
    for (const char* const fn : {"sum", "mean", "min", "max", "count"})
      for (const bool sparse : {false, true}) {
        SCOPED_TRACE(::testing::Message() << fn << ", " << Name(encoding) << ", sparse " << sparse);
        const bool is_extreme = std::string(fn) == "min" || std::string(fn) == "max";
        for (const Cells cells : {Cells::kWhole, sparse ? Cells::kSpecialSparse : Cells::kSpecial}) {
          if (cells != Cells::kWhole && !is_extreme) continue;
          const Matrix x = MakeCompressed(kRows + 5, FewTuples(), cells, ElementType::kFloat64, 3);
          const Matrix keys = Keys(kRows, 9, 1);
          const Value by_codes = Value(Compressed(keys, encoding));
          for (const int64_t first : {0, 5}) {
            const Value rows = Value(x.Rows(first, first + kRows));
            CodesCall("aggregate", {rows, by_codes}, sparse, Function(fn)).Expect();
            CodesCall call("aggregate", {rows, by_codes}, sparse, Function(fn));
            for (const int ranks : {2, 5}) call.ExpectParts(ranks, false);
          }
          // Groups that are not compressed tell as much of a matrix that is.
          if (std::string(fn) != "count")
            CodesCall("aggregate", {x.Rows(5, 5 + kRows), keys}, sparse, Function(fn)).Expect();
        }
      }
}

TEST(GroupsOfCodesTest, CountsNeedNoCells) {
  const Matrix x = *FilledMatrix(kRows, 2, 0.1);
  CodesCall("aggregate", {x, Compressed(Keys(kRows, 300, 2))}, false, Function("count")).Expect();
}

TEST(GroupsOfCodesTest, WhatIsRoundedOrHasErrorsIsLeft) {
  const Matrix decimals = MakeCompressed(kRows, FewTuples(), Cells::kDecimal, ElementType::kFloat64, 3);
  const Matrix whole = MakeCompressed(kRows, FewTuples(), Cells::kWhole, ElementType::kFloat64, 3);
  const Matrix keys = Compressed(Keys(kRows, 9, 1));
  for (const char* const fn : {"sum", "mean"}) {
    CodesCall("aggregate", {decimals, keys}, false, Function(fn)).ExpectLeft();
    CodesCall("aggregate", {decimals, keys}, false, Function(fn)).ExpectRun();
  }
  CodesCall("aggregate", {whole, keys}, false, Function("variance")).ExpectLeft();
  CodesCall("aggregate", {whole, keys}, false, Function("variance")).ExpectRun();
  // A group below 1, and far more groups than counters.
  Matrix wrong = Keys(kRows, 9, 1);
  wrong.mutable_data()[777] = 0.5;
  CodesCall("aggregate", {whole, Compressed(wrong)}, false, Function("sum")).ExpectLeft();
  wrong.mutable_data()[777] = 1e9;
  CodesCall("aggregate", {whole, Compressed(wrong)}, false, Function("sum")).ExpectLeft();
  std::vector<testing::MadeGroup> mixed = FewTuples();
  mixed.push_back({Encoding::kUncompressed, 2, 0});
  const Matrix x = MakeCompressed(kRows, mixed, Cells::kWhole, ElementType::kFloat64, 3);
  CodesCall("aggregate", {x, keys}, false, Function("sum")).ExpectLeft();
  CodesCall("aggregate", {x, keys}, false, Function("sum")).ExpectRun();
}

TEST(TableOfCodesTest, TwoColumnsAreCountedByTheirCodes) {
  constexpr Encoding kEncodings[] = {Encoding::kDenseCodes, Encoding::kDefault, Encoding::kRuns};
  for (const int64_t most : {3, 20, 150})
    for (const Encoding encoding : kEncodings) {
      SCOPED_TRACE(::testing::Message() << most << " keys, " << Name(encoding));
      Matrix first = Keys(kRows, most, 1), second = Keys(kRows, 12, 2);
      first.mutable_data()[9] = second.mutable_data()[10] = std::nan("");
      const Matrix a = Compressed(first, encoding), b = Compressed(second);
      const Value one(Scalar(1.0)), rows(Scalar(int64_t{most - 1})), columns(Scalar(int64_t{9}));
      for (const bool sparse : {false, true}) {
        CodesCall("table", {a, b}, sparse).Expect();
        CodesCall("table", {a, b, Value(Scalar(-0.5))}, sparse).Expect();
        CodesCall("table", {a, b, Value(Scalar(-0.0))}, sparse).Expect();
        CodesCall("table", {a, b, one, rows, columns}, sparse).Expect();
        CodesCall("table", {a, Value(Scalar(2.0))}, sparse).Expect();
      }
      // Weights whose sums are exact, and others.
      const auto weights = [](Cells cells, uint64_t seed) {
        return MakeCompressed(kRows, {{Encoding::kDenseCodes, 1, 30}}, cells, ElementType::kFloat64, seed);
      };
      CodesCall("table", {a, b, weights(Cells::kWhole, 5)}).Expect();
      CodesCall("table", {a, b, weights(Cells::kWhole, 5), rows, columns}).Expect();
      CodesCall("table", {a, b, weights(Cells::kDecimal, 5)}).ExpectLeft();
      CodesCall("table", {a, b, weights(Cells::kDecimal, 5)}).ExpectRun();
      CodesCall("table", {a, b, Value(Scalar(0.1))}).ExpectLeft();
      CodesCall("table", {a, b, Value(Scalar(0.1))}).ExpectRun();
    }
}

TEST(TableOfCodesTest, ColumnsOfOneGroupAndErrorsOfKeys) {
  // Columns that are stored together have the same codes.
  Matrix pairs = *Matrix::Dense(kRows, 2);
  for (int64_t i = 0; i < kRows; ++i) {
    pairs.mutable_data()[2 * i] = static_cast<double>(1 + Drawn(i, 4));
    pairs.mutable_data()[2 * i + 1] = static_cast<double>(1 + Drawn(i, 4) / 2);
  }
  const Matrix x = testing::EncodedMatrix(pairs, {{.columns = {0, 1}}});
  const Value column = Value(Scalar(int64_t{1})), next = Value(Scalar(int64_t{2}));
  std::vector<Matrix> columns;
  for (const Value& j : {column, next}) {
    testing::Invocation index("index", {x, std::nullopt, std::nullopt, j, j});
    columns.push_back(index.RunMatrix());
    ASSERT_TRUE(columns.back().IsCompressed());
  }
  CodesCall("table", {columns[0], columns[1]}).Expect();
  // Keys below 1 in rows that count, and in rows that do not.
  Matrix keys = Keys(kRows, 9, 1), others = Keys(kRows, 9, 2);
  keys.mutable_data()[40] = -1;
  CodesCall("table", {Compressed(keys), Compressed(others)}).ExpectLeft();
  others.mutable_data()[40] = std::nan("");
  CodesCall("table", {Compressed(keys), Compressed(others)}).Expect();
  // As many pairs of tuples as rows.
  CodesCall("table", {Compressed(Keys(kRows, 200, 3)), Compressed(Keys(kRows, 250, 4))}).ExpectLeft();
}

}  // namespace
}  // namespace heddle::ops
