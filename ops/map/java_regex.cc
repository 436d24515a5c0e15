// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_regex.h"

#include <algorithm>

namespace heddle::ops {

bool JavaRegex::Set::Has(char16_t unit) const {
  const bool found = std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
    return unit >= range.first && unit <= range.second;
  });
  return found != negated;
}

// Depth first through the program, on a stack of its own. A pair of step and position that has failed once
// fails always, since nothing else decides: `visited` remembers them.
std::optional<JavaRegex::Match> JavaRegex::MatchAt(std::u16string_view text, size_t from, bool to_the_end,
                                                   std::vector<bool>* visited) const {
  struct Branch {
    size_t step;
    size_t at;
    int slot;  // -1: go on at `step`; else put `old` back.
    size_t old_value;
  };
  Match match;
  match.fill(kNone);
  std::vector<Branch> branches = {{0, from, -1, 0}};
  while (!branches.empty()) {
    Branch branch = branches.back();
    branches.pop_back();
    if (branch.slot >= 0) {
      match[static_cast<size_t>(branch.slot)] = branch.old_value;
      continue;
    }
    size_t step = branch.step;
    size_t at = branch.at;
    for (bool alive = true; alive;) {
      const size_t place = step * (text.size() + 1) + at;
      if ((*visited)[place]) break;
      (*visited)[place] = true;
      const Step& now = steps_[step];
      switch (now.kind) {
        case Step::Kind::kSet:
          alive = at < text.size() && sets_[static_cast<size_t>(now.first)].Has(text[at]);
          ++at;
          ++step;
          break;
        case Step::Kind::kSplit:
          branches.push_back({static_cast<size_t>(now.second), at, -1, 0});
          step = static_cast<size_t>(now.first);
          break;
        case Step::Kind::kJump: step = static_cast<size_t>(now.first); break;
        case Step::Kind::kSave: {
          const auto slot = static_cast<size_t>(now.first);
          if (slot < match.size()) {
            branches.push_back({0, 0, now.first, match[slot]});
            match[slot] = at;
          }
          ++step;
          break;
        }
        case Step::Kind::kBegin:
          alive = at == 0;
          ++step;
          break;
        case Step::Kind::kEnd:
          // Java's $ also stands before a last line feed.
          alive = at == text.size() || (at + 1 == text.size() && text[at] == u'\n');
          ++step;
          break;
        case Step::Kind::kMatch:
          if (to_the_end && at != text.size()) {
            alive = false;
            break;
          }
          match[0] = from;
          match[1] = at;
          return match;
      }
    }
  }
  return std::nullopt;
}

std::optional<JavaRegex::Match> JavaRegex::Find(std::u16string_view text, size_t from) const {
  // What failed from one start fails from a later one, too: the marks stay.
  std::vector<bool> visited(steps_.size() * (text.size() + 1));
  for (size_t start = from; start <= text.size(); ++start)
    if (std::optional<Match> match = MatchAt(text, start, false, &visited)) return match;
  return std::nullopt;
}

bool JavaRegex::MatchesAll(std::u16string_view text) const {
  std::vector<bool> visited(steps_.size() * (text.size() + 1));
  return MatchAt(text, 0, true, &visited).has_value();
}

}  // namespace heddle::ops
