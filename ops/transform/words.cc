// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/words.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "ops/base/parallel.h"
#include "ops/frame/convert.h"
#include "ops/text/java_text.h"

namespace heddle::ops {
namespace {

constexpr int64_t kRowsOfPiece = int64_t{1} << 12;
constexpr int64_t kMostWords = std::numeric_limits<int32_t>::max();

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// Numbers of words in order of appearance.
class WordTable {
 public:
  int32_t NumberOf(std::string_view word) {
    const auto found = numbers_.find(word);
    if (found != numbers_.end()) return found->second;
    words_.emplace_back(word);
    return numbers_.emplace(words_.back(), static_cast<int32_t>(words_.size()) - 1).first->second;
  }
  std::vector<std::string>& words() { return words_; }

 private:
  std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>> numbers_;
  std::vector<std::string> words_;
};

// Calls take(word) for each, which lives until it returns.
template <typename Take>
void ForWords(std::string_view text, const Take& take) {
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) take(std::string_view(word));
    word.clear();
  };
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
    for (const char c : text) {
      const char small = static_cast<char>(c | 0x20);
      if (small >= 'a' && small <= 'z')
        word.push_back(small);
      else
        end_word();
    }
    return end_word();
  }
  std::u16string units;
  const auto end_units = [&] {
    word = ToUtf8(units);
    units.clear();
    end_word();
  };
  for (const char16_t unit : ToUtf16(text)) {
    if (IsLetter(unit))
      units.push_back(LowerCase(unit));
    else
      end_units();
  }
  end_units();
}

// Sorts the words of one row and counts equal ones.
void AppendCounts(std::vector<int32_t>* numbers, std::vector<CellWords::Count>* counts) {
  std::sort(numbers->begin(), numbers->end());
  for (size_t i = 0; i < numbers->size(); ++i) {
    if (i > 0 && (*numbers)[i] == (*numbers)[i - 1])
      ++counts->back().count;
    else
      counts->push_back({(*numbers)[i], 1});
  }
  numbers->clear();
}

// The words of one piece of rows, and in `row_counts` how many distinct ones each row has.
struct Piece {
  WordTable table;
  std::vector<CellWords::Count> counts;
};

void Read(const Column& column, int64_t begin, int64_t end, int64_t* row_counts, Piece* piece) {
  std::vector<int32_t> numbers;
  std::string text;
  for (int64_t i = begin; i < end; ++i) {
    const auto before = static_cast<int64_t>(piece->counts.size());
    if (!column.IsMissing(i)) {
      text.clear();
      AppendCell(column, i, &text);
      ForWords(text, [&](std::string_view word) { numbers.push_back(piece->table.NumberOf(word)); });
    }
    AppendCounts(&numbers, &piece->counts);
    row_counts[i] = static_cast<int64_t>(piece->counts.size()) - before;
  }
}

}  // namespace

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  ForWords(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

Result<CellWords> FindWords(const Column& column) {
  const int64_t rows = column.rows(), count = (rows + kRowsOfPiece - 1) / kRowsOfPiece;
  const auto end_of = [&](int64_t p) { return std::min(rows, (p + 1) * kRowsOfPiece); };
  CellWords result;
  result.offsets.resize(static_cast<size_t>(rows) + 1);
  std::vector<Piece> pieces(static_cast<size_t>(count));
  ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      Read(column, p * kRowsOfPiece, end_of(p), result.offsets.data() + 1, &pieces[static_cast<size_t>(p)]);
  });
  for (size_t i = 1; i < result.offsets.size(); ++i) result.offsets[i] += result.offsets[i - 1];
  result.counts.resize(static_cast<size_t>(result.offsets.back()));
  WordTable whole;
  std::vector<std::vector<int32_t>> numbers(pieces.size());  // In the whole, of the words of a piece.
  for (size_t p = 0; p < pieces.size(); ++p) {
    for (const std::string& word : pieces[p].table.words()) numbers[p].push_back(whole.NumberOf(word));
    if (static_cast<int64_t>(whole.words().size()) > kMostWords)
      return ResourceExhausted("a column has more than {} different words", kMostWords);
  }
  ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const std::vector<int32_t>& number_of = numbers[static_cast<size_t>(p)];
      CellWords::Count* to = result.counts.data() + result.offsets[static_cast<size_t>(p * kRowsOfPiece)];
      const CellWords::Count* from = pieces[static_cast<size_t>(p)].counts.data();
      for (int64_t i = p * kRowsOfPiece; i < end_of(p); ++i) {
        const int64_t size =
            result.offsets[static_cast<size_t>(i) + 1] - result.offsets[static_cast<size_t>(i)];
        for (int64_t k = 0; k < size; ++k)
          to[k] = {number_of[static_cast<size_t>(from[k].word)], from[k].count};
        std::sort(to, to + size, [](const auto& a, const auto& b) { return a.word < b.word; });
        to += size;
        from += size;
      }
    }
  });
  result.words = std::move(whole.words());
  return result;
}

}  // namespace heddle::ops
