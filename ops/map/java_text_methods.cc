// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/map/java_method_table.h"
#include "ops/text/java_format.h"
#include "ops/text/java_text.h"
#include "ops/text/letter_case.h"

// The methods of String.
namespace heddle::ops {
namespace {

using enum JavaType;

int32_t Found(size_t at) { return at == JavaText::npos ? -1 : static_cast<int32_t>(at); }

Status Beyond(std::string_view what, int64_t position, const JavaText& text) {
  return FailedPrecondition("{} {} is beyond the text '{}' of length {}", what, position, Shown(text),
                            text.size());
}

// ---- Parts of texts.

Result<JavaValue> CharacterAt(const JavaCall& a) {
  const int32_t at = a.Integer(1);
  if (at < 0 || static_cast<size_t>(at) >= a.Text(0).size()) return Beyond("charAt:", at, a.Text(0));
  return JavaValue(a.Text(0)[static_cast<size_t>(at)]);
}

Result<JavaValue> Part(const JavaText& text, int32_t begin, int64_t end) {
  if (begin < 0 || begin > end) return Beyond("substring: the beginning", begin, text);
  if (end > static_cast<int64_t>(text.size())) return Beyond("substring: the end", end, text);
  return JavaValue(text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
}

Result<JavaValue> PartFrom(const JavaCall& a) {
  const auto size = static_cast<int64_t>(a.Text(0).size());
  if (a.Integer(1) > size) return Beyond("substring: the beginning", a.Integer(1), a.Text(0));
  return Part(a.Text(0), a.Integer(1), size);
}

Result<JavaValue> PartBetween(const JavaCall& a) { return Part(a.Text(0), a.Integer(1), a.Integer(2)); }

Result<JavaValue> Trimmed(const JavaCall& a) {
  const JavaText& text = a.Text(0);
  size_t begin = 0;
  size_t end = text.size();
  while (begin < end && text[begin] <= ' ') ++begin;
  while (end > begin && text[end - 1] <= ' ') --end;
  return JavaValue(text.substr(begin, end - begin));
}

// ---- Other texts.

JavaText Small(const JavaText& text) { return LowerCaseText(text); }
JavaText Capital(const JavaText& text) { return UpperCaseText(text); }

Result<JavaValue> ReplaceUnit(const JavaCall& a) {
  JavaText text = a.Text(0);
  std::replace(text.begin(), text.end(), std::get<char16_t>(a[1]), std::get<char16_t>(a[2]));
  return JavaValue(std::move(text));
}

Result<JavaValue> ReplaceText(const JavaCall& a) {
  const JavaText& text = a.Text(0);
  const JavaText& old = a.Text(1);
  const JavaText& fresh = a.Text(2);
  JavaText result;
  size_t at = 0;
  if (old.empty()) {  // Stands before, between and behind all characters.
    for (const char16_t unit : text) (result += fresh).push_back(unit);
    return JavaValue(result + fresh);
  }
  for (size_t found; (found = text.find(old, at)) != JavaText::npos; at = found + old.size())
    result.append(text, at, found - at).append(fresh);
  return JavaValue(result.append(text, at, JavaText::npos));
}

Result<JavaValue> Repeated(const JavaCall& a) {
  const int32_t count = a.Integer(1);
  if (count < 0) return FailedPrecondition("repeat: {} is less than 0", count);
  constexpr size_t kMostUnits = size_t{1} << 30;
  if (a.Text(0).size() * static_cast<size_t>(count) > kMostUnits)
    return ResourceExhausted("repeat: {} times a text of length {} is too long", count, a.Text(0).size());
  JavaText text;
  for (int32_t i = 0; i < count; ++i) text += a.Text(0);
  return JavaValue(std::move(text));
}

// ---- Regular expressions.

Status AppendReplacement(const JavaText& replacement, const JavaText& text, const JavaRegex& regex,
                         const JavaRegex::Match& match, JavaText* out) {
  for (size_t i = 0; i < replacement.size(); ++i) {
    const char16_t unit = replacement[i];
    if (unit != '\\' && unit != '$') {
      out->push_back(unit);
      continue;
    }
    if (++i == replacement.size())
      return FailedPrecondition("nothing stands behind the last {} of a replacement",
                                static_cast<char>(unit));
    if (unit == '\\') {
      out->push_back(replacement[i]);
      continue;
    }
    const int group = replacement[i] - '0';
    if (group < 0 || group > 9 || group > regex.groups())
      return FailedPrecondition("the expression has no group that a replacement could mean with ${}",
                                ToUtf8(JavaText(1, replacement[i])));
    const size_t begin = match[static_cast<size_t>(2 * group)];
    if (begin == JavaRegex::kNone) continue;
    out->append(text, begin, match[static_cast<size_t>(2 * group + 1)] - begin);
  }
  return OkStatus();
}

template <bool all>
Result<JavaValue> ReplaceMatches(const JavaCall& a) {
  const JavaText& text = a.Text(0);
  JavaText result;
  size_t copied = 0;
  size_t at = 0;
  JavaRegexSearch search(*a.regex, text, a.cancelled);
  while (const std::optional<JavaRegex::Match> match = at <= text.size() ? search.Find(at) : std::nullopt) {
    result.append(text, copied, (*match)[0] - copied);
    HEDDLE_RETURN_IF_ERROR(AppendReplacement(a.Text(2), text, *a.regex, *match, &result));
    copied = (*match)[1];
    at = (*match)[1] > (*match)[0] ? (*match)[1] : (*match)[1] + 1;  // An empty match is not found again.
    if (!all) break;
  }
  HEDDLE_RETURN_IF_ERROR(search.status());
  return JavaValue(result.append(text, copied, JavaText::npos));
}

// As String.split: no empty part before an empty match at the beginning; with limit 0 no empty parts at the
// end, with another at most so many parts.
Result<JavaValue> Split(const JavaCall& a, int32_t limit) {
  const JavaText& text = a.Text(0);
  JavaRegexSearch search(*a.regex, text, a.cancelled);
  JavaTexts parts;
  size_t begin = 0;
  size_t at = 0;
  while (limit <= 0 || parts.size() + 1 < static_cast<size_t>(limit)) {
    const std::optional<JavaRegex::Match> match = at <= text.size() ? search.Find(at) : std::nullopt;
    if (!match) break;
    const auto [from, to] = std::pair((*match)[0], (*match)[1]);
    at = to > from ? to : to + 1;
    if (begin == 0 && to == 0) continue;
    parts.push_back(text.substr(begin, from - begin));
    begin = to;
  }
  HEDDLE_RETURN_IF_ERROR(search.status());
  if (begin == 0) return JavaValue(JavaTexts{text});
  parts.push_back(text.substr(begin));
  if (limit == 0)
    while (!parts.empty() && parts.back().empty()) parts.pop_back();
  return JavaValue(std::move(parts));
}

Result<JavaValue> SplitAll(const JavaCall& a) { return Split(a, 0); }
Result<JavaValue> SplitSome(const JavaCall& a) { return Split(a, a.Integer(2)); }

int32_t HashOf(const JavaText& text) {
  uint32_t hash = 0;
  for (const char16_t unit : text) hash = hash * 31 + unit;
  return static_cast<int32_t>(hash);
}

bool SameIgnoringCase(const JavaText& a, const JavaText& b) {
  return a.size() == b.size() && CompareIgnoringCase(a, b) == 0;
}
int32_t DifferenceIgnoringCase(const JavaText& a, const JavaText& b) { return CompareIgnoringCase(a, b); }

int32_t Compare(const JavaText& a, const JavaText& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (a[i] != b[i]) return a[i] - b[i];
  return static_cast<int32_t>(a.size()) - static_cast<int32_t>(b.size());
}

bool Contains(const JavaText& text, const JavaText& part) { return text.find(part) != JavaText::npos; }
bool StartsWith(const JavaText& text, const JavaText& part) { return text.starts_with(part); }
bool EndsWith(const JavaText& text, const JavaText& part) { return text.ends_with(part); }
bool IsEmpty(const JavaText& text) { return text.empty(); }
int32_t LengthOf(const JavaText& text) { return static_cast<int32_t>(text.size()); }
JavaText Joined(const JavaText& a, const JavaText& b) { return a + b; }

// The text of a char, or of an int that is a code point; an error for one that is none.
Result<JavaText> TextOfCodePoint(const JavaValue& value) {
  if (const auto* const unit = std::get_if<char16_t>(&value)) return JavaText(1, *unit);
  const int32_t point = std::get<int32_t>(value);
  if (point < 0 || point > 0x10FFFF) return FailedPrecondition("{} is no code point", point);
  if (point <= 0xFFFF) return JavaText(1, static_cast<char16_t>(point));
  return JavaText{static_cast<char16_t>(0xD800 + ((point - 0x10000) >> 10)),
                  static_cast<char16_t>(0xDC00 + ((point - 0x10000) & 0x3FF))};
}

// indexOf and lastIndexOf of a text, a char or a code point, from a position on or anywhere.
template <bool is_last>
Result<JavaValue> Find(const JavaCall& a) {
  JavaText part;
  if (const auto* const text = std::get_if<JavaText>(&a[1])) {
    part = *text;
  } else {
    const Result<JavaText> point = TextOfCodePoint(a[1]);
    if (!point.ok()) return JavaValue(int32_t{-1});
    part = *point;
  }
  const JavaText& text = a.Text(0);
  if (is_last) {
    if (a.size() > 2 && a.Integer(2) < 0) return JavaValue(int32_t{-1});
    return JavaValue(
        Found(text.rfind(part, a.size() > 2 ? static_cast<size_t>(a.Integer(2)) : JavaText::npos)));
  }
  const size_t from = a.size() > 2 ? static_cast<size_t>(std::max(a.Integer(2), int32_t{0})) : 0;
  return JavaValue(Found(text.find(part, std::min(from, text.size()))));
}

Result<JavaValue> MatchesWhole(const JavaCall& a) {
  JavaRegexSearch search(*a.regex, a.Text(0), a.cancelled);
  HEDDLE_RETURN_IF_ERROR(search.status());
  return JavaValue(search.MatchesAll());
}

// strip() and its relatives.
template <bool leading, bool trailing>
JavaText Stripped(const JavaText& text) {
  size_t begin = 0;
  size_t end = text.size();
  while (leading && begin < end && IsWhitespace(text[begin])) ++begin;
  while (trailing && end > begin && IsWhitespace(text[end - 1])) --end;
  return text.substr(begin, end - begin);
}
bool IsBlank(const JavaText& text) { return std::all_of(text.begin(), text.end(), IsWhitespace); }

JavaTextStream LinesOf(const JavaText& text) {
  JavaTextStream lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(u"\r\n", begin), text.size());
    lines.items.push_back(text.substr(begin, end - begin));
    begin = end + (end + 1 < text.size() && text[end] == u'\r' && text[end + 1] == u'\n' ? 2 : 1);
  }
  return lines;
}

JavaIntegerStream UnitsOf(const JavaText& text) { return {JavaIntegers(text.begin(), text.end())}; }
JavaCharacters CharactersOf(const JavaText& text) { return {text}; }

Result<JavaValue> CodePointAt(const JavaCall& a) {
  const JavaText& text = a.Text(0);
  const int32_t at = a.Integer(1);
  if (at < 0 || static_cast<size_t>(at) >= text.size()) return Beyond("codePointAt:", at, text);
  const int32_t first = text[static_cast<size_t>(at)];
  const int32_t second = static_cast<size_t>(at) + 1 < text.size() ? text[static_cast<size_t>(at) + 1] : 0;
  const bool is_pair = first >= 0xD800 && first < 0xDC00 && second >= 0xDC00 && second < 0xE000;
  return JavaValue(is_pair ? 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00) : first);
}

Result<JavaValue> StartsWithAt(const JavaCall& a) {
  const int32_t at = a.Integer(2);
  if (at < 0 || static_cast<size_t>(at) > a.Text(0).size()) return JavaValue(false);
  return JavaValue(std::u16string_view(a.Text(0)).substr(static_cast<size_t>(at)).starts_with(a.Text(1)));
}

Result<JavaValue> EqualsBuilder(const JavaCall& a) {
  return JavaValue(a.Text(0) == std::get<JavaBuilder>(a[1]).text);
}

Result<JavaValue> EqualsIgnoringCase(const JavaCall& a) {
  const auto* const other = std::get_if<JavaText>(&a[1]);
  return JavaValue(other != nullptr && SameIgnoringCase(a.Text(0), *other));
}

// The arguments from `first` on as String.format takes them.
Result<JavaValue> Formatted(const JavaCall& a, size_t format, size_t first) {
  std::vector<JavaFormatArgument> arguments;
  for (size_t i = first; i < a.size(); ++i) {
    const JavaValue& value = a[i];
    switch (TypeOf(value)) {
      case kNull: arguments.emplace_back(std::monostate()); break;
      case kBoolean: arguments.emplace_back(std::get<bool>(value)); break;
      case kCharacter: arguments.emplace_back(std::get<char16_t>(value)); break;
      case kInteger: arguments.emplace_back(std::get<int32_t>(value)); break;
      case kLong: arguments.emplace_back(std::get<int64_t>(value)); break;
      case kDouble: arguments.emplace_back(std::get<double>(value)); break;
      default: arguments.emplace_back(ToUtf8(TextOf(value)));
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, JavaFormat(ToUtf8(a.Text(format)), arguments));
  return JavaValue(ToUtf16(text));
}
Result<JavaValue> Format(const JavaCall& a) { return Formatted(a, 0, 1); }
Result<JavaValue> FormatOfLocale(const JavaCall& a) { return Formatted(a, 1, 2); }

JavaText JoinedBy(const JavaText& separator, const JavaTexts& texts) {
  JavaText joined;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) joined += separator;
    joined += texts[i] == kJavaNull ? std::u16string_view(u"null") : std::u16string_view(texts[i]);
  }
  return joined;
}
Result<JavaValue> JoinTexts(const JavaCall& a) {
  JavaTexts texts;
  for (size_t i = 1; i < a.size(); ++i) texts.push_back(TextOf(a[i]));
  return JavaValue(JoinedBy(a.Text(0), texts));
}
JavaText JoinList(const JavaText& separator, const JavaTextList& list) {
  return JoinedBy(separator, list.items);
}
JavaText TextOfCharacters(const JavaCharacters& characters) { return characters.units; }
Result<JavaValue> EmptyText(const JavaCall&) { return JavaValue(JavaText()); }
Result<JavaValue> TextOfBuilder(const JavaCall& a) { return JavaValue(std::get<JavaBuilder>(a[0]).text); }

const JavaMethod kMethods[] = {
    {"String", true, "length", {kString}, kInteger, OfOne<JavaText, LengthOf>},
    {"String", true, "isEmpty", {kString}, kBoolean, OfOne<JavaText, IsEmpty>},
    {"String", true, "isBlank", {kString}, kBoolean, OfOne<JavaText, IsBlank>},
    {"String", true, "charAt", {kString, kInteger}, kCharacter, CharacterAt},
    {"String", true, "codePointAt", {kString, kInteger}, kInteger, CodePointAt},
    {"String", true, "substring", {kString, kInteger}, kString, PartFrom},
    {"String", true, "substring", {kString, kInteger, kInteger}, kString, PartBetween},
    {"String", true, "subSequence", {kString, kInteger, kInteger}, kString, PartBetween},
    {"String", true, "trim", {kString}, kString, Trimmed},
    {"String", true, "strip", {kString}, kString, OfOne<JavaText, Stripped<true, true>>},
    {"String", true, "stripLeading", {kString}, kString, OfOne<JavaText, Stripped<true, false>>},
    {"String", true, "stripTrailing", {kString}, kString, OfOne<JavaText, Stripped<false, true>>},
    {"String", true, "toLowerCase", {kString}, kString, OfOne<JavaText, Small>},
    {"String", true, "toLowerCase", {kString, kLocale}, kString, OfOne<JavaText, Small>},
    {"String", true, "toUpperCase", {kString}, kString, OfOne<JavaText, Capital>},
    {"String", true, "toUpperCase", {kString, kLocale}, kString, OfOne<JavaText, Capital>},
    {"String", true, "concat", {kString, kString}, kString, OfTwo<JavaText, Joined>},
    {"String", true, "repeat", {kString, kInteger}, kString, Repeated},
    {"String", true, "toString", {kString}, kString, FirstOf},
    {"String", true, "intern", {kString}, kString, FirstOf},
    {"String", true, "equals", {kString, kAny}, kBoolean, AreEqual},
    TakingNull({"String", true, "equalsIgnoreCase", {kString, kString}, kBoolean, EqualsIgnoringCase}),
    {"String", true, "contentEquals", {kString, kString}, kBoolean, AreEqual},
    {"String", true, "contentEquals", {kString, kBuilder}, kBoolean, EqualsBuilder},
    {"String", true, "compareTo", {kString, kString}, kInteger, OfTwo<JavaText, Compare>},
    {"String",
     true,
     "compareToIgnoreCase",
     {kString, kString},
     kInteger,
     OfTwo<JavaText, DifferenceIgnoringCase>},
    {"String", true, "contains", {kString, kString}, kBoolean, OfTwo<JavaText, Contains>},
    {"String", true, "startsWith", {kString, kString}, kBoolean, OfTwo<JavaText, StartsWith>},
    {"String", true, "startsWith", {kString, kString, kInteger}, kBoolean, StartsWithAt},
    {"String", true, "endsWith", {kString, kString}, kBoolean, OfTwo<JavaText, EndsWith>},
    {"String", true, "indexOf", {kString, kCharacter}, kInteger, Find<false>},
    {"String", true, "indexOf", {kString, kInteger}, kInteger, Find<false>},
    {"String", true, "indexOf", {kString, kString}, kInteger, Find<false>},
    {"String", true, "indexOf", {kString, kInteger, kInteger}, kInteger, Find<false>},
    {"String", true, "indexOf", {kString, kString, kInteger}, kInteger, Find<false>},
    {"String", true, "lastIndexOf", {kString, kCharacter}, kInteger, Find<true>},
    {"String", true, "lastIndexOf", {kString, kInteger}, kInteger, Find<true>},
    {"String", true, "lastIndexOf", {kString, kString}, kInteger, Find<true>},
    {"String", true, "lastIndexOf", {kString, kInteger, kInteger}, kInteger, Find<true>},
    {"String", true, "lastIndexOf", {kString, kString, kInteger}, kInteger, Find<true>},
    {"String", true, "replace", {kString, kCharacter, kCharacter}, kString, ReplaceUnit},
    {"String", true, "replace", {kString, kString, kString}, kString, ReplaceText},
    WithRegex(1, {"String", true, "replaceAll", {kString, kString, kString}, kString, ReplaceMatches<true>}),
    WithRegex(1,
              {"String", true, "replaceFirst", {kString, kString, kString}, kString, ReplaceMatches<false>}),
    WithRegex(1, {"String", true, "matches", {kString, kString}, kBoolean, MatchesWhole}),
    WithRegex(1, {"String", true, "split", {kString, kString}, kStrings, SplitAll}),
    WithRegex(1, {"String", true, "split", {kString, kString, kInteger}, kStrings, SplitSome}),
    {"String", true, "lines", {kString}, kTextStream, OfOne<JavaText, LinesOf>},
    {"String", true, "chars", {kString}, kIntegerStream, OfOne<JavaText, UnitsOf>},
    {"String", true, "toCharArray", {kString}, kCharacters, OfOne<JavaText, CharactersOf>},
    {"String", true, "hashCode", {kString}, kInteger, OfOne<JavaText, HashOf>},
    Repeating({"String", true, "formatted", {kString, kAny}, kString, Format}),
    Repeating({"String", false, "format", {kString, kAny}, kString, Format}),
    Repeating({"String", false, "format", {kLocale, kString, kAny}, kString, FormatOfLocale}),
    {"String", false, "join", {kString, kStrings}, kString, OfTwo<JavaText, JoinedBy, JavaTexts>},
    {"String", false, "join", {kString, kTextList}, kString, OfTwo<JavaText, JoinList, JavaTextList>},
    TakingNull(Repeating({"String", false, "join", {kString, kString}, kString, JoinTexts})),
    {"String", false, "valueOf", {kCharacters}, kString, OfOne<JavaCharacters, TextOfCharacters>},
    {"String", false, "valueOf", {kAny}, kString, TextOfFirst},
    {"String", false, "copyValueOf", {kCharacters}, kString, OfOne<JavaCharacters, TextOfCharacters>},
    {"String", false, "new", {}, kString, EmptyText},
    {"String", false, "new", {kString}, kString, FirstOf},
    {"String", false, "new", {kCharacters}, kString, OfOne<JavaCharacters, TextOfCharacters>},
    {"String", false, "new", {kBuilder}, kString, TextOfBuilder},
};

}  // namespace

std::span<const JavaMethod> JavaTextMethods() { return kMethods; }

}  // namespace heddle::ops
