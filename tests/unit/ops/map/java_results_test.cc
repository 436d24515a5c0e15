// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "ops/map/java_expression.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

// The fields of a line; those behind the expression without their escapes.
std::array<std::u16string, 3> FieldsOf(const std::u16string& line) {
  std::array<std::u16string, 3> fields;
  size_t field = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == u'\t' && field < 2) {
      ++field;
    } else if (line[i] == u'\\' && field > 0) {
      constexpr std::u16string_view kLetters = u"tnr", kMeanings = u"\t\n\r";
      const char16_t letter = line.at(++i);
      const size_t known = kLetters.find(letter);
      if (letter == u'u') {
        fields[field].push_back(static_cast<char16_t>(std::stoi(ToUtf8(line.substr(i + 1, 4)), nullptr, 16)));
        i += 4;
      } else {
        fields[field].push_back(known == kLetters.npos ? letter : kMeanings[known]);
      }
    } else {
      fields[field].push_back(line[i]);
    }
  }
  return fields;
}

// "throws" of what is an error of the run; an expression that is refused gives its error.
std::u16string Applied(const std::u16string& expression, const std::u16string& cell) {
  const Result<JavaLambda> lambda = JavaLambda::Parse(ToUtf8(expression), JavaType::kString);
  if (!lambda.ok()) return u"refused: " + ToUtf16(lambda.status().message());
  const JavaValue argument = cell;
  const Result<JavaValue> value = lambda->Apply({&argument, 1});
  if (!value.ok()) return value.status().code() == StatusCode::kFailedPrecondition ? u"throws" : u"a fault";
  return TextOf(*value);
}

// java_results.py wrote what Java gives.
TEST(JavaResultsTest, EveryExpressionGivesWhatJavaGives) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/tests/unit/ops/map/java_results.txt");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    ++cases;
    const auto [expression, cell, expected] = FieldsOf(ToUtf16(line));
    EXPECT_EQ(ToUtf8(Applied(expression, cell)), ToUtf8(expected)) << line;
  }
  EXPECT_GT(cases, 1000);
}

}  // namespace
}  // namespace heddle::ops
