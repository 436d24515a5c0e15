// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_expression.h"

#include <gtest/gtest.h>

#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

// What the expression gives for a cell, as text, or its error.
std::string Applied(std::string_view expression, std::string_view cell) {
  const Result<JavaLambda> lambda = JavaLambda::Parse(expression, JavaType::kString);
  if (!lambda.ok()) return lambda.status().message();
  const JavaValue argument = ToUtf16(cell);
  const Result<JavaValue> value = lambda->Apply({&argument, 1});
  return value.ok() ? ToUtf8(TextOf(*value)) : value.status().message();
}

std::string AppliedToTexts(std::string_view expression, JavaTexts cells) {
  const Result<JavaLambda> lambda = JavaLambda::Parse(expression, JavaType::kStrings);
  if (!lambda.ok()) return lambda.status().message();
  const JavaValue argument = std::move(cells);
  const Result<JavaValue> value = lambda->Apply({&argument, 1});
  return value.ok() ? ToUtf8(TextOf(*value)) : value.status().message();
}

TEST(JavaExpressionTest, GivesWhatJavaGives) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"x -> x", "a", "a"},
      {"x -> x.length()", "h\u00e9\U0001F600", "4"},
      {"x -> x.toLowerCase()", "ABC \u00c4\u0416", "abc \u00e4\u0436"},
      {"x->x.toUpperCase()", "stra\u00dfe", "STRASSE"},
      {"x -> x.replace(\"aa\", \"b\")", "aaaa a", "bb a"},
      {"x -> x.replace(\"\", \"-\")", "ab", "-a-b-"},
      {"x -> x.replace('a', 'b')", "banana", "bbnbnb"},
      {"x -> x.replaceAll(\"[.]\", \"\")", "a.b.", "ab"},
      {"x -> x.replaceAll(\"[^a-zA-Z\\\\s]\", \" \")", "a1 b!", "a  b "},
      {"x -> x.replaceAll(\"(\\\\d)(\\\\d)\", \"$2$1\")", "12 345", "21 435"},
      {"x -> x.replaceAll(\"x*\", \"-\")", "axb", "-a--b-"},
      {"x -> x.replaceFirst(\"a\", \"\\\\$\")", "aa", "$a"},
      {"x -> x.split(\",\")[1]", "a,b,c", "b"},
      {"x -> x.split(\",\").length", "a,b,,", "2"},
      {"x -> x.split(\",\", -1).length", "a,b,,", "4"},
      {"x -> x.split(\",\", 2)[1]", "a,b,c", "b,c"},
      {"x -> x.split(\"\").length", "abc", "3"},
      {"x -> x.split(\",\").length", "", "1"},
      {"x -> x.split(\",\").length", ",", "0"},
      {"x -> x.substring(1, 3)", "abcd", "bc"},
      {"x -> x.substring(4)", "abcd", ""},
      {"x -> x.charAt(1)", "abc", "b"},
      {"x -> x.charAt(1) + 1", "abc", "99"},
      {"x -> \"\" + x.charAt(1) + 1", "abc", "b1"},
      {"x -> x.indexOf(\"c\") + x.lastIndexOf('a')", "abca", "5"},
      {"x -> x.trim().isEmpty()", " \t", "true"},
      {"s -> s.equals(\"to\") ? \"from\" : s", "to", "from"},
      {"s -> s.equals(\"to\") ? \"from\" : s", "too", "too"},
      {"x -> x.contains(\"b\") && !x.startsWith(\"b\") || x.endsWith(\"z\")", "ab", "true"},
      {"x -> (!x.equals(\"a\") & !x.equals(\"b\")) ? x : \"0\"", "b", "0"},
      {"x -> x.equals(\"a\") | x.equals(\"b\") & x.isEmpty() | false", "a", "true"},
      {"x -> false & x.isEmpty() == false || true", "a", "true"},
      {"x -> Integer.valueOf(x) * 2 - 1", "21", "41"},
      {"x -> Integer.parseInt(x) + 1", "2147483647", "-2147483648"},
      {"x -> Long.parseLong(x) + 1", "2147483647", "2147483648"},
      {"x -> Integer.parseInt(x) / 2 + Integer.parseInt(x) % 2", "-7", "-4"},
      {"x -> Double.parseDouble(x) / 2", "5", "2.5"},
      {"x -> Double.parseDouble(x) > 3 ? 1 : 2.5", "5", "1.0"},
      {"x -> Math.max(x.length(), 3)", "ab", "3"},
      {"x -> Math.round(Double.parseDouble(x))", "-2.5", "-2"},
      {"x -> x.matches(\"[a-z]+\")", "abc", "true"},
      {"x -> x.compareTo(\"b\")", "a", "-1"},
      {"x -> x.hashCode()", "hello", "99162322"},
      {"x -> UtilFunctions.splitRecodeEntry(x)[0]", "a\u00b7b\u00b712", "a\u00b7b"},
      {"x -> Integer.valueOf(UtilFunctions.splitRecodeEntry(x)[1])", "a\u00b712", "12"},
      {"x -> UtilFunctions.getAsciiAtIdx(x, 1)", "A", "65"},
      {"x -> UtilFunctions.getAsciiAtIdx(x, 2)", "A", "0"},
      {"x -> UtilFunctions.jaccardSim(x, \"abd\")", "abc", "0.5"},
      {"x -> UtilFunctions.getWordErrorRate(x, \"a b c d\")", "a x c", "0.5"},
  };
  for (const auto& [expression, cell, expected] : cases)
    EXPECT_EQ(Applied(expression, cell), expected) << expression << " of " << cell;
}

TEST(JavaExpressionTest, RowsAreTexts) {
  EXPECT_EQ(AppliedToTexts("x -> Arrays.stream(UtilFunctions.convertStringToDoubleArray(x)).sum()",
                           {u"1", u"2.5", u"3"}),
            "6.5");
  EXPECT_EQ(AppliedToTexts("x -> UtilFunctions.convertStringToDoubleArray(x)", {u"1", u" 2.5"}),
            "[1.0, 2.5]");
  EXPECT_EQ(AppliedToTexts("x -> UtilFunctions.convertStringToDoubleArray(x)", {u"1", u"a"}),
            "convertStringToDoubleArray: 'a' is not a number");
  EXPECT_EQ(AppliedToTexts("x -> UtilFunctions.copyAsStringToArray(x, 1 + 1)", {u"a", u"b"}), "[2, 2]");
  EXPECT_EQ(AppliedToTexts("x -> new String[]{x[1], x[0] + x.length}", {u"a", u"b"}), "[b, a2]");
  EXPECT_EQ(
      AppliedToTexts("x -> new String[]{String.valueOf(UtilFunctions.getWordErrorRate(x[0], x[1])),\"\"}",
                     {u"a b", u"a b"}),
      "[0.0, ]");
  EXPECT_EQ(AppliedToTexts("x -> x[2]", {u"a", u"b"}), "element 2 of 2");
}

TEST(JavaExpressionTest, WhatDoesNotCompileIsNamedWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"x -> x.stripIndent()",
       "map: map() does not know text.stripIndent() at character 8 of the expression"},
      {"x -> x.length().toString()",
       "map: map() knows no methods of a int at character 17 of the expression"},
      {"x -> new StringBuilder(x).flip()",
       "map: map() does not know StringBuilder.flip() at character 27 of the expression"},
      {"x -> x.chars().filter(c -> c + 1).count()",
       "map: map() does not know IntStream.filter(function) at character 16 of the expression"},
      {"x -> x.trim(c -> c)",
       "map: map() knows no function that String.trim() takes here at character 13 of the expression"},
      {"x -> x.chars()", "map: a IntStream has no text at character 8 of the expression"},
      {"x -> java.util.LocalDate.parse(x)",
       "map: map() does not know java.util.LocalDate at character 6 of the expression"},
      {"x -> (float) 1", "map: map() does not know the type float at character 6 of the expression"},
      {"x -> 1 << 2.5", "map: << is not defined on a int and a double at character 8 of the expression"},
      {"x -> 3 == null", "map: == is not defined on a int and a null at character 8 of the expression"},
      {"x -> Integer.valueOf(x) == Integer.valueOf(x)",
       "map: == asks whether two values are one object; a.equals(b) compares them at character 25 of the "
       "expression"},
      {"x -> x.charAt(\"a\")",
       "map: map() does not know text.charAt(String) at character 8 of the expression"},
      {"x -> y", "map: map() does not know 'y' at character 6 of the expression"},
      {"x -> PorterStemmer.root(x)",
       "map: map() does not know PorterStemmer.root(String) at character 6 of the expression"},
      {"x.length()", "map: '->' is missing at character 2 of the expression"},
      {"x -> x == \"a\"",
       "map: == asks whether two texts are one object; a.equals(b) compares them at character 8 of the "
       "expression"},
      {"x -> x * 2", "map: * is not defined on a String and a int at character 8 of the expression"},
      {"x -> 6 & 3.5", "map: & is not defined on a int and a double at character 8 of the expression"},
      {"x -> x ? 1 : 2", "map: a condition is a boolean, not a String at character 6 of the expression"},
      {"x -> x.isEmpty() ? 1 : x",
       "map: a choice between a int and a String at character 18 of the expression"},
      {"x -> x[0]", "map: a String has no elements at character 7 of the expression"},
      {"x -> (x", "map: ')' is missing at character 8 of the expression"},
      {"x -> x x", "map: 'x' is one too many at character 8 of the expression"},
      {"x -> x \"a\nb\"", "map: '\"a b\"' is one too many at character 8 of the expression"},
      {"x -> \"a", "map: a quotation without an end at character 6 of the expression"},
      {"x -> @", "map: '@' is no part of Java that map() knows at character 6 of the expression"},
      {"x -> 3000000000", "map: a number too large for its type at character 6 of the expression"},
      {"x -> x.matches(\"(\")",
       "map: the regular expression \"(\": a ( without its ) at character 2, at character 16 of the expression"},
  };
  for (const auto& [expression, message] : cases) EXPECT_EQ(Applied(expression, "a"), message) << expression;
}

TEST(JavaExpressionTest, WhatJavaThrowsIsAnErrorOfTheRun) {
  EXPECT_EQ(Applied("x -> x.substring(5)", "abc"),
            "substring: the beginning 5 is beyond the text 'abc' of length 3");
  EXPECT_EQ(Applied("x -> x.charAt(3)", "abc"), "charAt: 3 is beyond the text 'abc' of length 3");
  EXPECT_EQ(Applied("x -> Integer.valueOf(x)", "1.5"), "'1.5' is no integer of 32 bits");
  EXPECT_EQ(Applied("x -> Integer.valueOf(x)", "2147483648"), "'2147483648' is no integer of 32 bits");
  EXPECT_EQ(Applied("x -> Integer.valueOf(x)", "-2147483648"), "-2147483648");
  EXPECT_EQ(Applied("x -> Double.valueOf(x)", "a"), "'a' is no number");
  EXPECT_EQ(Applied("x -> 1 / (x.length() - 1)", "a"), "division by zero");
  EXPECT_EQ(Applied("x -> (x.isEmpty() ? x : null).trim()", "a"),
            "null where a value is needed, at character 19 of the expression");
  EXPECT_EQ(Applied("x -> Integer.parseInt(x, 16)", "xyz"),
            "'xyz' is no integer of 32 bits with the radix 16");
  EXPECT_EQ(Applied("x -> Math.addExact(Integer.parseInt(x), 1)", "2147483647"),
            "2147483647 + 1 is no integer of 32 bits");
  EXPECT_EQ(Applied("x -> java.time.LocalDate.parse(x)", "2023-02-29"),
            "'2023-02-29': day 29 of month 2 of 2023 is no date");
  EXPECT_EQ(Applied("x -> java.time.LocalDate.parse(x)", "soon"), "'soon' is no date");
  EXPECT_EQ(Applied("x -> String.format(\"%d\", x)", "a"), "format: %d needs an integer, not the string a");
  EXPECT_EQ(Applied("x -> new StringBuilder(x).deleteCharAt(3)", "abc"),
            "deleteCharAt: 3 is beyond the text 'abc' of length 3");
  EXPECT_EQ(Applied("x -> UtilFunctions.splitRecodeEntry(x)[0]", "ab"),
            "splitRecodeEntry: 'ab' has no \u00b7 between a token and its code");
  EXPECT_EQ(Applied("x -> x.replaceAll(\"a\", \"$1\")", "a"),
            "the expression has no group that a replacement could mean with $1");
}

TEST(JavaExpressionTest, WordsThatAreNoneAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"x -> 1_", "map: a number that ends with _ at character 6 of the expression"},
      {"x -> 1.5f", "map: a float, which map() does not know, at character 6 of the expression"},
      {"x -> 1a", "map: a number that map() cannot read at character 6 of the expression"},
      {"x -> 1e999", "map: a number that map() cannot read at character 6 of the expression"},
      {"x -> 0x", "map: a number that map() cannot read at character 6 of the expression"},
      {"x -> 0x1g", "map: a number that map() cannot read at character 6 of the expression"},
      {"x -> 017", "map: an octal number at character 6 of the expression"},
      {R"(x -> "\q")",
       "map: a quotation with an escape that map() does not know at character 6 of the expression"},
      {R"(x -> "\07")",
       "map: a quotation with an escape that map() does not know at character 6 of the expression"},
      {R"(x -> "\u12")", "map: an escape without four digits at character 6 of the expression"},
      {"x -> 'ab'", "map: a character of another length than one at character 6 of the expression"},
      {"x -> x.", "map: a name is missing at character 8 of the expression"},
      {"x -> (int) x", "map: a String cannot become a int at character 6 of the expression"},
      {"x -> x.split(\",\")[1.5]", "map: an index is an int, not a double at character 19 of the expression"},
      {"x -> x.concat(", "map: the expression ends too early at character 15 of the expression"},
      {"x -> *", "map: '*' cannot stand here at character 6 of the expression"},
      {"x -> new Integer[]{1}", "map: map() does not know new Integer at character 6 of the expression"},
      {"x -> new StringBuilder(1.5)",
       "map: map() does not know new StringBuilder(double) at character 6 of the expression"},
      {"x -> new String[]{1}", "map: a String is needed, not a int at character 19 of the expression"},
      {"x -> x.matches(\"[a[b]]\")",
       "map: the regular expression \"[a[b]]\": a set of sets at character 3, at character 16 of the expression"},
  };
  for (const auto& [expression, message] : cases) EXPECT_EQ(Applied(expression, "a"), message) << expression;
  const std::string groups = std::string(300, '(') + "a" + std::string(300, ')');
  EXPECT_NE(Applied("x -> x.matches(\"" + groups + "\")", "a").find("groups nested too deep"),
            std::string::npos);
}

TEST(JavaExpressionTest, NumbersBeyondARangeAreErrorsOfTheRun) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"x -> new StringBuilder(Integer.parseInt(x))", "-1", "a StringBuilder of the capacity -1"},
      {"x -> Character.isDigit(Integer.parseInt(x))", "70000",
       "map() knows the characters from 0 to 65535, and 70000 is none of them"},
      {"x -> Character.toChars(Integer.parseInt(x)).length", "-5", "-5 is no code point"},
      {"x -> UtilFunctions.dateFormat(Long.parseLong(x), \"yyyy\")", "9000000000000000000",
       "9000000000000000000 milliseconds are no date"},
      {"x -> UtilFunctions.addTimeToDate(x, -5000, \"y\")", "2020-01-31",
       "addTimeToDate: the date lies before the year 0"},
      {"x -> java.time.LocalDate.of(Integer.parseInt(x), 1, 1)", "1000000000",
       "the year 1000000000 is not one from -999999999 to 999999999"},
      {"x -> java.time.LocalDate.of(2020, 1, 1).plusMonths(Long.parseLong(x))", "9223372036854775807",
       "a date 9223372036854775807 months later is no date"},
      {"x -> java.time.LocalDate.of(2020, 1, 1).plusDays(Long.parseLong(x))", "9223372036854775807",
       "a date 9223372036854775807 days later is no date"},
      {"x -> java.time.LocalDate.of(2020, 1, 1).plusYears(Long.parseLong(x))", "9223372036854775807",
       "a date 9223372036854775807 later is no date"},
      {"x -> java.time.Period.ofWeeks(Integer.parseInt(x))", "2000000000",
       "2000000000 weeks have more days than an int can hold"},
      {"x -> java.time.DayOfWeek.of(Integer.parseInt(x))", "8", "8 is no day of the week"},
      {"x -> Integer.parseInt(x, 99)", "1", "99 is no radix from 2 to 36"},
      {"x -> Math.negateExact(Integer.parseInt(x))", "-2147483648",
       "-(-2147483648) is no integer of 32 bits"},
      {"x -> x.chars().limit(Integer.parseInt(x)).count()", "-1", "limit: -1 is less than 0"},
      {"x -> x.chars().skip(Integer.parseInt(x)).count()", "-1", "skip: -1 is less than 0"},
      {"x -> x.chars().filter(c -> c > 200).max().getAsInt()", "a", "the stream has no element to get"},
      {"x -> Arrays.copyOfRange(x.split(\",\"), 3, 4).length", "a,b", "copyOfRange: from 3 to 4 of 2"},
      {"x -> x.substring(1, 9)", "abc", "substring: the end 9 is beyond the text 'abc' of length 3"},
      {"x -> x.repeat(Integer.parseInt(x))", "-1", "repeat: -1 is less than 0"},
      {"x -> x.repeat(Integer.parseInt(x))", "2000000000",
       "repeat: 2000000000 times a text of length 10 is too long"},
      {"x -> x.replaceAll(\"a\", \"$\")", "a", "nothing stands behind the last $ of a replacement"},
  };
  for (const auto& [expression, cell, message] : cases)
    EXPECT_EQ(Applied(expression, cell), message) << expression;
}

TEST(JavaExpressionTest, NestingHasABound) {
  const std::string open(300, '(');
  EXPECT_NE(Applied("x -> " + open + "x", "a").find("an expression nested too deep"), std::string::npos);
  std::string sum = "x -> x";
  for (int i = 0; i < 2000; ++i) sum += " + x";
  EXPECT_EQ(Applied(sum, "a"), "map: the expression has 4004 words and signs, 2000 are possible");
}

}  // namespace
}  // namespace heddle::ops
