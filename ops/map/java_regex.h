// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace heddle::ops {

/// A regular expression as java.util.regex writes it, for the methods of strings that take one.
///
/// Knows:   characters, `.`, `[a-z]`, `[^...]`, `\d \D \w \W \s \S`, escapes, `^`, `$`, groups `(...)` and
///          `(?:...)`, `|`, `*`, `+`, `?`, `{n}`, `{n,}`, `{n,m}`, each also lazy. No references back to
///          groups, no looking around.
/// Matches: as Java does: the first alternative that leads to a match counts, from the leftmost start.
/// Cost:    expression size x text length at most, whatever the expression: no place is tried twice.
class JavaRegex {
 public:
  /// Begin and end of the whole match and of the groups 1 to 9; npos where a group took no part.
  static constexpr size_t kGroups = 10;
  static constexpr size_t kNone = static_cast<size_t>(-1);
  using Match = std::array<size_t, 2 * kGroups>;

  /// kInvalidArgument for what it does not know, with the place in the expression.
  static Result<JavaRegex> Parse(std::u16string_view expression);

  /// The first match that starts at `from` or behind it.
  std::optional<Match> Find(std::u16string_view text, size_t from) const;
  bool MatchesAll(std::u16string_view text) const;
  int groups() const { return groups_; }

  /// A set of units: ranges, both ends included.
  struct Set {
    std::vector<std::pair<char16_t, char16_t>> ranges;
    bool negated = false;
    bool Has(char16_t unit) const;
  };
  /// One step of the program that the expression becomes.
  struct Step {
    enum class Kind { kSet, kSplit, kJump, kSave, kBegin, kEnd, kMatch };
    Kind kind;
    int first = 0;   ///< kSet: index of the set; kSplit, kJump: where to go first; kSave: which slot.
    int second = 0;  ///< kSplit: where to go if the first way fails.
  };

 private:
  friend class JavaRegexParser;
  std::optional<Match> MatchAt(std::u16string_view text, size_t from, bool to_the_end,
                               std::vector<bool>* visited) const;

  std::vector<Step> steps_;
  std::vector<Set> sets_;
  int groups_ = 0;
};

}  // namespace heddle::ops
