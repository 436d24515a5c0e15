// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "core/text/utf8.h"
#include "ops/map/java_regex.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

constexpr int kMostSteps = JavaRegex::kMostSteps;
constexpr int kMostNested = 100;
constexpr size_t kMostShown = 80;  // Characters of an expression in an error.
constexpr char16_t kLastUnit = std::numeric_limits<char16_t>::max();

using Ranges = std::vector<std::pair<char16_t, char16_t>>;

Ranges Negated(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges rest;
  int next = 0;
  for (const auto& [first, last] : ranges) {
    if (first > next) rest.emplace_back(static_cast<char16_t>(next), static_cast<char16_t>(first - 1));
    next = std::max(next, last + 1);
  }
  if (next <= kLastUnit) rest.emplace_back(static_cast<char16_t>(next), kLastUnit);
  return rest;
}

const Ranges kDigits = {{'0', '9'}};
const Ranges kWords = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpaces = {{'\t', '\r'}, {' ', ' '}};
// The classes \p{...} of ASCII (java.util.regex.Pattern).
const std::pair<std::u16string_view, Ranges> kNamedClasses[] = {
    {u"Alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
    {u"Alpha", {{'A', 'Z'}, {'a', 'z'}}},
    {u"Blank", {{'\t', '\t'}, {' ', ' '}}},
    {u"Digit", kDigits},
    {u"Lower", {{'a', 'z'}}},
    {u"Punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
    {u"Space", kSpaces},
    {u"Upper", {{'A', 'Z'}}},
    {u"XDigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
};
const Ranges kLineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}};

}  // namespace

/// Recursive descent; writes the steps of what it reads.
class JavaRegexParser {
 public:
  explicit JavaRegexParser(std::u16string_view text) : text_(text) {}

  Result<JavaRegex> Parse() {
    HEDDLE_RETURN_IF_ERROR(Alternatives(0));
    if (at_ < text_.size()) return Wrong("a ) without its (");
    Add(JavaRegex::Step::Kind::kMatch);
    regex_.shown_ = ShownInLine(ToUtf8(text_), kMostShown);
    return std::move(regex_);
  }

 private:
  using Kind = JavaRegex::Step::Kind;
  using Steps = std::vector<JavaRegex::Step>;

  bool Is(char16_t unit) const { return at_ < text_.size() && text_[at_] == unit; }
  bool Take(char16_t unit) {
    if (!Is(unit)) return false;
    ++at_;
    return true;
  }
  Status Wrong(std::string_view what) const {
    return InvalidArgument("the regular expression \"{}\": {} at character {}",
                           ShownInLine(ToUtf8(text_), kMostShown), what, at_ + 1);
  }
  Status TooLong() const {
    return Wrong(fmt::format("with what its counts repeat it has more than {} steps", kMostSteps));
  }
  int Here() const { return static_cast<int>(regex_.steps_.size()); }
  void Add(Kind kind, int first = 0, int second = 0) { regex_.steps_.push_back({kind, first, second}); }

  // Puts a step before those from `begin` on.
  void Insert(int begin, JavaRegex::Step step) {
    Steps& steps = regex_.steps_;
    for (auto at = steps.begin() + begin; at != steps.end(); ++at) Move(&*at, begin, 1);
    steps.insert(steps.begin() + begin, step);
  }
  static void Move(JavaRegex::Step* step, int from, int by) {
    if (step->kind != Kind::kSplit && step->kind != Kind::kJump) return;
    if (step->first >= from) step->first += by;
    if (step->second >= from) step->second += by;
  }

  Status Alternatives(int depth) {
    if (depth > kMostNested) return Wrong("groups nested too deep");
    std::vector<int> jumps;
    for (;;) {
      const int begin = Here();
      HEDDLE_RETURN_IF_ERROR(Sequence(depth));
      if (!Take('|')) break;
      Insert(begin, {Kind::kSplit, begin + 1, Here() + 2});
      jumps.push_back(Here());
      Add(Kind::kJump);
    }
    for (const int jump : jumps) regex_.steps_[static_cast<size_t>(jump)].first = Here();
    return OkStatus();
  }

  Status Sequence(int depth) {
    while (at_ < text_.size() && !Is('|') && !Is(')')) {
      const int begin = Here();
      HEDDLE_RETURN_IF_ERROR(Item(depth));
      HEDDLE_RETURN_IF_ERROR(Repeat(begin));
      if (Here() > kMostSteps) return TooLong();
    }
    return OkStatus();
  }

  Status Item(int depth) {
    if (Take('(')) return Group(depth);
    if (Take('^')) return Add(Kind::kBegin), OkStatus();
    if (Take('$')) return Add(Kind::kEnd), OkStatus();
    if (Take('.')) return AddSet(Negated(kLineEnds)), OkStatus();
    if (Take('[')) return Class();
    if (Is('*') || Is('+') || Is('?') || Is('{')) return Wrong("nothing to repeat");
    if (Take('\\')) {
      Ranges ranges;
      HEDDLE_RETURN_IF_ERROR(Escaped(&ranges));
      return AddSet(std::move(ranges)), OkStatus();
    }
    const char16_t unit = text_[at_++];
    return AddSet({{unit, unit}}), OkStatus();
  }

  void AddSet(Ranges ranges, bool negated = false) {
    Add(Kind::kSet, static_cast<int>(regex_.sets_.size()));
    regex_.sets_.push_back({std::move(ranges), negated});
  }

  Status Group(int depth) {
    const bool counted = !Is('?');
    if (!counted) {
      ++at_;
      if (!Take(':')) return Wrong("a kind of group that is not known");
    }
    const int group = counted ? ++regex_.groups_ : 0;
    if (counted) Add(Kind::kSave, 2 * group);
    HEDDLE_RETURN_IF_ERROR(Alternatives(depth + 1));
    if (!Take(')')) return Wrong("a ( without its )");
    if (counted) Add(Kind::kSave, 2 * group + 1);
    return OkStatus();
  }

  // \p{Alpha} and its like, behind the p.
  Result<Ranges> NamedClass() {
    const size_t end = text_.find(u'}', at_);
    if (Is('{') && end != text_.npos) {
      const std::u16string_view name = text_.substr(at_ + 1, end - at_ - 1);
      for (const auto& [known, ranges] : kNamedClasses) {
        if (known != name) continue;
        at_ = end + 1;
        return ranges;
      }
    }
    return Wrong("a class that is not known");
  }

  // The unit or the units that stand behind a backslash.
  Status Escaped(Ranges* ranges) {
    if (at_ == text_.size()) return Wrong("nothing behind \\");
    const char16_t unit = text_[at_++];
    const auto add = [&](const Ranges& more) { ranges->insert(ranges->end(), more.begin(), more.end()); };
    switch (unit) {
      case 'd': return add(kDigits), OkStatus();
      case 'D': return add(Negated(kDigits)), OkStatus();
      case 'w': return add(kWords), OkStatus();
      case 'W': return add(Negated(kWords)), OkStatus();
      case 's': return add(kSpaces), OkStatus();
      case 'S': return add(Negated(kSpaces)), OkStatus();
      case 'p':
      case 'P': {
        HEDDLE_ASSIGN_OR_RETURN(const Ranges named, NamedClass());
        return add(unit == 'p' ? named : Negated(named)), OkStatus();
      }
      case 't': return add({{'\t', '\t'}}), OkStatus();
      case 'n': return add({{'\n', '\n'}}), OkStatus();
      case 'r': return add({{'\r', '\r'}}), OkStatus();
      case 'f': return add({{'\f', '\f'}}), OkStatus();
      default: break;
    }
    const bool is_word = (unit >= '0' && unit <= '9') || (unit < 0x80 && IsLetter(unit));
    if (is_word) return --at_, Wrong("an escape that is not known");
    return add({{unit, unit}}), OkStatus();
  }

  Status Class() {
    const bool negated = Take('^');
    Ranges ranges;
    for (bool first = true; first || !Is(']'); first = false) {
      if (at_ == text_.size()) return Wrong("a [ without its ]");
      if (Is('[') || (Is('&') && at_ + 1 < text_.size() && text_[at_ + 1] == '&'))
        return Wrong("a set of sets");
      const size_t before = ranges.size();
      if (Take('\\')) {
        HEDDLE_RETURN_IF_ERROR(Escaped(&ranges));
      } else {
        ranges.emplace_back(text_[at_], text_[at_]);
        ++at_;
      }
      const bool is_unit = ranges.size() == before + 1 && ranges.back().first == ranges.back().second;
      if (!is_unit || !Is('-') || at_ + 1 >= text_.size() || text_[at_ + 1] == ']') continue;
      ++at_;
      Ranges last;
      if (Take('\\')) {
        HEDDLE_RETURN_IF_ERROR(Escaped(&last));
      } else {
        last.emplace_back(text_[at_], text_[at_]);
        ++at_;
      }
      if (last.size() != 1 || last[0].first != last[0].second || last[0].first < ranges.back().first)
        return Wrong("a range that goes nowhere");
      ranges.back().second = last[0].second;
    }
    ++at_;
    return AddSet(std::move(ranges), negated), OkStatus();
  }

  Result<int> Count() {
    int count = 0;
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && count < kMostSteps)
      count = count * 10 + (text_[at_++] - '0');
    if (at_ == begin) return Wrong("no count that can be");
    if (count >= kMostSteps) return TooLong();
    return count;
  }

  // The steps from `begin` on, as often as what stands here says.
  Status Repeat(int begin) {
    int least = 0;
    int most = -1;
    if (Take('*')) {
    } else if (Take('+')) {
      least = 1;
    } else if (Take('?')) {
      most = 1;
    } else if (Take('{')) {
      HEDDLE_ASSIGN_OR_RETURN(least, Count());
      most = least;
      if (Take(',')) {
        most = -1;
        if (!Is('}')) {
          HEDDLE_ASSIGN_OR_RETURN(most, Count());
        }
      }
      if (!Take('}') || (most >= 0 && most < least)) return Wrong("no count that can be");
    } else {
      return OkStatus();
    }
    const bool lazy = Take('?');
    if (Is('+') || Is('*') || Is('?') || Is('{')) return Wrong("a repetition of a repetition");
    const Steps body(regex_.steps_.begin() + begin, regex_.steps_.end());
    // Each copy that may be left out has a step that decides it.
    const auto copies =
        static_cast<int64_t>(std::max(least + 1, most)) * (static_cast<int64_t>(body.size()) + 1);
    if (begin + copies > kMostSteps) return TooLong();
    regex_.steps_.resize(static_cast<size_t>(begin));
    const auto add_body = [&] {
      const int by = Here() - begin;
      for (JavaRegex::Step step : body) {
        Move(&step, begin, by);
        regex_.steps_.push_back(step);
      }
    };
    const auto split = [&](int into, int past) {
      return JavaRegex::Step{Kind::kSplit, lazy ? past : into, lazy ? into : past};
    };
    for (int i = 0; i < least; ++i) add_body();
    if (most < 0) {
      const int loop = Here();
      Add(Kind::kSplit);
      add_body();
      Add(Kind::kJump, loop);
      regex_.steps_[static_cast<size_t>(loop)] = split(loop + 1, Here());
      return OkStatus();
    }
    std::vector<int> splits;
    for (int i = least; i < most; ++i) {
      splits.push_back(Here());
      Add(Kind::kSplit);
      add_body();
    }
    for (const int at : splits) regex_.steps_[static_cast<size_t>(at)] = split(at + 1, Here());
    return OkStatus();
  }

  std::u16string_view text_;
  size_t at_ = 0;
  JavaRegex regex_;
};

Result<JavaRegex> JavaRegex::Parse(std::u16string_view expression) {
  return JavaRegexParser(expression).Parse();
}

}  // namespace heddle::ops
