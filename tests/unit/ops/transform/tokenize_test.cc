// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/frame/text_column.h"
#include "ops/transform/tokenizer.h"
#include "tests/reference/transform.h"
#include "tests/unit/ops/run_operator.h"

// What is expected was printed by SystemDS 3.4, but for the positions of words that stand in the text before,
// too ("foo foo"): it gives all of them the first place.
namespace heddle::ops {
namespace {

using testing::Invocation;
using Cells = std::vector<std::optional<std::string>>;
using Texts = std::vector<std::string>;

Frame Documents() {
  return Frame(SchemaOfTexts(3), {*TextColumn(Cells{"1", "2", "3", "4"}),
                                  *TextColumn(Cells{"banana a foo foo bar Bar", " hello", std::nullopt,
                                                    "the quick brown fox jumps over the lazy dog the end"}),
                                  *TextColumn(Cells{"x", "y", "z", "z"})});
}

// The rows of the result as "a|b|c"; "null" for missing cells.
Texts Tokenize(const std::string& spec, std::optional<int64_t> most) {
  std::optional<Value> limit;
  if (most) limit = Value(Scalar(*most));
  Invocation call("tokenize", {Value(Documents()), Value(Scalar(spec)), limit});
  const Value made = call.Run(), again = call.Run(/*threads=*/3);
  if (!made.IsFrame()) return {};
  EXPECT_TRUE(Frame::SameCells(made.frame(), again.frame()));
  if (call.node.info.schema != nullptr) {
    EXPECT_EQ(*call.node.info.schema, *made.frame().schema());
  }
  Texts rows;
  for (int64_t i = 0; i < made.frame().rows(); ++i) {
    std::string row;
    for (int64_t j = 0; j < made.frame().columns(); ++j) {
      if (j > 0) row += "|";
      row += TextOfCell(made.frame(), i, j).value_or("null");
    }
    rows.push_back(row);
  }
  return rows;
}

TEST(TokenizeTest, CountsStandInTheOrderOfAHashMap) {
  EXPECT_EQ(Tokenize("{algo: split, out: count, tokenize_col: 2, id_cols: [1]}", 10),
            (Texts{"1|banana|1", "1|a|1", "1|bar|1", "1|Bar|1", "1|foo|2", "2|hello|1", "4|the|3", "4|over|1",
                   "4|quick|1", "4|lazy|1", "4|jumps|1", "4|end|1", "4|brown|1", "4|dog|1", "4|fox|1"}));
}

TEST(TokenizeTest, SortedCountsArePaddedToTheLimit) {
  const std::string spec =
      "{algo: split, out: count, out_params: {sort_alpha: true}, tokenize_col: 2, id_cols: [1], apply_padding: true}";
  EXPECT_EQ(Tokenize(spec, 3), (Texts{"1|Bar|1", "1|a|1", "1|banana|1", "2|hello|1", "2||-1", "2||-1",
                                      "3||-1", "3||-1", "3||-1", "4|brown|1", "4|dog|1", "4|end|1"}));
}

TEST(TokenizeTest, PositionsAreThoseOfTheWords) {
  EXPECT_EQ(Tokenize("{algo: split, out: position, tokenize_col: 2, id_cols: [1, 3]}", 4),
            (Texts{"1|x|1|banana", "1|x|8|a", "1|x|10|foo", "1|x|14|foo", "2|y|2|hello", "4|z|1|the",
                   "4|z|5|quick", "4|z|11|brown", "4|z|17|fox"}));
}

TEST(TokenizeTest, NgramsJoinNeighbours) {
  const std::string spec =
      "{algo: ngram, algo_params: {min_gram: 2, max_gram: 3}, out: position, tokenize_col: 2, id_cols: []}";
  EXPECT_EQ(
      Tokenize(spec, 5),
      (Texts{"1|\"('banana', 'a')\"", "8|\"('a', 'foo')\"", "10|\"('foo', 'foo')\"", "14|\"('foo', 'bar')\"",
             "18|\"('bar', 'Bar')\"", "1|\"('the', 'quick')\"", "5|\"('quick', 'brown')\"",
             "11|\"('brown', 'fox')\"", "17|\"('fox', 'jumps')\"", "21|\"('jumps', 'over')\""}));
}

TEST(TokenizeTest, NgramsOfLettersCutEachToken) {
  const std::string spec =
      "{algo: ngram, algo_params: {min_gram: 2, max_gram: 3, ngram_type: token, regex: '[ ,]'}, out: position, "
      "tokenize_col: 2, id_cols: [1]}";
  EXPECT_EQ(Tokenize(spec, 6), (Texts{"1|1|ba", "1|2|an", "1|3|na", "1|4|an", "1|5|na", "1|1|ban", "2|2|he",
                                      "2|3|el", "2|4|ll", "2|5|lo", "2|2|hel", "2|3|ell", "4|1|th", "4|2|he",
                                      "4|1|the", "4|5|qu", "4|6|ui", "4|7|ic"}));
}

TEST(TokenizeTest, HashesCountFeatures) {
  const std::string spec =
      "{algo: split, out: hash, out_params: {num_features: 7}, tokenize_col: 2, id_cols: [1]";
  EXPECT_EQ(Tokenize(spec + "}", 4),
            (Texts{"1|5|2", "1|6|1", "1|7|3", "2|1|1", "4|2|4", "4|3|1", "4|4|2", "4|5|1"}));
  EXPECT_EQ(Tokenize(spec + ", apply_padding: true}", 2),
            (Texts{"1|5|2", "1|6|1", "2|1|1", "2|0|0", "3|0|0", "3|0|0", "4|2|4", "4|3|1"}));
  EXPECT_EQ(Tokenize(spec + ", format_wide: true}", 4),
            (Texts{"1|0|0|0|0", "2|1|0|0|0", "3|0|0|0|0", "4|0|4|1|2"}));
}

TEST(TokenizeTest, WideRowsHoldTheFirstTokens) {
  const std::string spec = "{algo: split, out: position, tokenize_col: 2, id_cols: [1], format_wide: true";
  EXPECT_EQ(Tokenize(spec + "}", 2), (Texts{"1|banana|a", "2|hello|null", "3|null|null", "4|the|quick"}));
  EXPECT_EQ(Tokenize(spec + ", apply_padding: true}", 2),
            (Texts{"1|banana|a", "2|hello|", "3||", "4|the|quick"}));
}

// Texts of up to 60 different words, so that the maps of the counts grow.
TEST(TokenizeTest, KernelsAgreeWithLoops) {
  Cells ids, texts;
  for (int i = 0; i < 300; ++i) {
    ids.push_back(std::to_string(i));
    std::string text(static_cast<size_t>(i % 3), ' ');
    for (int k = 0; k < i % 97; ++k)
      text += "w" + std::to_string((i * 31 + k * k) % 60) + std::string(1 + k % 2, ' ');
    texts.push_back(text);
  }
  const Value documents(Frame(SchemaOfTexts(2), {*TextColumn(ids), *TextColumn(texts)}));
  for (const std::string out : {"count", "count, out_params: {sort_alpha: true}", "position",
                                "hash, out_params: {num_features: 13}"}) {
    const std::string spec = "{algo: split, out: " + out + ", tokenize_col: 2, id_cols: [1]}";
    for (const int64_t most : {int64_t{1000}, int64_t{5}}) {
      const Value made =
          Invocation("tokenize", {documents, Value(Scalar(spec)), Value(Scalar(most))}).Run(/*threads=*/2);
      EXPECT_TRUE(Frame::SameCells(made.frame(), reference::Tokenize(documents.frame(), spec, most))) << spec;
    }
  }
}

TEST(TokenizeTest, WithoutALimitAllTokensStay) {
  EXPECT_EQ(Tokenize("{algo: split, out: position, tokenize_col: 2, id_cols: []}", std::nullopt).size(), 18u);
}

// Matches of nothing cut between characters, as String.split() does.
TEST(TokenizeTest, SeparatorsAreThoseOfSplit) {
  const auto tokens = [](std::string_view text, const std::string& regex) {
    const Result<TokenizeSpec> spec =
        ParseTokenizeSpec("tokenize", "{algo: split, algo_params: {regex: '" + regex +
                                          "'}, out: count, tokenize_col: 1, id_cols: []}");
    EXPECT_TRUE(spec.ok()) << spec.status().ToString();
    Texts texts;
    const std::vector<Token> found = *TokensOf(text, *spec);
    for (const Token& token : found) texts.push_back(fmt::format("{}@{}", token.text, token.position));
    return texts;
  };
  EXPECT_EQ(tokens("a,b;;c", "[,;]"), (Texts{"a@0", "b@2", "c@5"}));
  EXPECT_EQ(tokens("aéb", ""), (Texts{"a@0", "é@1", "b@2"}));
  EXPECT_EQ(tokens("", ","), Texts());
  EXPECT_EQ(tokens("xx", "x"), Texts());
  EXPECT_EQ(tokens("😀 a", "\\s+"), (Texts{"😀@0", "a@3"}));
}

TEST(TokenizeTest, ErrorsOfSpecsSayWhatIsWrong) {
  const std::string tail = ", tokenize_col: 2, id_cols: [1]}";
  const std::pair<std::string, std::string> cases[] = {
      {"split", "tokenize: the spec is not a JSON object: 'split'"},
      {"{out: count" + tail, "tokenize: the spec has no 'algo'"},
      {"{algo: split" + tail, "tokenize: the spec has no 'out'"},
      {"{algo: split, out: count, id_cols: [1]}", "tokenize: the spec has no 'tokenize_col'"},
      {"{algo: split, out: count, tokenize_col: 1}", "tokenize: the spec has no 'id_cols'"},
      {"{algo: word, out: count" + tail, "tokenize: 'word' is no algorithm"},
      {"{algo: split, out: counts" + tail, "tokenize: 'counts' is no output"},
      {"{algo: split, out: count, col: 1" + tail, "tokenize: 'col' is no key of a spec"},
      {"{algo: split, out: count, algo_params: {n: 2}" + tail, "tokenize: 'n' is no key of 'algo_params'"},
      {"{algo: split, out: count, algo_params: 2" + tail,
       "tokenize: 'algo_params' of the spec is not an object"},
      {"{algo: ngram, out: count, algo_params: {min_gram: 0}" + tail,
       "tokenize: 'min_gram' of the spec is 0, which is not a number from 1 to 2147483647"},
      {"{algo: ngram, out: count, algo_params: {ngram_type: word}" + tail,
       "tokenize: 'ngram_type' of the spec is 'word', neither token nor document"},
      {"{algo: split, out: count, out_params: {sort_alpha: 1}" + tail,
       "tokenize: 'sort_alpha' of the spec is not true or false"},
      {"{algo: split, out: count, tokenize_col: 2, id_cols: 1}",
       "tokenize: 'id_cols' of the spec is not a list"},
      {"{algo: split, out: count, tokenize_col: 2, id_cols: [0]}",
       "tokenize: '0' in 'id_cols' of the spec is no number of a column"},
      {"{algo: split, out: count, tokenize_col: 4, id_cols: [1]}",
       "tokenize: the spec speaks of column 4, the frame has 3"},
      {"{algo: split, out: count, format_wide: true" + tail,
       "tokenize: counts of tokens have no wide format"},
      {"{algo: split, out: position, format_wide: true" + tail,
       "tokenize: max_tokens is missing, which 'format_wide' of the spec needs"},
  };
  for (const auto& [spec, message] : cases)
    EXPECT_EQ(Invocation("tokenize", {Value(Documents()), Value(Scalar(spec)), std::nullopt}).Error(),
              message)
        << spec;
}

}  // namespace
}  // namespace heddle::ops
