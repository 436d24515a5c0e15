// SPDX-License-Identifier: Apache-2.0
#include "ops/map/porter_stemmer.h"

#include <span>
#include <utility>

namespace heddle::ops {
namespace {

using Text = std::u16string_view;

// y is a vowel behind a consonant.
bool IsVowel(Text word, size_t i) {
  if (Text(u"aeiou").find(word[i]) != Text::npos) return true;
  return word[i] == 'y' && i > 0 && !IsVowel(word, i - 1);
}

// How often a consonant follows a vowel: Porter's m.
int Measure(Text stem) {
  int measure = 0;
  for (size_t i = 1; i < stem.size(); ++i) measure += IsVowel(stem, i - 1) && !IsVowel(stem, i);
  return measure;
}

bool HasVowel(Text stem) {
  for (size_t i = 0; i < stem.size(); ++i)
    if (IsVowel(stem, i)) return true;
  return false;
}

bool EndsInPair(Text stem) {
  const size_t n = stem.size();
  return n >= 2 && stem[n - 1] == stem[n - 2] && !IsVowel(stem, n - 1);
}

// Porter's *o: consonant, vowel, consonant, the last not w, x or y.
bool EndsShort(Text stem) {
  const size_t n = stem.size();
  return n >= 3 && !IsVowel(stem, n - 3) && IsVowel(stem, n - 2) && !IsVowel(stem, n - 1) &&
         Text(u"wxy").find(stem[n - 1]) == Text::npos;
}

struct Rule {
  Text suffix, replacement;
};

// The rule with the longest suffix of the word decides; it counts where the stem's measure is above
// `measure`.
void Apply(std::span<const Rule> rules, int measure, std::u16string* word) {
  const Rule* longest = nullptr;
  for (const Rule& rule : rules)
    if (Text(*word).ends_with(rule.suffix) &&
        (longest == nullptr || rule.suffix.size() > longest->suffix.size()))
      longest = &rule;
  if (longest == nullptr) return;
  const Text stem = Text(*word).substr(0, word->size() - longest->suffix.size());
  // -ion goes behind s and t only.
  const bool is_ion = longest->suffix == u"ion";
  if (is_ion && !stem.ends_with(u's') && !stem.ends_with(u't')) return;
  if (Measure(stem) <= measure) return;
  word->resize(stem.size());
  word->append(longest->replacement);
}

constexpr Rule kPlurals[] = {{u"sses", u"ss"}, {u"ies", u"i"}, {u"ss", u"ss"}, {u"s", u""}};
constexpr Rule kSecond[] = {
    {u"ational", u"ate"}, {u"tional", u"tion"}, {u"enci", u"ence"}, {u"anci", u"ance"}, {u"izer", u"ize"},
    {u"bli", u"ble"},     {u"alli", u"al"},     {u"entli", u"ent"}, {u"eli", u"e"},     {u"ousli", u"ous"},
    {u"ization", u"ize"}, {u"ation", u"ate"},   {u"ator", u"ate"},  {u"alism", u"al"},  {u"iveness", u"ive"},
    {u"fulness", u"ful"}, {u"ousness", u"ous"}, {u"aliti", u"al"},  {u"iviti", u"ive"}, {u"biliti", u"ble"},
    {u"logi", u"log"}};
constexpr Rule kThird[] = {{u"icate", u"ic"}, {u"ative", u""}, {u"alize", u"al"}, {u"iciti", u"ic"},
                           {u"ical", u"ic"},  {u"ful", u""},   {u"ness", u""}};
constexpr Rule kFourth[] = {{u"al", u""},   {u"ance", u""}, {u"ence", u""}, {u"er", u""},    {u"ic", u""},
                            {u"able", u""}, {u"ible", u""}, {u"ant", u""},  {u"ement", u""}, {u"ment", u""},
                            {u"ent", u""},  {u"ion", u""},  {u"ou", u""},   {u"ism", u""},   {u"ate", u""},
                            {u"iti", u""},  {u"ous", u""},  {u"ive", u""},  {u"ize", u""}};

// -ed and -ing, and what they leave.
void StripPast(std::u16string* word) {
  if (Text(*word).ends_with(u"eed")) {
    if (Measure(Text(*word).substr(0, word->size() - 3)) > 0) word->pop_back();
    return;
  }
  const size_t length = Text(*word).ends_with(u"ed") ? 2 : Text(*word).ends_with(u"ing") ? 3 : 0;
  if (length == 0 || !HasVowel(Text(*word).substr(0, word->size() - length))) return;
  word->resize(word->size() - length);
  const Text stem = *word;
  if (stem.ends_with(u"at") || stem.ends_with(u"bl") || stem.ends_with(u"iz")) {
    word->push_back('e');
  } else if (EndsInPair(stem)) {
    if (Text(u"lsz").find(stem.back()) == Text::npos) word->pop_back();
  } else if (Measure(stem) == 1 && EndsShort(stem)) {
    word->push_back('e');
  }
}

}  // namespace

std::u16string StemOf(std::u16string_view word) {
  std::u16string stem(word);
  if (stem.size() <= 2) return stem;
  Apply(kPlurals, -1, &stem);
  StripPast(&stem);
  if (stem.ends_with(u'y') && HasVowel(Text(stem).substr(0, stem.size() - 1))) stem.back() = 'i';
  Apply(kSecond, 0, &stem);
  Apply(kThird, 0, &stem);
  Apply(kFourth, 1, &stem);
  if (stem.ends_with(u'e')) {
    const Text rest = Text(stem).substr(0, stem.size() - 1);
    const int measure = Measure(rest);
    if (measure > 1 || (measure == 1 && !EndsShort(rest))) stem.pop_back();
  }
  if (stem.ends_with(u"ll") && Measure(stem) > 1) stem.pop_back();
  return stem;
}

}  // namespace heddle::ops
