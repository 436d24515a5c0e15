// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/transform.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "ops/text/lenient_json.h"
#include "ops/transform/distinct_cells.h"
#include "ops/transform/encoders.h"
#include "tests/support/frames.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Invocation;
using testing::Rows;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Empty texts are missing cells for the transforms.
Column TextColumn(const std::vector<std::string_view>& cells) { return *Column::OfTexts(cells); }

Frame FrameOfColumns(std::vector<Column> columns, std::vector<std::string> names) {
  Schema schema{{}, std::move(names)};
  for (const Column& column : columns) schema.types.push_back(column.type());
  return Frame(std::make_shared<const Schema>(std::move(schema)), std::move(columns));
}

Frame Shop() {
  return FrameOfColumns(
      {TextColumn({"red", "blue", "", "red", "green"}),
       *Column::OfDoubles(std::array{1.0, 4.0, 2.0, 10.0, kNan}), TextColumn({"1", "2", "", "4", "5"})},
      {"colour", "price", "count"});
}

struct Encoded {
  Matrix matrix;
  Frame meta;
};

Encoded Encode(const Frame& frame, const std::string& spec) {
  Invocation call("transformencode", {Value(frame), Value(Scalar(spec))});
  const Result<std::vector<Value>> results = call.RunSeveralRows(0, 0, 0);
  EXPECT_TRUE(results.ok()) << results.status().ToString();
  if (!results.ok()) return {};
  call.ExpectPromised(0, (*results)[0].matrix());
  return {(*results)[0].matrix(), (*results)[1].frame()};
}

Matrix Apply(const Frame& frame, const Frame& meta, const std::string& spec) {
  return Invocation("transformapply", {Value(frame), Value(meta), Value(Scalar(spec))}).RunMatrix();
}

std::vector<std::string> TextsOf(const Frame& frame, int64_t column) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < frame.rows(); ++i) {
    texts.emplace_back(frame.IsMissing(i, column) ? "missing" : "");
    frame.AppendText(i, column, &texts.back());
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(TransformTest, TokensAreNumberedAsTheyAppear) {
  const Encoded encoded = Encode(Shop(), "{recode: [colour, price], impute: []}");
  EXPECT_TRUE(
      Matrix::SameCells(encoded.matrix, Rows({{1, 1, 1}, {2, 2, 2}, {kNan, 3, kNan}, {1, 4, 4}, {3, 5, 5}})));
  EXPECT_EQ(TextsOf(encoded.meta, 0), (Texts{"red·1", "green·3", "blue·2", "missing", "missing"}));
  EXPECT_EQ(TextsOf(encoded.meta, 1), (Texts{"1.0·1", "2.0·3", "4.0·2", "10.0·4", "NaN·5"}));
  EXPECT_EQ(TextsOf(encoded.meta, 2), Texts(5, "missing"));
  EXPECT_EQ(encoded.meta.schema()->names, (Texts{"colour", "price", "count"}));
}

TEST(TransformTest, DummiesAreCsrWithoutEntriesForMissingCells) {
  const Encoded encoded = Encode(Shop(), "{ids: true, dummycode: [1]}");
  EXPECT_TRUE(encoded.matrix.IsSparse());
  EXPECT_TRUE(Matrix::SameCells(
      encoded.matrix,
      Rows({{1, 0, 0, 1, 1}, {0, 1, 0, 4, 2}, {0, 0, 0, 2, kNan}, {1, 0, 0, 10, 4}, {0, 0, 1, kNan, 5}})));
}

TEST(TransformTest, BinsHoldTheirUpperBounds) {
  const Frame frame = FrameOfColumns({*Column::OfDoubles(std::array{0.0, 2.5, 2.6, 10.0, kNan})}, {"x"});
  const std::string width = "{ids: true, bin: [{id: 1, method: equi-width, numbins: 4}]}";
  const Encoded by_width = Encode(frame, width);
  EXPECT_TRUE(Matrix::SameCells(by_width.matrix, Rows({{1}, {1}, {2}, {4}, {kNan}})));
  EXPECT_EQ(TextsOf(by_width.meta, 0), (Texts{"0.0·2.5", "2.5·5.0", "5.0·7.5", "7.5·10.0"}));
  const Encoded by_height = Encode(frame, "{ids: true, bin: [{id: 1, method: equi-height, numbins: 2}]}");
  EXPECT_TRUE(Matrix::SameCells(by_height.matrix, Rows({{1}, {1}, {2}, {2}, {kNan}})));
  EXPECT_EQ(TextsOf(by_height.meta, 0), (Texts{"0.0·2.5", "2.5·10.0"}));
  // What lies beyond the bins is in the first or last one.
  const Frame beyond = FrameOfColumns({*Column::OfDoubles(std::array{-3.0, 11.0, 5.0})}, {"x"});
  EXPECT_TRUE(Matrix::SameCells(Apply(beyond, by_width.meta, width), Rows({{1}, {4}, {2}})));
}

// Also where cells are so near to a bound that to compare them with it would give another bin.
TEST(TransformTest, BinsOfEqualWidthAreRoundedAsInSystemDS) {
  std::vector<double> cells;
  for (int i = 0; i <= 300; ++i) cells.push_back(i * 0.07 - 3.3);
  const Frame frame = FrameOfColumns({*Column::OfDoubles(cells)}, {"x"});
  const auto sum_of = [&](int bins) {
    const Encoded encoded =
        Encode(frame, "{bin: [{name: x, method: equi-width, numbins: " + std::to_string(bins) + "}]}");
    double sum = 0;
    for (int64_t i = 0; i < 301; ++i) sum += encoded.matrix.At(i, 0) * static_cast<double>(i + 1);
    return sum;
  };
  // As SystemDS 3.4 gives them.
  EXPECT_EQ(sum_of(4), 141751);
  EXPECT_EQ(sum_of(30), 929638);
  EXPECT_EQ(sum_of(80), 2445342);
}

TEST(TransformTest, EqualNumbersAreOneBin) {
  const Frame frame = FrameOfColumns({*Column::OfDoubles(std::array{3.0, 3.0})}, {"x"});
  const Encoded encoded =
      Encode(frame, "{ids: true, bin: [{id: 1, method: equi-width, numbins: 4}], dummycode: [1]}");
  EXPECT_TRUE(Matrix::SameCells(encoded.matrix, Rows({{1}, {1}})));
}

// The numbers are those of Java.
TEST(TransformTest, HashesAreThoseOfJava) {
  EXPECT_EQ(JavaHash(""), 0);
  EXPECT_EQ(JavaHash("abc"), 96354);
  EXPECT_EQ(JavaHash("polygenelubricants"), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(JavaHash("é"), 233);
  EXPECT_EQ(JavaHash("\U0001F600"), 0xd83d * 31 + 0xde00);
  const Frame frame =
      FrameOfColumns({TextColumn({"abc", ""}), *Column::OfIntegers(std::array{int64_t{-7}, int64_t{1} << 32}),
                      *Column::OfDoubles(std::array{1.0, 0.0}), *Column::OfBooleans(std::array{true, false})},
                     {"a", "b", "c", "d"});
  const Encoded encoded = Encode(frame, "{ids: true, hash: [1, 2, 3, 4], K: 1000}");
  // -7 as a long: its two halves differ in the bits of 6; 1.0: 0x3ff00000.
  EXPECT_TRUE(Matrix::SameCells(encoded.matrix, Rows({{355, 7, 249, 2}, {kNan, 2, 1, 1}})));
  EXPECT_EQ(TextsOf(encoded.meta, 2), Texts{"1000"});
}

TEST(TransformTest, MissingCellsTakeTheMeanTheModeOrAConstant) {
  const Frame frame =
      FrameOfColumns({TextColumn({"1", "", "4"}), TextColumn({"b", "a", "a"}), TextColumn({"", "x", "x"}),
                      TextColumn({"u", "", "v"}), *Column::OfDoubles(std::array{2.0, kNan, 2.0})},
                     {"mean", "kept", "mode", "constant", "number"});
  const std::string spec =
      "{recode: [kept, mode, constant], impute: [{name: mean, method: global_mean},"
      " {name: mode, method: global_mode}, {name: constant, method: constant, value: w},"
      " {name: number, method: constant, value: 7}]}";
  const Encoded encoded = Encode(frame, spec);
  EXPECT_TRUE(Matrix::SameCells(encoded.matrix, Rows({{1, 1, 1, 1, 2}, {2.5, 2, 1, 3, 7}, {4, 2, 1, 2, 2}})));
  EXPECT_EQ(TextsOf(encoded.meta, 0)[0], "2.5·impute");
  EXPECT_EQ(TextsOf(encoded.meta, 2), (Texts{"x·1", "x·impute", "missing", "missing"}));
  EXPECT_EQ(TextsOf(encoded.meta, 3), (Texts{"u·1", "v·2", "w·3", "w·impute"}));
  EXPECT_TRUE(Matrix::SameCells(Apply(frame, encoded.meta, spec), encoded.matrix));
}

TEST(TransformTest, OmitLeavesOutRowsButLearnsFromAll) {
  const Frame frame = FrameOfColumns({TextColumn({"a", "b", "a"}), TextColumn({"1", "", "3"})}, {"s", "n"});
  const Encoded encoded = Encode(frame, "{recode: [s], omit: [n]}");
  EXPECT_TRUE(Matrix::SameCells(encoded.matrix, Rows({{1, 1}, {1, 3}})));
  EXPECT_EQ(TextsOf(encoded.meta, 0), (Texts{"a·1", "b·2"}));
}

TEST(TransformTest, UnknownTokensAreNanOrARowOfZeros) {
  const Encoded encoded = Encode(Shop(), "{recode: [colour]}");
  const Frame other = FrameOfColumns(
      {TextColumn({"green", "grey"}), *Column::OfDoubles(std::array{0.0, 1.0}), TextColumn({"1", "1"})},
      {"colour", "price", "count"});
  EXPECT_TRUE(
      Matrix::SameCells(Apply(other, encoded.meta, "{recode: [colour]}"), Rows({{3, 0, 1}, {kNan, 1, 1}})));
  EXPECT_TRUE(Matrix::SameCells(Apply(other, encoded.meta, "{dummycode: [colour]}"),
                                Rows({{0, 0, 1, 0, 1}, {0, 0, 0, 1, 1}})));
}

// A frame of some of the columns, by their names.
TEST(TransformTest, MetadataOfMoreColumnsServe) {
  const Encoded encoded = Encode(Shop(), "{recode: [colour, count]}");
  const Frame part = FrameOfColumns({TextColumn({"5", "4"})}, {"count"});
  EXPECT_TRUE(Matrix::SameCells(Apply(part, encoded.meta, "{recode: [count]}"), Rows({{4}, {3}})));
}

TEST(TransformTest, TokensWithDotsAndQuotesComeBack) {
  const Frame frame = FrameOfColumns({TextColumn({"a·1", "say \"x\"", "\"", "c·"})}, {"s"});
  const std::string spec = "{recode: [s]}";
  const Encoded encoded = Encode(frame, spec);
  EXPECT_EQ(TextsOf(encoded.meta, 0), (Texts{"\"·3", "c··4", "a·1·1", "say \"x\"·2"}));
  const Value decoded =
      Invocation("transformdecode", {Value(encoded.matrix), Value(encoded.meta), Value(Scalar(spec))}).Run();
  EXPECT_TRUE(Frame::SameCells(decoded.frame(), frame));
  EXPECT_TRUE(Matrix::SameCells(Apply(frame, encoded.meta, spec), encoded.matrix));
}

TEST(TransformTest, DecodingGivesTokensCentresOfBinsAndNumbers) {
  const std::string spec = "{dummycode: [colour], bin: [{name: price, method: equi-width, numbins: 3}]}";
  const Encoded encoded = Encode(Shop(), spec);
  for (const Matrix& form : testing::Forms(*ToDense(encoded.matrix))) {
    const Value decoded =
        Invocation("transformdecode", {Value(form), Value(encoded.meta), Value(Scalar(spec))}).Run();
    EXPECT_EQ(TextsOf(decoded.frame(), 0), (Texts{"red", "blue", "missing", "red", "green"}));
    EXPECT_EQ(TextsOf(decoded.frame(), 1), (Texts{"2.5", "2.5", "2.5", "8.5", "NaN"}));
    EXPECT_EQ(TextsOf(decoded.frame(), 2), (Texts{"1.0", "2.0", "NaN", "4.0", "5.0"}));
  }
  const Matrix map = Invocation("transformcolmap", {Value(encoded.meta), Value(Scalar(spec))}).RunMatrix();
  EXPECT_TRUE(Matrix::SameCells(map, Rows({{1, 1, 3}, {2, 4, 4}, {3, 5, 5}})));
}

// As SystemDS has it: of codes that are no whole numbers the fraction is cut off.
TEST(TransformTest, FractionsOfCodesAreCutOffInDecoding) {
  const Frame frame = FrameOfColumns({TextColumn({"a", "b", "c"})}, {"s"});
  const std::string spec = "{recode: [s]}";
  const Encoded encoded = Encode(frame, spec);
  const Matrix codes = Rows({{1.5}, {2.99}, {0.9}, {-1}, {4}, {kNan}, {3}});
  const Value decoded =
      Invocation("transformdecode", {Value(codes), Value(encoded.meta), Value(Scalar(spec))}).Run();
  EXPECT_EQ(TextsOf(decoded.frame(), 0), (Texts{"a", "b", "missing", "missing", "missing", "missing", "c"}));
}

TEST(TransformTest, SpecsNeedNoQuotes) {
  EXPECT_EQ(StrictJson("{ids: true, recode: [a b, 'c \"d', \"e, f\", -1.5]}"),
            R"({"ids": true, "recode": ["a" "b", "c \"d", "e, f", -1.5]})");
  EXPECT_EQ(StrictJson("{a: 'b"), "{\"a\": 'b");
  EXPECT_EQ(StrictJson("{a: [1, 2, ], }"), "{\"a\": [1, 2  ]  }");
}

// More rows than are numbered in one piece, so that pieces are put together; any number of threads.
TEST(TransformTest, DistinctCellsOfManyRowsAreNumberedAsTheyAppear) {
  std::vector<int64_t> cells;
  for (int64_t i = 0; i < 200000; ++i) cells.push_back((i * 7919) % 1009 + i / 70000 * 500);
  const Column column = *Column::OfIntegers(cells);
  for (const int threads : {1, 3}) {
    Result<DistinctCells> found = Internal("not found");
    Arena(threads).Execute([&] { found = FindDistinctCells(column); });
    ASSERT_TRUE(found.ok());
    for (int64_t k = 1; k < found->count(); ++k)
      ASSERT_LT(found->first_rows[static_cast<size_t>(k - 1)], found->first_rows[static_cast<size_t>(k)]);
    for (size_t i = 0; i < cells.size(); ++i) {
      const auto first = static_cast<size_t>(found->first_rows[static_cast<size_t>(found->numbers[i])]);
      ASSERT_EQ(cells[first], cells[i]);
      ASSERT_LE(first, i);
    }
  }
}

// Columns of every type, with missing cells, by every encoder.
TEST(TransformTest, KernelsAgreeWithLoops) {
  const Frame frame = NumberedFrame(60);
  for (
      const std::string spec :
      {"{ids: true, recode: [1, 2, 3, 4, 5, 6, 7]}", "{ids: true, dummycode: [1, 3, 5, 7], recode: [2]}",
       "{ids: true, hash: [1, 2, 3, 4, 5, 6, 7], K: 11}",
       "{ids: true, recode: [1, 7], bin: [{id: 2, method: equi-width, numbins: 7}, {id: 4, method: "
       "equi-height, numbins: 4}], dummycode: [4, 6], omit: [5]}",
       "{ids: true, recode: [1, 7], impute: [{id: 1, method: global_mode}, {id: 2, method: global_mean}, {id: "
       "4, method: constant, value: 3}, {id: 7, method: constant, value: q}]}"}) {
    SCOPED_TRACE(spec);
    const Encoded encoded = Encode(frame, spec);
    const auto [matrix, meta] = reference::TransformEncode(frame, spec);
    EXPECT_TRUE(Matrix::SameCells(*ToDense(encoded.matrix), matrix));
    EXPECT_TRUE(Frame::SameCells(encoded.meta, meta));
    EXPECT_TRUE(Matrix::SameCells(Apply(frame, encoded.meta, spec), encoded.matrix));
  }
}

std::string ErrorOf(const std::string& spec) {
  return Invocation("transformencode", {Value(Shop()), Value(Scalar(spec))}).Error();
}

TEST(TransformTest, ErrorsOfSpecsSayWhatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"recode", "transformencode: the spec is not a JSON object: 'recode'"},
      {"{recod: [a]}", "transformencode: 'recod' is no key of a spec"},
      {"{ids: yes}", "transformencode: 'ids' of the spec is not true or false"},
      {"{recode: colour}", "transformencode: 'recode' of the spec is not a list"},
      {"{recode: [size]}",
       "transformencode: the frame has no column 'size', which 'recode' of the spec names"},
      {"{ids: true, recode: [0]}", "transformencode: '0' in 'recode' of the spec is no number of a column"},
      {"{recode: [colour], hash: [colour], K: 3}",
       "transformencode: column colour has two encoders, recode and hash"},
      {"{hash: [colour]}", "transformencode: column colour is hashed, but the spec has no K"},
      {"{hash: [colour], K: 0}", "transformencode: K of the spec is 0, which is no number of codes"},
      {"{bin: [price]}", "transformencode: an element of 'bin' of the spec is not an object with 'name'"},
      {"{bin: [{name: price}]}", "transformencode: 'bin' of column price has no 'method'"},
      {"{bin: [{name: price, method: log}]}",
       "transformencode: 'log' is no method of 'bin', which column price has"},
      {"{bin: [{name: price, method: equi-width, numbins: 0}]}",
       "transformencode: numbins of column price is 0, which is no number of bins"},
      {"{impute: [{name: price, method: median}]}",
       "transformencode: 'median' is no method of 'impute', which column price has"},
      {"{impute: [{name: price, method: constant}]}",
       "transformencode: the constant for column price is missing"},
      {"{recode: [colour], impute: [{name: colour, method: global_mean}]}",
       "transformencode: the tokens of column colour have no mean"},
      {"{recode: [colour], udf: {name: f, ids: [count]}}",
       "transformencode: the spec names the function 'f', so it must be known when the script is compiled"},
      {"{recode: [colour], udf: scale}",
       "transformencode: 'udf' of the spec is not an object with 'name' and 'ids'"},
      {"{word_embedding: [colour]}", "transformencode: 'word_embedding' needs metadata and an embedding"},
      {"{bag_of_words: [colour], dummycode: [colour]}",
       "transformencode: column colour has no codes to make dummies of, it has 'bag_of_words'"},
      {"{}", "transformencode: 'red' in column colour is not a number"},
  };
  for (const auto& [spec, message] : cases) EXPECT_EQ(ErrorOf(spec), message) << spec;
}

TEST(TransformTest, MetadataOfAnotherSpecAreRefused) {
  const Encoded encoded = Encode(Shop(), "{recode: [colour]}");
  const auto error = [&](const std::string& spec) {
    return Invocation("transformapply", {Value(Shop()), Value(encoded.meta), Value(Scalar(spec))}).Error();
  };
  EXPECT_EQ(error("{bin: [{name: colour, method: equi-width}]}"),
            "transformapply: 'red·1' in column colour of the metadata is not of the form lower·upper");
  EXPECT_EQ(error("{hash: [colour], K: 4}"),
            "transformapply: column colour of the metadata was hashed to red·1 codes, K of the spec is 4");
  EXPECT_EQ(error("{bin: [{name: price, method: equi-width}], recode: [colour]}"),
            "transformapply: column price of the metadata has no bins");
  EXPECT_EQ(error("{recode: [colour], impute: [{name: price, method: global_mean}]}"),
            "transformapply: column price of the metadata does not say what replaces missing cells");
  EXPECT_EQ(Invocation("transformdecode",
                       {Value(Rows({{1}})), Value(encoded.meta), Value(Scalar("{recode: [colour]}"))})
                .Error(),
            "transformdecode: the target has 1 columns, the metadata tell of 3");
}

}  // namespace
}  // namespace heddle::ops
