// SPDX-License-Identifier: Apache-2.0
#include "ops/map/text_measures.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

namespace heddle::ops {
namespace {

std::vector<std::u16string_view> WordsOf(std::u16string_view text) {
  std::vector<std::u16string_view> words;
  size_t begin = 0;
  for (size_t at; (at = text.find(u' ', begin)) != std::u16string_view::npos; begin = at + 1)
    words.push_back(text.substr(begin, at - begin));
  const bool is_whole = words.empty();
  words.push_back(text.substr(begin));
  while (!is_whole && !words.empty() && words.back().empty()) words.pop_back();
  return words;
}

// -1 stands for the empty text.
std::set<int> UnitsOf(std::u16string_view text) {
  std::set<int> units(text.begin(), text.end());
  if (text.empty()) units.insert(-1);
  return units;
}

}  // namespace

double JaccardSimilarity(std::u16string_view a, std::u16string_view b) {
  const std::set<int> x = UnitsOf(a);
  const std::set<int> y = UnitsOf(b);
  const auto common = std::count_if(x.begin(), x.end(), [&](int unit) { return y.contains(unit); });
  const auto all = static_cast<double>(x.size() + y.size()) - static_cast<double>(common);
  return 1.0 / all * static_cast<double>(common);
}

double WordErrorRate(std::u16string_view a, std::u16string_view b) {
  const std::vector<std::u16string_view> s = WordsOf(a);
  const std::vector<std::u16string_view> t = WordsOf(b);
  if (s.empty() || t.empty()) return static_cast<double>(std::max(s.size(), t.size()));
  // edits[i]: to make the first i words of s of the words of t so far (Levenshtein).
  std::vector<size_t> edits(s.size() + 1);
  std::iota(edits.begin(), edits.end(), size_t{0});
  for (const std::u16string_view word : t) {
    size_t diagonal = edits[0]++;
    for (size_t i = 1; i <= s.size(); ++i) {
      const size_t replaced = diagonal + (s[i - 1] == word ? 0 : 1);
      diagonal = edits[i];
      edits[i] = std::min({edits[i - 1] + 1, edits[i] + 1, replaced});
    }
  }
  return static_cast<double>(edits.back()) / static_cast<double>(std::max(s.size(), t.size()));
}

}  // namespace heddle::ops
