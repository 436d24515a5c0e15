// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_dates.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/text/utf8.h"
#include "ops/map/java_date_format.h"
#include "ops/map/java_regex.h"
#include "ops/text/java_hash_map.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

using Text = std::u16string;

// Texts, in small letters, and their form. No text matches two of them.
constexpr std::pair<std::u16string_view, std::u16string_view> kForms[] = {
    {u"\\d{4}-\\d{1,2}-\\d{1,2}\\s\\d{1,2}:\\d{2}:\\d{2}", u"yyyy-MM-dd HH:mm:ss"},
    {u"\\d{1,2}-\\d{1,2}-\\d{4}\\s\\d{1,2}:\\d{2}:\\d{2}", u"dd-MM-yyyy HH:mm:ss"},
    {u"\\d{1,2}/\\d{1,2}/\\d{4}\\s\\d{1,2}:\\d{2}:\\d{2}", u"MM/dd/yyyy HH:mm:ss"},
    {u"\\d{4}/\\d{1,2}/\\d{1,2}\\s\\d{1,2}:\\d{2}:\\d{2}", u"yyyy/MM/dd HH:mm:ss"},
    {u"\\d{1,2}\\s[a-z]{3}\\s\\d{4}\\s\\d{1,2}:\\d{2}:\\d{2}", u"dd MMM yyyy HH:mm:ss"},
    {u"\\d{1,2}\\s[a-z]{4,}\\s\\d{4}\\s\\d{1,2}:\\d{2}:\\d{2}", u"dd MMMM yyyy HH:mm:ss"},
    {u"\\d{8}", u"yyyyMMdd"},
    {u"\\d{1,2}-\\d{1,2}-\\d{4}", u"dd-MM-yyyy"},
    {u"\\d{4}-\\d{1,2}-\\d{1,2}", u"yyyy-MM-dd"},
    {u"\\d{1,2}/\\d{1,2}/\\d{4}", u"MM/dd/yyyy"},
    {u"\\d{4}/\\d{1,2}/\\d{1,2}", u"yyyy/MM/dd"},
    {u"\\d{1,2}\\s[a-z]{3}\\s\\d{4}", u"dd MMM yyyy"},
    {u"\\d{1,2}\\s[a-z]{4,}\\s\\d{4}", u"dd MMMM yyyy"},
    {u"\\d{12}", u"yyyyMMddHHmm"},
    {u"\\d{8}\\s\\d{4}", u"yyyyMMdd HHmm"},
    {u"\\d{1,2}-\\d{1,2}-\\d{4}\\s\\d{1,2}:\\d{2}", u"dd-MM-yyyy HH:mm"},
    {u"\\d{4}-\\d{1,2}-\\d{1,2}\\s\\d{1,2}:\\d{2}", u"yyyy-MM-dd HH:mm"},
    {u"\\d{1,2}/\\d{1,2}/\\d{4}\\s\\d{1,2}:\\d{2}", u"MM/dd/yyyy HH:mm"},
    {u"\\d{4}/\\d{1,2}/\\d{1,2}\\s\\d{1,2}:\\d{2}", u"yyyy/MM/dd HH:mm"},
    {u"\\d{1,2}\\s[a-z]{3}\\s\\d{4}\\s\\d{1,2}:\\d{2}", u"dd MMM yyyy HH:mm"},
    {u"\\d{1,2}\\s[a-z]{4,}\\s\\d{4}\\s\\d{1,2}:\\d{2}", u"dd MMMM yyyy HH:mm"},
    {u"\\d{14}", u"yyyyMMddHHmmss"},
    {u"\\d{8}\\s\\d{6}", u"yyyyMMdd HHmmss"},
};
constexpr size_t kFormCount = std::size(kForms);

struct Form {
  JavaRegex expression;
  JavaDateFormat format;
};

const std::vector<Form>& Forms() {
  static const auto* const forms = [] {
    auto* made = new std::vector<Form>();
    for (const auto& [expression, format] : kForms)
      made->push_back({*JavaRegex::Parse(expression), *JavaDateFormat::Parse(format)});
    return made;
  }();
  return *forms;
}

// The index of a text's form, kFormCount where it has none.
size_t FindForm(const Text& text) {
  Text small = text;
  std::transform(small.begin(), small.end(), small.begin(), LowerCase);
  size_t i = 0;
  while (i < kFormCount && !Forms()[i].expression.MatchesAll(small)) ++i;
  return i;
}

Result<size_t> FormOf(const Text& text) {
  const size_t form = FindForm(text);
  if (form < kFormCount) return form;
  return FailedPrecondition("'{}' has no form of a date that map() knows", ShownInLine(ToUtf8(text), 40));
}

Result<int64_t> ReadDate(const Text& text) {
  HEDDLE_ASSIGN_OR_RETURN(const size_t form, FormOf(text));
  return Forms()[form].format.Read(text);
}

// Cells that hold no date, and are not looked at.
bool IsBlank(const Text& text) {
  Text small;
  for (const char16_t unit : text)
    if (unit > u' ') small.push_back(LowerCase(unit));
  return small.empty() || text == u"0" || (small == u"null" && small.size() == text.size());
}

// The form of most dates. Of several SystemDS takes the one that a HashMap of their names has last.
size_t MostFrequent(const std::vector<size_t>& counts) {
  std::vector<size_t> order(kFormCount);
  for (size_t i = 0; i < kFormCount; ++i) order[i] = i;
  const auto by_bucket = [&](auto text_of) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return JavaBucketOf(text_of(a), kFormCount) < JavaBucketOf(text_of(b), kFormCount);
    });
  };
  by_bucket([](size_t i) { return "^" + ToUtf8(kForms[i].first) + "$"; });
  by_bucket([](size_t i) { return ToUtf8(kForms[i].second); });
  size_t best = order[0];
  for (const size_t form : order)
    if (counts[form] >= counts[best]) best = form;
  return best;
}

Result<JavaValue> Rewritten(Result<int64_t> date, const Text& pattern) {
  HEDDLE_RETURN_IF_ERROR(date.status());
  HEDDLE_ASSIGN_OR_RETURN(const JavaDateFormat format, JavaDateFormat::Parse(pattern));
  return JavaValue(format.Write(*date));
}

}  // namespace

Result<JavaValue> MillisecondsOfDate(const JavaCall& call) {
  if (call.size() == 1) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t date, ReadDate(call.Text(0)));
    return JavaValue(date);
  }
  HEDDLE_ASSIGN_OR_RETURN(const JavaDateFormat format, JavaDateFormat::Parse(call.Text(1)));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t date, format.Read(call.Text(0)));
  return JavaValue(date);
}

Result<JavaValue> RewriteDate(const JavaCall& call) {
  return Rewritten(ReadDate(call.Text(0)), call.Text(1));
}

Result<JavaValue> RewriteDateOfForm(const JavaCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const JavaDateFormat format, JavaDateFormat::Parse(call.Text(1)));
  return Rewritten(format.Read(call.Text(0)), call.Text(2));
}

Result<JavaValue> DateOfMilliseconds(const JavaCall& call) {
  // A hundred million years are enough for dates, and few enough for counting days.
  constexpr int64_t kMost = int64_t{100'000'000} * 366 * 86'400'000;
  const int64_t date = std::get<int64_t>(call[0]);
  if (date > kMost || date < -kMost) return FailedPrecondition("{} milliseconds are no date", date);
  return Rewritten(date, call.Text(1));
}

Result<JavaValue> IsDate(const JavaCall& call) {
  return JavaValue(Text(FindForm(call.Text(0)) < kFormCount ? u"1" : u"0"));
}

Result<JavaValue> AddTimeToDate(const JavaCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const size_t form, FormOf(call.Text(0)));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t date, Forms()[form].format.Read(call.Text(0)));
  const int64_t amount = std::get<int32_t>(call[1]);
  const Text& unit = call.Text(2);
  CivilTime time = CivilTimeOf(date);
  if (unit == u"M" || unit == u"y") {
    // The 31st of January and a month is the last day of February.
    const int64_t months = time.year * 12 + time.month - 1 + amount * (unit == u"M" ? 1 : 12);
    if (months < 0) return FailedPrecondition("addTimeToDate: the date lies before the year 0");
    time.year = months / 12;
    time.month = months % 12 + 1;
    time.day = std::min(time.day, DaysOf(time.year, time.month));
    return JavaValue(Forms()[form].format.Write(MillisecondsOf(time)));
  }
  const int64_t length = unit == u"ms"  ? 1
                         : unit == u"m" ? 60'000
                         : unit == u"H" ? 3'600'000
                         : unit == u"d" ? 86'400'000
                         : unit == u"w" ? 604'800'000
                                        : 1000;
  return JavaValue(Forms()[form].format.Write(date + amount * length));
}

Result<JavaValue> DatesOfOneForm(const JavaCall& call) {
  JavaTexts texts = std::get<JavaTexts>(call[0]);
  std::vector<size_t> forms(texts.size(), kFormCount);
  std::vector<size_t> counts(kFormCount, 0);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (IsBlank(texts[i])) continue;
    HEDDLE_ASSIGN_OR_RETURN(forms[i], FormOf(texts[i]));
    ++counts[forms[i]];
  }
  const JavaDateFormat& wanted = Forms()[MostFrequent(counts)].format;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (forms[i] == kFormCount) {
      texts[i] = kJavaNull;
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(const int64_t date, Forms()[forms[i]].format.Read(texts[i]));
    texts[i] = wanted.Write(date);
  }
  return JavaValue(std::move(texts));
}

Result<JavaValue> MillisecondsOfDates(const JavaCall& call) {
  JavaTexts texts = std::get<JavaTexts>(call[0]);
  for (Text& text : texts) {
    if (IsBlank(text)) {
      text = kJavaNull;
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(const int64_t date, ReadDate(text));
    text = ToUtf16(fmt::format("{}", date));
  }
  return JavaValue(std::move(texts));
}

}  // namespace heddle::ops
