// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/lexer.h"

#include <gtest/gtest.h>

#include <limits>

namespace heddle::compiler {
namespace {

using Kind = Token::Kind;

// The only token of a text.
Token Only(std::string_view text) {
  std::vector<Token> tokens = Tokenize(text);
  EXPECT_EQ(tokens.size(), 2u) << text;
  return std::move(tokens[0]);
}

std::string Problem(const Token& token) { return token.problem == nullptr ? "" : token.problem->message; }

std::string Texts(std::string_view text) {
  std::string result;
  for (const Token& token : Tokenize(text)) {
    if (token.kind != Kind::kEnd) result += (result.empty() ? "" : "·") + std::string(token.text);
  }
  return result;
}

TEST(LexerTest, TakesTheLongestSymbol) {
  EXPECT_EQ(Texts("a%*%b%/%c%%d"), "a·%*%·b·%/%·c·%%·d");
  EXPECT_EQ(Texts("a<-b<=c< -d"), "a·<-·b·<=·c·<·-·d");
  EXPECT_EQ(Texts("a&&b&c||d|e"), "a·&&·b·&·c·||·d·|·e");
  EXPECT_EQ(Texts("a+=b==c!=!d"), "a·+=·b·==·c·!=·!·d");
}

TEST(LexerTest, CommentsAndBlanksSeparateOnly) {
  EXPECT_EQ(Texts("a # b\n/* c\n * d */e/f\r\n\tg#"), "a·e·/·f·g");
  EXPECT_EQ(Texts("a /* not /* nested */ b"), "a·b");
  EXPECT_EQ(Texts("/**/"), "");
}

TEST(LexerTest, DottedNamesAreAClosedList) {
  for (const char* name : {"as.scalar", "as.matrix", "as.frame", "as.list", "as.double", "as.integer",
                           "as.logical", "as.boolean", "index.return", "empty.return", "lower.tail",
                           "lower.tri", "upper.tri", "is.na", "is.nan", "is.infinite"}) {
    const Token token = Only(name);
    EXPECT_EQ(token.kind, Kind::kIdentifier);
    EXPECT_EQ(token.text, name);
    EXPECT_EQ(Problem(token), "");
  }
  EXPECT_EQ(Problem(Only("a.b")), "a name must not contain a dot: 'a.b'");
  EXPECT_EQ(Only("as.scalarX").problem->suggestion, "as.scalar");
}

TEST(LexerTest, NamespacesBelongToTheName) {
  const Token token = Only("n1_s::f_2");
  EXPECT_EQ(token.name_space, "n1_s");
  EXPECT_EQ(token.text, "f_2");
  EXPECT_EQ(Texts("a :: b"), "a·:·:·b");
  EXPECT_EQ(Texts("a:b"), "a·:·b");
}

TEST(LexerTest, ReadsNumbers) {
  EXPECT_EQ(Only("0").value, Scalar(0));
  EXPECT_EQ(Only("007").value, Scalar(7));
  EXPECT_EQ(Only("9223372036854775807").value, Scalar(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(Only("1.").value, Scalar(1.0));
  EXPECT_EQ(Only(".5").value, Scalar(0.5));
  EXPECT_EQ(Only("1e3").value, Scalar(1000.0));
  EXPECT_EQ(Only("1.e+3").value, Scalar(1000.0));
  EXPECT_EQ(Only("12.5E-1").value, Scalar(1.25));
  EXPECT_EQ(Only(".5e1").value, Scalar(5.0));
  EXPECT_EQ(Only("1e999").value, Scalar(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(Only("1e-999").value, Scalar(0.0));
  EXPECT_EQ(Texts("1..2"), "1.·.2");
}

TEST(LexerTest, RejectsWhatOnlyLooksLikeANumber) {
  EXPECT_EQ(Problem(Only("9223372036854775808")), "an integer must fit 64 bits: 9223372036854775808");
  EXPECT_EQ(Problem(Only("10L")), "a number has no suffix 'L': 10L");
  EXPECT_EQ(Problem(Only("1.5l")), "a number has no suffix 'l': 1.5l");
  EXPECT_EQ(Problem(Only("2x")), "a name must begin with a letter: 2x");
  EXPECT_EQ(Problem(Only("1e")), "a name must begin with a letter: 1e");
  EXPECT_EQ(Problem(Only("_x")), "a name must begin with a letter: '_x'");
}

TEST(LexerTest, EscapesAreReplacedTextually) {
  EXPECT_EQ(Only(R"("a\tb\n\b\f\r")").value, Scalar("a\tb\n\b\f\r"));
  EXPECT_EQ(Only(R"("it's \"x\" \'y\'")").value, Scalar("it's \"x\" 'y'"));
  EXPECT_EQ(Only(R"('say "x"')").value, Scalar("say \"x\""));
  EXPECT_EQ(Only("\"two\nlines\"").value, Scalar("two\nlines"));
  // A doubled backslash stays two characters ...
  EXPECT_EQ(Only(R"("a\\b")").kind, Kind::kLiteral);
  EXPECT_EQ(Only(R"("C:\\ ")").value, Scalar("C:\\\\ "));
  // ... unless its second half begins another escape.
  EXPECT_EQ(Only(R"("\\n")").value, Scalar("\\\n"));
  EXPECT_EQ(Only(R"("a\\")").value, Scalar("a\\\\"));
  EXPECT_EQ(Problem(Only(R"("a\qb")")), "unknown escape '\\q' in a string");
}

TEST(LexerTest, AStringThatIsNotClosedEndsWithItsLine) {
  const std::vector<Token> tokens = Tokenize("x = \"abc\ny = 1");
  ASSERT_EQ(tokens.size(), 7u);
  EXPECT_EQ(tokens[2].kind, Kind::kInvalid);
  EXPECT_EQ(Problem(tokens[2]), "this string is not closed: no \" follows");
  EXPECT_EQ(tokens[3].text, "y");
  EXPECT_TRUE(tokens[3].first_on_line);
}

TEST(LexerTest, ReadsArgumentsOfTheScript) {
  EXPECT_EQ(Only("$name_1").text, "name_1");
  EXPECT_EQ(Only("$12").text, "12");
  EXPECT_EQ(Only("$").kind, Kind::kInvalid);
}

TEST(LexerTest, KnowsReservedWordsAndBooleans) {
  EXPECT_EQ(Only("TRUE").value, Scalar(true));
  EXPECT_EQ(Only("FALSE").value, Scalar(false));
  EXPECT_EQ(Only("true").kind, Kind::kIdentifier);
  EXPECT_EQ(Only("matrix").kind, Kind::kIdentifier);
  for (const char* word : {"source",
                           "as",
                           "setwd",
                           "ifdef",
                           "if",
                           "else",
                           "for",
                           "parfor",
                           "while",
                           "in",
                           "function",
                           "return",
                           "externalFunction",
                           "implemented",
                           "int",
                           "integer",
                           "string",
                           "boolean",
                           "double",
                           "unknown",
                           "Int",
                           "Integer",
                           "String",
                           "Boolean",
                           "Double",
                           "Unknown"}) {
    EXPECT_EQ(Only(word).kind, Kind::kKeyword) << word;
    EXPECT_TRUE(IsReservedWord(word)) << word;
  }
  EXPECT_FALSE(IsReservedWord(""));
}

TEST(LexerTest, ColumnsCountCharacters) {
  const std::vector<Token> tokens = Tokenize("\"äöü€\" x\r\n\ty");
  ASSERT_EQ(tokens.size(), 4u);
  EXPECT_EQ(tokens[1].range, (SourceRange{{1, 8}, {1, 9}}));
  EXPECT_EQ(tokens[2].range, (SourceRange{{2, 2}, {2, 3}}));
  EXPECT_EQ(tokens[3].range, (SourceRange{{2, 3}, {2, 3}}));  // the end stands behind the last token
}

TEST(LexerTest, AFullStopBehindAStatementIsLeftOut) {
  std::vector<SourceRange> stray;
  const std::vector<Token> tokens = Tokenize("print(x). \ny = f(.5).\nz = 1.", &stray);
  EXPECT_EQ(stray, (std::vector<SourceRange>{{{1, 9}, {1, 10}}, {{2, 10}, {2, 11}}}));
  EXPECT_EQ(tokens.size(), 14u);
  EXPECT_NE(Tokenize("l[1].x")[4].problem, nullptr);
  EXPECT_NE(Tokenize("f(x).y")[4].problem, nullptr);
}

TEST(LexerTest, SkipsAByteOrderMark) { EXPECT_EQ(Tokenize("\xEF\xBB\xBFx")[0].range.begin, (Place{1, 1})); }

TEST(LexerTest, NamesTheBytesThatBeginNoToken) {
  EXPECT_EQ(Problem(Only(std::string_view("\0", 1))), "unexpected control character 0x00");
  EXPECT_EQ(Problem(Only("\xFF")), "unexpected byte 0xff: the script is not valid UTF-8 text");
  EXPECT_EQ(Problem(Only("\xC3\xA9")), "unexpected character '\xC3\xA9'");
  EXPECT_EQ(Problem(Only("@~@")), "unexpected character '@'");
  EXPECT_EQ(Problem(Only("/* open")), "this comment is not closed");
}

}  // namespace
}  // namespace heddle::compiler
