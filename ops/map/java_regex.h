// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
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
/// Size:    a counted repetition writes what it repeats as often; expressions that become more than
///          kMostSteps steps are refused.
class JavaRegex {
 public:
  /// Begin and end of the whole match and of the groups 1 to 9; npos where a group took no part.
  static constexpr size_t kGroups = 10;
  static constexpr size_t kNone = static_cast<size_t>(-1);
  using Match = std::array<size_t, 2 * kGroups>;
  static constexpr int kMostSteps = 20000;

  /// kInvalidArgument for what it does not know, with the place in the expression.
  static Result<JavaRegex> Parse(std::u16string_view expression);

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
  friend class JavaRegexSearch;

  std::vector<Step> steps_;
  std::vector<Set> sets_;
  int groups_ = 0;
  std::string shown_;  ///< For errors.
};

/// Looks for an expression in one text, from front to back.
///
/// Cost:    steps of the expression x length of the text at most, for all matches of the text together,
///          whatever the expression: no step is tried twice at one place. Memory: a bit for each.
/// Threads: one.
class JavaRegexSearch {
 public:
  /// Most steps x characters of a search: 256 MiB of memory.
  static constexpr uint64_t kMostPlaces = uint64_t{1} << 31;

  /// Both must outlive the search. Once `cancelled` is set nothing is found any more, which says nothing
  /// about the text.
  JavaRegexSearch(const JavaRegex& regex, std::u16string_view text,
                  const std::atomic<bool>* cancelled = nullptr);

  /// kFailedPrecondition where steps and text make too many places: then nothing is found, either.
  Status status() const;

  /// The first match that starts at `from` or behind it; `from` is not before the end of the last match.
  std::optional<JavaRegex::Match> Find(size_t from);
  /// Whether the whole text is a match. The only question that such a search is asked.
  bool MatchesAll();

 private:
  std::optional<JavaRegex::Match> MatchAt(size_t from, bool to_the_end);
  bool IsCancelledNow();
  /// Whether the step was tried at this place before; it has been from now on.
  bool Visit(size_t step, size_t at);
  void ForgetPlace(size_t at);

  const JavaRegex& regex_;
  std::u16string_view text_;
  const std::atomic<bool>* cancelled_;
  std::vector<uint64_t> visited_;  ///< A bit for each step at each place, place by place.
  uint32_t until_look_ = 0;        ///< Steps until `cancelled_` is looked at again.
};

}  // namespace heddle::ops
