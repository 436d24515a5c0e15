// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/frame/text_column.h"
#include "ops/transform/key_table.h"
#include "ops/transform/spec.h"
#include "ops/transform/words.h"
#include "tests/reference/transform.h"
#include "tests/unit/ops/run_operator.h"

// Encoders that make several columns of a text: bags of words and word embeddings.
namespace heddle::ops {
namespace {

using testing::Invocation;
using testing::Rows;
using Texts = std::vector<std::string>;

Frame OneColumn(const std::vector<std::optional<std::string>>& cells) {
  return Frame(SchemaOfTexts(1), {*TextColumn(cells)});
}

std::vector<Value> Encode(const Frame& frame, const std::string& spec, int threads = 1) {
  Invocation call("transformencode", {Value(frame), Value(Scalar(spec))});
  const Result<std::vector<Value>> results = call.RunSeveralRows(0, 0, 0, threads);
  EXPECT_TRUE(results.ok()) << results.status().ToString();
  if (!results.ok()) return {Value(Rows({{0}})), Value(frame)};
  call.ExpectPromised(0, (*results)[0].matrix());
  return *results;
}

TEST(TransformWordsTest, WordsAreLettersBetweenOtherCharacters) {
  EXPECT_EQ(WordsOf("It's 5 o'clock; GO!"), (Texts{"it", "s", "o", "clock", "go"}));
  EXPECT_EQ(WordsOf("Äpfel,ÜBER\u00a0été"), (Texts{"äpfel", "über", "été"}));
  EXPECT_EQ(WordsOf(" 12 "), Texts());
}

TEST(TransformWordsTest, BagsCountWordsInOrderOfAppearance) {
  const std::string spec = "{ids: true, bag_of_words: [1]}";
  const std::vector<Value> encoded = Encode(OneColumn({"b a B", std::nullopt, "", "c, a"}), spec);
  EXPECT_TRUE(encoded[0].matrix().IsSparse());
  EXPECT_TRUE(Matrix::SameCells(encoded[0].matrix(), Rows({{2, 1, 0}, {0, 0, 0}, {0, 0, 0}, {0, 1, 1}})));
  EXPECT_TRUE(Frame::SameCells(encoded[1].frame(), OneColumn({"a·2", "b·1", "c·3"})));
  // Words that the metadata do not know are left out, and codes need not stand in order.
  const Value meta(OneColumn({"c·1", "b·2"}));
  const Value applied =
      Invocation("transformapply", {Value(OneColumn({"a b c b"})), meta, Value(Scalar(spec)), std::nullopt})
          .Run();
  EXPECT_TRUE(Matrix::SameCells(applied.matrix(), Rows({{1, 2}})));
}

TEST(TransformWordsTest, MissingTextsHaveTheWordsOfTheConstant) {
  const std::vector<Value> encoded =
      Encode(OneColumn({"a", std::nullopt}),
             "{ids: true, bag_of_words: [1], impute: [{id: 1, method: constant, value: 'none none a'}]}");
  EXPECT_TRUE(Matrix::SameCells(encoded[0].matrix(), Rows({{1, 0}, {1, 2}})));
}

// More rows than are read in one piece; any number of threads.
TEST(TransformWordsTest, BagsOfManyRowsAreThoseOfOneThread) {
  std::vector<std::optional<std::string>> cells;
  for (int i = 0; i < 10000; ++i)
    cells.push_back(std::string(1, static_cast<char>('a' + i * 7 % 26)) + " " +
                    std::string(1 + i / 3000, static_cast<char>('z' - i % 26)) + " a");
  const Frame frame = OneColumn(cells);
  const std::string spec = "{ids: true, bag_of_words: [1]}";
  const std::vector<Value> one = Encode(frame, spec), three = Encode(frame, spec, 3);
  EXPECT_TRUE(Matrix::SameCells(one[0].matrix(), three[0].matrix()));
  EXPECT_TRUE(Frame::SameCells(one[1].frame(), three[1].frame()));
  EXPECT_EQ(one[0].matrix().columns(), 4 * 26);
  for (int64_t i : {0, 5000, 9999}) {
    double words = 0;
    for (int64_t j = 0; j < one[0].matrix().columns(); ++j) words += one[0].matrix().At(i, j);
    EXPECT_EQ(words, 3) << i;
  }
}

TEST(TransformWordsTest, TokensBecomeRowsOfTheEmbedding) {
  const Frame frame(SchemaOfTexts(2), {*TextColumn(std::vector<std::optional<std::string>>{"b", "x", "a"}),
                                       *TextColumn(std::vector<std::optional<std::string>>{"1", "2", "3"})});
  const Frame meta(SchemaOfTexts(2),
                   {*TextColumn(std::vector<std::optional<std::string>>{"a·1", "b·2"}),
                    *TextColumn(std::vector<std::optional<std::string>>{std::nullopt, std::nullopt})});
  const Value spec(Scalar("{ids: true, word_embedding: [1]}"));
  const Matrix expected = Rows({{3, 0, -4, 1}, {0, 0, 0, 2}, {1, 2, 0, 3}});
  for (const Matrix& embedding : testing::Forms(Rows({{1, 2, 0}, {3, 0, -4}}))) {
    const Value applied =
        Invocation("transformapply", {Value(frame), Value(meta), spec, Value(embedding)}).Run();
    EXPECT_FALSE(applied.matrix().IsSparse());
    EXPECT_TRUE(Matrix::SameCells(applied.matrix(), expected));
  }
  EXPECT_EQ(Invocation("transformapply", {Value(frame), Value(meta), spec, std::nullopt}).Error(),
            "transformapply: the spec has 'word_embedding', but the argument embedding is missing");
  EXPECT_EQ(Invocation("transformcolmap", {Value(meta), spec}).Error(),
            "transformcolmap: the columns of 'word_embedding' are as many as those of the embedding");
}

TEST(TransformWordsTest, TheMaskTellsCodesAndDummies) {
  const Frame meta(SchemaOfTexts(3),
                   {*TextColumn(std::vector<std::optional<std::string>>{"a·1", "b·2"}),
                    *TextColumn(std::vector<std::optional<std::string>>{std::nullopt, std::nullopt}),
                    *TextColumn(std::vector<std::optional<std::string>>{"the·1", "cat·2"})});
  const Matrix mask =
      Invocation("getCategoricalMask",
                 {Value(meta), Value(Scalar("{ids: true, dummycode: [1], bag_of_words: [3]}"))})
          .RunMatrix();
  EXPECT_TRUE(Matrix::SameCells(mask, Rows({{1, 1, 0, 0, 0}})));
  const std::string codes = "{ids: true, dummycode: [1], hash: [2], K: 7}";
  EXPECT_TRUE(
      Matrix::SameCells(Invocation("getCategoricalMask", {Value(meta), Value(Scalar(codes))}).RunMatrix(),
                        reference::CategoricalMask(meta, codes)));
}

TEST(TransformWordsTest, SpecsAreCheckedWithoutTheFrame) {
  EXPECT_TRUE(
      CheckTransformSpec("f", "{recode: [a, b], dummycode: [c], bin: [{name: d, method: equi-width}]}").ok());
  EXPECT_EQ(CheckTransformSpec("f", "{ids: true, recode: [2], bin: [{id: 2, method: equi-width}]}").message(),
            "f: column 2 has two encoders, recode and bin");
  EXPECT_EQ(CheckTransformSpec("f", "{ids: 'TRUE', recode: [a]}").message(),
            "f: 'a' in 'recode' of the spec is no number of a column");
  const std::optional<ColumnFunction> function =
      ColumnFunctionOf("{ids: true, recode: [1], udf: {name: scale, ids: ['2', 3, 2]}}");
  ASSERT_TRUE(function.has_value());
  EXPECT_EQ(function->name, "scale");
  EXPECT_EQ(function->columns, 2);
  EXPECT_FALSE(ColumnFunctionOf("{recode: [a]}").has_value());
}

// Texts that differ in the last of their bytes, of every length around a word of the machine.
TEST(TransformWordsTest, HashesOfTextsDiffer) {
  for (size_t size = 1; size <= 20; ++size) {
    std::string text(size, 'a');
    const uint64_t hash = HashOf(std::string_view(text));
    for (size_t i = 0; i < size; ++i) {
      text[i] = 'b';
      EXPECT_NE(HashOf(std::string_view(text)), hash) << size << " " << i;
      text[i] = 'a';
    }
    EXPECT_EQ(HashOf(std::string_view(text)), hash);
  }
}

}  // namespace
}  // namespace heddle::ops
