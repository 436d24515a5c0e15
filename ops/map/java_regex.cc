// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_regex.h"

#include <algorithm>

namespace heddle::ops {
namespace {

constexpr uint32_t kStepsBetweenLooks = 1 << 14;
constexpr size_t kBits = 64;

}  // namespace

bool JavaRegex::Set::Has(char16_t unit) const {
  const bool found = std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
    return unit >= range.first && unit <= range.second;
  });
  return found != negated;
}

bool JavaRegex::MatchesAll(std::u16string_view text) const {
  return JavaRegexSearch(*this, text).MatchesAll();
}

JavaRegexSearch::JavaRegexSearch(const JavaRegex& regex, std::u16string_view text,
                                 const std::atomic<bool>* cancelled)
    : regex_(regex), text_(text), cancelled_(cancelled) {
  if (status().ok()) visited_.resize((regex.steps_.size() * (text.size() + 1) + kBits - 1) / kBits);
}

Status JavaRegexSearch::status() const {
  const size_t places = regex_.steps_.size() * (text_.size() + 1);  // Both are less than 2^32.
  if (places <= kMostPlaces) return OkStatus();
  return FailedPrecondition(
      "the regular expression \"{}\" has {} steps, for a text of length {}: together {} "
      "places, at most {} are possible",
      regex_.shown_, regex_.steps_.size(), text_.size(), places, kMostPlaces);
}

bool JavaRegexSearch::Visit(size_t step, size_t at) {
  const size_t place = at * regex_.steps_.size() + step;
  uint64_t& word = visited_[place / kBits];
  const uint64_t bit = uint64_t{1} << place % kBits;
  const bool was_visited = (word & bit) != 0;
  word |= bit;
  return was_visited;
}

void JavaRegexSearch::ForgetPlace(size_t at) {
  for (size_t step = 0; step < regex_.steps_.size(); ++step) {
    const size_t place = at * regex_.steps_.size() + step;
    visited_[place / kBits] &= ~(uint64_t{1} << place % kBits);
  }
}

bool JavaRegexSearch::IsCancelledNow() {
  if (until_look_-- != 0) return false;
  until_look_ = kStepsBetweenLooks;
  if (cancelled_ == nullptr || !cancelled_->load(std::memory_order_relaxed)) return false;
  until_look_ = 0;
  return true;
}

// Depth first through the program, on a stack of its own. A pair of step and position that has failed once
// fails always, since nothing else decides.
std::optional<JavaRegex::Match> JavaRegexSearch::MatchAt(size_t from, bool to_the_end) {
  using Step = JavaRegex::Step;
  struct Branch {
    size_t at;      // Where in the text, or what the slot held before.
    uint32_t step;  // Where to go on, or the slot.
    bool is_slot;
  };
  JavaRegex::Match match;
  match.fill(JavaRegex::kNone);
  std::vector<Branch> branches = {{from, 0, false}};
  while (!branches.empty()) {
    const Branch branch = branches.back();
    branches.pop_back();
    if (branch.is_slot) {
      match[branch.step] = branch.at;
      continue;
    }
    size_t step = branch.step;
    size_t at = branch.at;
    for (bool alive = true; alive;) {
      if (IsCancelledNow()) return std::nullopt;
      if (Visit(step, at)) break;
      const Step& now = regex_.steps_[step];
      switch (now.kind) {
        case Step::Kind::kSet:
          alive = at < text_.size() && regex_.sets_[static_cast<size_t>(now.first)].Has(text_[at]);
          ++at;
          ++step;
          break;
        case Step::Kind::kSplit:
          branches.push_back({at, static_cast<uint32_t>(now.second), false});
          step = static_cast<size_t>(now.first);
          break;
        case Step::Kind::kJump: step = static_cast<size_t>(now.first); break;
        case Step::Kind::kSave: {
          const auto slot = static_cast<uint32_t>(now.first);
          if (slot < match.size()) {
            branches.push_back({match[slot], slot, true});
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
          alive = at == text_.size() || (at + 1 == text_.size() && text_[at] == u'\n');
          ++step;
          break;
        case Step::Kind::kMatch:
          if (to_the_end && at != text_.size()) {
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

std::optional<JavaRegex::Match> JavaRegexSearch::Find(size_t from) {
  if (visited_.empty()) return std::nullopt;
  for (size_t start = from; start <= text_.size(); ++start) {
    std::optional<JavaRegex::Match> match = MatchAt(start, false);
    if (!match) {
      // What failed from one start fails from a later one, too: the marks stay.
      if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) return std::nullopt;
      continue;
    }
    // What led to the match has not failed. Of all that, later searches look only at its last place.
    ForgetPlace((*match)[1]);
    return match;
  }
  return std::nullopt;
}

bool JavaRegexSearch::MatchesAll() { return !visited_.empty() && MatchAt(0, true).has_value(); }

}  // namespace heddle::ops
