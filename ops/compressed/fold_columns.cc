// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/fold_columns.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/values/group_rows.h"
#include "ops/compressed/exact.h"
#include "ops/compressed/extreme_keys.h"
#include "ops/simd/code_bytes.h"
#include "ops/simd/half_bytes.h"

namespace heddle::ops {
namespace {

constexpr int kClasses = 8;
constexpr int64_t kRowsAtOnce = 512;

// Of `rows` rows, counted from 0, those whose number is c modulo `classes`.
int64_t RowsOfClass(int64_t rows, int classes, int c) { return (rows - c + classes - 1) / classes; }

}  // namespace

std::vector<double> TuplesAsDoubles(const ColumnGroup& group) {
  if (group.encoding == Encoding::kEmpty) return std::vector<double>(group.columns.size(), 0.0);
  const Matrix& dictionary = group.dictionary;
  if (dictionary.element_type() == ElementType::kFloat32)
    return {dictionary.data<float>(), dictionary.data<float>() + dictionary.cells()};
  return {dictionary.data(), dictionary.data() + dictionary.cells()};
}

TupleSums::TupleSums(const ColumnGroup& group)
    : group_(group), width_(group.width()), tuples_(TuplesAsDoubles(group)) {
  if (group.encoding == Encoding::kDenseCodes && group.codes.bits() <= 8) MakeDigits();
  for (int64_t k = 0; k < width_; ++k)
    for (size_t at = static_cast<size_t>(k); at < tuples_.size(); at += static_cast<size_t>(width_))
      columns_of_tuples_.push_back(tuples_[at]);
}

void TupleSums::MakeDigits() {
  columns_.resize(static_cast<size_t>(width_));
  for (int64_t k = 0; k < width_; ++k) MakeDigitsOf(k);
  // Of codes of 4 bits, counting takes as long for each tuple as looking up takes for each digit; of 8 bits,
  // as long as some fifteen digits, but in no time are digits looked up that no instruction looks up.
  constexpr size_t kMostDigits = 12;
  const bool looks_up =
      std::any_of(digits_.begin(), digits_.end(), [](const Digit& digit) { return !digit.table.empty(); });
  const bool counts = group_.codes.bits() == 4
                          ? digits_.size() > static_cast<size_t>(group_.tuples())
                          : digits_.size() > kMostDigits || (looks_up && !simd::CanLookUpBytes());
  if (counts) columns_.clear();
}

void TupleSums::MakeDigitsOf(int64_t k) {
  Column& column = columns_[static_cast<size_t>(k)];
  const ExactUnits units = UnitsOfColumn(group_, k);
  if (units.most == 0) return;  // Zeros.
  column.exponent = units.exponent;
  std::vector<int64_t> numbers;
  for (size_t at = static_cast<size_t>(k); at < tuples_.size(); at += static_cast<size_t>(width_))
    numbers.push_back(static_cast<int64_t>(std::ldexp(tuples_[at], -units.exponent)));
  const int64_t step = numbers.size() < 2 ? 0 : numbers[1] - numbers[0];
  bool is_linear = group_.codes.bits() == 8;
  for (size_t t = 1; t < numbers.size() && is_linear; ++t) is_linear = numbers[t] - numbers[t - 1] == step;
  if (is_linear) {
    column.least = numbers[0];
    digits_.push_back({.column = k, .units = static_cast<uint64_t>(step), .most = 255, .table = {}});
    return;
  }
  const auto [least, greatest] = std::minmax_element(numbers.begin(), numbers.end());
  column.least = *least;
  const auto bits = static_cast<size_t>(group_.codes.bits());
  const auto all = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(*greatest - *least)));
  for (size_t shift = 0; shift < all; shift += bits) {
    Digit digit{.column = k, .units = uint64_t{1} << shift, .most = 1, .table = {}};
    digit.table.resize(size_t{1} << bits);
    for (size_t t = 0; t < numbers.size(); ++t) {
      const auto above = static_cast<uint64_t>(numbers[t] - column.least);
      digit.table[t] = static_cast<uint8_t>(above >> shift & ((uint64_t{1} << bits) - 1));
      digit.most = std::max<int>(digit.most, digit.table[t]);
    }
    digits_.push_back(std::move(digit));
  }
}

void TupleSums::AddTuple(int64_t tuple, double rows, double* sums) const {
  const double* const cells = tuples_.data() + tuple * width_;
  for (int64_t k = 0; k < width_; ++k) sums[k] += rows * cells[k];
}

// Of `rows` rows, the first of which has `before` others in front of it. add(digit, of_place) adds a digit.
template <typename AddDigit>
void TupleSums::AddDigits(int64_t rows, int64_t before, int classes, const AddDigit& add,
                          double* sums) const {
  // In whole numbers: what is above the least is larger than cells are, and so may its sum be.
  std::vector<uint64_t> units(static_cast<size_t>(kClasses * width_));
  for (const Digit& digit : digits_) {
    uint64_t of_place[kClasses] = {};
    add(digit, of_place);
    for (int place = 0; place < kClasses; ++place)
      units[static_cast<size_t>(place * width_ + digit.column)] += of_place[place] * digit.units;
  }
  for (int place = 0; place < kClasses; ++place) {
    const auto count = static_cast<uint64_t>(RowsOfClass(rows, kClasses, place));
    for (int64_t k = 0; k < width_; ++k) {
      const Column& column = columns_[static_cast<size_t>(k)];
      const uint64_t number =
          units[static_cast<size_t>(place * width_ + k)] + count * static_cast<uint64_t>(column.least);
      sums[(place + before) % classes * width_ + k] +=
          std::ldexp(static_cast<double>(static_cast<int64_t>(number)), column.exponent);
    }
  }
}

void TupleSums::AddCounted(int64_t begin, int64_t end, int classes, double* sums) const {
  const std::vector<int64_t> counts = CountTuples(group_, begin, end, classes);
  auto count = counts.begin();
  for (int c = 0; c < classes; ++c)
    for (int64_t tuple = 0; tuple < group_.tuples(); ++tuple, ++count)
      if (*count > 0) AddTuple(tuple, static_cast<double>(*count), sums + c * width_);
}

void TupleSums::AddHalfBytes(int64_t begin, int64_t end, int classes, double* sums) const {
  const int64_t first = begin + (begin & 1), bytes = (end - first) / 2;
  if (first > begin) AddTuple(group_.codes.At(begin), 1, sums);
  for (int64_t row = first + 2 * bytes; row < end; ++row)
    AddTuple(group_.codes.At(row), 1, sums + (row - begin) % classes * width_);
  if (bytes == 0) return;
  const uint8_t* const halves = group_.codes.data() + first / 2;
  const auto add = [&](const Digit& digit, uint64_t* of_place) {
    simd::AddOfHalfBytes(halves, bytes, digit.table.data(), digit.most, of_place);
  };
  AddDigits(2 * bytes, first - begin, classes, add, sums);
}

void TupleSums::AddBytes(int64_t begin, int64_t end, int classes, double* sums) const {
  const uint8_t* const codes = group_.codes.data() + begin;
  const int64_t rows = end - begin;
  const auto add = [&](const Digit& digit, uint64_t* of_place) {
    if (digit.table.empty())
      simd::AddOfBytes(codes, rows, of_place);
    else
      simd::AddOfLookedUpBytes(codes, rows, digit.table.data(), of_place);
  };
  AddDigits(rows, 0, classes, add, sums);
}

void TupleSums::AddRows(int64_t begin, int64_t end, int classes, double* sums) const {
  std::array<uint16_t, kRowsAtOnce> decoded;
  const bool are_wide = group_.encoding == Encoding::kDenseCodes && group_.codes.bits() == 16;
  const auto* const wide = reinterpret_cast<const uint16_t*>(group_.codes.data());
  for (int64_t row = begin; row < end; row += kRowsAtOnce) {
    const int64_t rows = std::min(end, row + kRowsAtOnce) - row;
    if (!are_wide) DecodeCodes(group_, row, row + rows, decoded.data());
    for (int64_t k = 0; k < width_; ++k) {
      double of_place[kClasses] = {};
      simd::AddOfLookedUp(are_wide ? wide + row : decoded.data(), rows,
                          columns_of_tuples_.data() + k * group_.tuples(), of_place);
      for (int place = 0; place < kClasses; ++place) sums[place % classes * width_ + k] += of_place[place];
    }
  }
}

void TupleSums::Add(int64_t begin, int64_t end, int classes, double* sums) const {
  if (begin >= end || group_.tuples() == 0) return;
  if (!columns_.empty())
    return group_.codes.bits() == 4 ? AddHalfBytes(begin, end, classes, sums)
                                    : AddBytes(begin, end, classes, sums);
  const bool has_wide_codes = group_.encoding == Encoding::kDenseCodes && group_.codes.bits() == 16;
  if (!has_wide_codes && end - begin >= classes * group_.tuples())
    AddCounted(begin, end, classes, sums);
  else
    AddRows(begin, end, classes, sums);
}

TupleExtremes::TupleExtremes(const ColumnGroup& group, simd::Fold fold)
    : group_(group),
      is_minimum_(fold == simd::Fold::kMinimum),
      width_(group.width()),
      best_(group.columns.size(), std::numeric_limits<uint64_t>::max()) {
  for (const double cell : TuplesAsDoubles(group)) keys_.push_back(ExtremeKey(cell, is_minimum_));
  for (int64_t tuple = 0; tuple < static_cast<int64_t>(keys_.size()) / width_; ++tuple)
    FoldTuple(tuple, best_.data());
}

void TupleExtremes::FoldTuple(int64_t tuple, uint64_t* least) const {
  const uint64_t* const keys = keys_.data() + tuple * width_;
  for (int64_t k = 0; k < width_; ++k) least[k] = std::min(least[k], keys[k]);
}

void TupleExtremes::FoldCodes(int64_t begin, int64_t end, uint64_t* least) const {
  // Most often the first rows have all tuples, so what is read between two looks grows from little to much.
  constexpr int64_t kFirstRows = 256, kMostRows = int64_t{1} << 16;
  const int64_t tuples = group_.tuples();
  std::vector<uint8_t> seen(static_cast<size_t>(tuples), 0);  // 2 and 3: folded already.
  int64_t step = std::max(kFirstRows, tuples);
  for (int64_t row = begin; row < end; row += step, step = std::min(4 * step, kMostRows)) {
    const int64_t last = std::min(end, row + step);
    const auto mark = [&](uint32_t code) { seen[code] |= 1; };
    if (group_.codes.bits() == 4) {
      int64_t from = row;
      if ((from & 1) != 0) mark(group_.codes.At(from++));
      const int64_t bytes = (last - from) / 2;
      const uint32_t set = simd::SetOfHalfBytes(group_.codes.data() + from / 2, bytes);
      for (uint32_t rest = set; rest != 0; rest &= rest - 1)
        mark(static_cast<uint32_t>(std::countr_zero(rest)));
      if (from + 2 * bytes < last) mark(group_.codes.At(last - 1));
    } else if (group_.codes.bits() == 8) {
      for (int64_t i = row; i < last; ++i) seen[group_.codes.data()[i]] |= 1;
    } else {
      const auto* const codes = reinterpret_cast<const uint16_t*>(group_.codes.data());
      for (int64_t i = row; i < last; ++i) seen[codes[i]] |= 1;
    }
    for (int64_t tuple = 0; tuple < tuples; ++tuple) {
      if (seen[static_cast<size_t>(tuple)] != 1) continue;
      seen[static_cast<size_t>(tuple)] = 2;
      FoldTuple(tuple, least);
    }
    if (std::equal(best_.begin(), best_.end(), least)) return;
  }
}

void TupleExtremes::Fold(int64_t begin, int64_t end, double* extremes) const {
  if (begin >= end || group_.encoding == Encoding::kUncompressed) return;
  std::vector<uint64_t> least(best_.size(), std::numeric_limits<uint64_t>::max());
  std::vector<uint8_t> seen(static_cast<size_t>(group_.tuples()), 0);
  if (IsUniform(group_)) {
    least = best_;
  } else if (group_.encoding == Encoding::kDenseCodes) {
    FoldCodes(begin, end, least.data());
  } else if (group_.encoding == Encoding::kRuns) {
    ForRuns(group_, begin, end, [&](int64_t, int64_t, uint32_t code) { seen[code] = 1; });
  } else {
    int64_t exceptions = 0;
    ForExceptions(group_, begin, end, [&](int64_t, uint32_t code) {
      seen[code] = 1;
      ++exceptions;
    });
    if (exceptions < end - begin) seen[0] = 1;
  }
  for (int64_t tuple = 0; tuple < group_.tuples(); ++tuple)
    if (seen[static_cast<size_t>(tuple)] != 0) FoldTuple(tuple, least.data());
  const simd::Fold fold = is_minimum_ ? simd::Fold::kMinimum : simd::Fold::kMaximum;
  for (int64_t k = 0; k < width_; ++k)
    extremes[k] =
        simd::FoldTwo(fold, extremes[k], CellOfExtremeKey(least[static_cast<size_t>(k)], is_minimum_));
}

}  // namespace heddle::ops
