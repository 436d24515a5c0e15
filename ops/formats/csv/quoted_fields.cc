// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/csv/quoted_fields.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ops/formats/fields.h"
#include "ops/formats/lines.h"

namespace heddle::ops {
namespace {

constexpr int64_t kBlock = 64;

// Where the field at the front of `rest` ends; npos at the end of the line.
size_t EndOfField(std::string_view rest, std::string_view separator) {
  size_t begin = 0;
  while (begin < rest.size() && IsBlank(rest[begin]) && !rest.substr(begin).starts_with(separator)) ++begin;
  if (begin == rest.size() || rest[begin] != '"') return rest.find(separator);
  size_t quote = rest.find('"', begin + 1);
  while (quote != std::string_view::npos && rest.substr(quote + 1).starts_with('"'))
    quote = rest.find('"', quote + 2);
  if (quote != std::string_view::npos) return rest.find(separator, quote + 1);
  return rest.find(separator, begin);  // A quote that nothing closes is a character like any other.
}

// One bit for each of 64 bytes that is `a` or `b`.
uint64_t MarksIn(const char* block, char a, char b) {
  const __m256i is_a = _mm256_set1_epi8(a), is_b = _mm256_set1_epi8(b);
  const auto of_half = [&](const char* at) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    const __m256i marks = _mm256_or_si256(_mm256_cmpeq_epi8(bytes, is_a), _mm256_cmpeq_epi8(bytes, is_b));
    return static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(marks)));
  };
  return of_half(block) | of_half(block + kBlock / 2) << (kBlock / 2);
}

// A field without quotes, blanks or control characters at its ends.
bool IsPlain(std::string_view field) {
  const auto is_visible = [](char c) { return static_cast<unsigned char>(c) > ' '; };
  return field.empty() || (is_visible(field.front()) && field.front() != '"' && is_visible(field.back()));
}

}  // namespace

void CutQuotedFields(std::string_view line, const ReadOptions& options,
                     std::vector<std::string_view>* fields) {
  fields->clear();
  for (std::string_view rest = LineBody(line, options);;) {
    const size_t end = EndOfField(rest, options.separator);
    fields->push_back(Trim(rest.substr(0, end)));
    if (end == std::string_view::npos) return;
    rest.remove_prefix(end + options.separator.size());
  }
}

QuotedLines::QuotedLines(std::string_view text, const ReadOptions& options)
    : options_(options),
      end_(text.data() + text.size()),
      may_be_plain_(options.separator.size() == 1 && !options.any_blanks),
      separator_(options.separator.empty() ? '\n' : options.separator[0]),
      next_(text.data()) {
  GoTo(next_);
}

bool QuotedLines::Next() {
  if (next_ == end_) return false;
  if (may_be_plain_ && CutPlainLine()) return true;
  const auto* newline = static_cast<const char*>(std::memchr(next_, '\n', static_cast<size_t>(end_ - next_)));
  const char* const line_end = newline == nullptr ? end_ : newline;
  line_ = {next_, static_cast<size_t>(line_end - next_)};
  next_ = newline == nullptr ? end_ : newline + 1;
  CutQuotedFields(line_, options_, &fields_);
  GoTo(next_);
  return true;
}

// The usual line, of plain fields that are not all empty; false leaves it to CutQuotedFields.
bool QuotedLines::CutPlainLine() {
  fields_.clear();
  const char* begin = next_;
  while (true) {
    const char* const mark = NextMark();
    const bool ends_line = mark == end_ || *mark == '\n';
    std::string_view field(begin, static_cast<size_t>(mark - begin));
    if (ends_line && field.ends_with('\r')) field.remove_suffix(1);
    if (!IsPlain(field)) return false;
    fields_.push_back(field);
    if (!ends_line) {
      begin = mark + 1;
      continue;
    }
    if (fields_.size() == 1 && field.empty()) return false;
    line_ = {next_, static_cast<size_t>(mark - next_)};
    next_ = mark == end_ ? end_ : mark + 1;
    return true;
  }
}

// The next separator or newline, or the end of the text.
const char* QuotedLines::NextMark() {
  while (marks_ == 0) {
    if (end_ - block_ <= kBlock) return end_;
    GoTo(block_ + kBlock);
  }
  const char* const mark = block_ + std::countr_zero(marks_);
  marks_ &= marks_ - 1;
  return mark;
}

void QuotedLines::GoTo(const char* at) {
  block_ = at;
  if (end_ - at >= kBlock) {
    marks_ = MarksIn(at, separator_, '\n');
    return;
  }
  char rest[kBlock] = {};  // No separator is a zero byte: text has none.
  std::copy(at, end_, rest);
  marks_ = MarksIn(rest, separator_, '\n');
}

}  // namespace heddle::ops
