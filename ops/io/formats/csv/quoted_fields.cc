// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/csv/quoted_fields.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ops/io/formats/fields.h"
#include "ops/io/formats/lines.h"

namespace heddle::ops {
namespace {

constexpr int64_t kBlock = 64;

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

void CutQuotedFields(std::string_view record, const ReadOptions& options,
                     std::vector<std::string_view>* fields) {
  fields->clear();
  FieldCutter cutter(LineBody(record, options), options);
  for (std::string_view field; cutter.Next(&field);) fields->push_back(field);
}

QuotedRecords::QuotedRecords(std::string_view text, const ReadOptions& options)
    : options_(options),
      grammar_(QuoteGrammar::OfFields(options)),
      end_(text.data() + text.size()),
      may_be_plain_(options.separator.size() == 1 && !options.any_blanks),
      separator_(options.separator.empty() ? '\n' : options.separator[0]),
      next_(text.data()) {
  GoTo(next_);
}

bool QuotedRecords::Next() {
  if (next_ == end_) return false;
  if (may_be_plain_ && CutPlainRecord()) return true;
  std::string_view rest(next_, static_cast<size_t>(end_ - next_));
  record_ = TakeRecord(&rest, grammar_);
  next_ = rest.empty() ? end_ : rest.data();
  CutQuotedFields(record_, options_, &fields_);
  GoTo(next_);
  return true;
}

// The usual record, a line of plain fields that are not all empty; false leaves it to CutQuotedFields.
bool QuotedRecords::CutPlainRecord() {
  fields_.clear();
  const char* begin = next_;
  while (true) {
    const char* const mark = NextMark();
    const bool ends_record = mark == end_ || *mark == '\n';
    std::string_view field(begin, static_cast<size_t>(mark - begin));
    if (ends_record && field.ends_with('\r')) field.remove_suffix(1);
    if (!IsPlain(field)) return false;
    fields_.push_back(field);
    if (!ends_record) {
      begin = mark + 1;
      continue;
    }
    if (fields_.size() == 1 && field.empty()) return false;
    record_ = {next_, static_cast<size_t>(mark - next_)};
    next_ = mark == end_ ? end_ : mark + 1;
    return true;
  }
}

// The next separator or newline, or the end of the text.
const char* QuotedRecords::NextMark() {
  while (marks_ == 0) {
    if (end_ - block_ <= kBlock) return end_;
    GoTo(block_ + kBlock);
  }
  const char* const mark = block_ + std::countr_zero(marks_);
  marks_ &= marks_ - 1;
  return mark;
}

void QuotedRecords::GoTo(const char* at) {
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
