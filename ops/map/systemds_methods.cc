// SPDX-License-Identifier: Apache-2.0
#include "core/text/double_text.h"
#include "ops/map/java_dates.h"
#include "ops/map/java_method_table.h"
#include "ops/map/porter_stemmer.h"
#include "ops/map/text_measures.h"
#include "ops/text/java_text.h"

// What SystemDS adds for scripts.
namespace heddle::ops {
namespace {

using enum JavaType;

Result<JavaValue> Stem(const JavaCall& a) { return JavaValue(StemOf(a.Text(0))); }

Result<JavaValue> SplitRecodeEntry(const JavaCall& a) {
  const size_t at = a.Text(0).rfind(u'\u00B7');
  if (at == JavaText::npos)
    return FailedPrecondition("splitRecodeEntry: '{}' has no \u00B7 between a token and its code",
                              Shown(a.Text(0)));
  return JavaValue(JavaTexts{a.Text(0).substr(0, at), a.Text(0).substr(at + 1)});
}
Result<JavaValue> UnitAt(const JavaCall& a) {
  const int64_t at = int64_t{a.Integer(1)} - 1;
  const bool is_there = at >= 0 && at < static_cast<int64_t>(a.Text(0).size());
  return JavaValue(is_there ? int32_t{a.Text(0)[static_cast<size_t>(at)]} : int32_t{0});
}
Result<JavaValue> NumbersOf(const JavaCall& a) {
  JavaDoubles numbers;
  for (const JavaText& text : std::get<JavaTexts>(a[0])) {
    const std::optional<double> number = ParseDouble(ToUtf8(text));
    if (!number) return FailedPrecondition("convertStringToDoubleArray: '{}' is not a number", Shown(text));
    numbers.push_back(*number);
  }
  return JavaValue(std::move(numbers));
}
Result<JavaValue> Copies(const JavaCall& a) {
  return JavaValue(JavaTexts(std::get<JavaTexts>(a[0]).size(), TextOf(a[1])));
}
// The words of a row, in small letters.
Result<JavaValue> WordsOf(const JavaCall& a) {
  JavaTexts words;
  bool inside = false;
  for (const JavaText& text : std::get<JavaTexts>(a[0])) {
    inside = false;
    for (const char16_t unit : text) {
      const bool is_space = unit == ' ' || (unit >= '\t' && unit <= '\r');
      if (!is_space && !inside) words.emplace_back();
      if (!is_space) words.back().push_back(LowerCase(unit));
      inside = !is_space;
    }
  }
  if (words.empty()) words.emplace_back();
  return JavaValue(std::move(words));
}
double Jaccard(const JavaText& a, const JavaText& b) { return JaccardSimilarity(a, b); }
double ErrorRate(const JavaText& a, const JavaText& b) { return WordErrorRate(a, b); }

const JavaMethod kMethods[] = {
    {"PorterStemmer", false, "stem", {kString}, kString, Stem},
    {"UtilFunctions", false, "convertStringToDoubleArray", {kStrings}, kDoubles, NumbersOf},
    {"UtilFunctions", false, "copyAsStringToArray", {kStrings, kBoolean}, kStrings, Copies},
    {"UtilFunctions", false, "copyAsStringToArray", {kStrings, kInteger}, kStrings, Copies},
    {"UtilFunctions", false, "copyAsStringToArray", {kStrings, kLong}, kStrings, Copies},
    {"UtilFunctions", false, "copyAsStringToArray", {kStrings, kDouble}, kStrings, Copies},
    {"UtilFunctions", false, "copyAsStringToArray", {kStrings, kString}, kStrings, Copies},
    {"UtilFunctions", false, "splitRecodeEntry", {kString}, kStrings, SplitRecodeEntry},
    {"UtilFunctions", false, "getAsciiAtIdx", {kString, kInteger}, kInteger, UnitAt},
    {"UtilFunctions", false, "jaccardSim", {kString, kString}, kDouble, OfTwo<JavaText, Jaccard>},
    {"UtilFunctions", false, "cleanAndTokenizeRow", {kStrings}, kStrings, WordsOf},
    {"UtilFunctions", false, "toMillis", {kString}, kLong, MillisecondsOfDate},
    {"UtilFunctions", false, "toMillis", {kString, kString}, kLong, MillisecondsOfDate},
    {"UtilFunctions", false, "dateFormat", {kString, kString}, kString, RewriteDate},
    {"UtilFunctions", false, "dateFormat", {kString, kString, kString}, kString, RewriteDateOfForm},
    {"UtilFunctions", false, "dateFormat", {kLong, kString}, kString, DateOfMilliseconds},
    {"UtilFunctions", false, "isDateColumn", {kString}, kString, IsDate},
    {"UtilFunctions", false, "addTimeToDate", {kString, kInteger, kString}, kString, AddTimeToDate},
    {"UtilFunctions", false, "getDominantDateFormat", {kStrings}, kStrings, DatesOfOneForm},
    {"UtilFunctions", false, "getTimestamp", {kStrings}, kStrings, MillisecondsOfDates},
    {"UtilFunctions", false, "getWordErrorRate", {kString, kString}, kDouble, OfTwo<JavaText, ErrorRate>},
};

}  // namespace

std::span<const JavaMethod> SystemdsMethods() { return kMethods; }

}  // namespace heddle::ops
