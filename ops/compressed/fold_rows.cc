// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/fold_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "core/values/group_rows.h"
#include "ops/compressed/exact.h"
#include "ops/compressed/extreme_keys.h"
#include "ops/compressed/fold_columns.h"
#include "ops/simd/code_bytes.h"
#include "ops/simd/half_bytes.h"

namespace heddle::ops {
namespace {

// Rows whose sums are in the first-level cache.
constexpr int64_t kRowsAtOnce = 1024;
// Additions of a byte that stay in 16 bits.
constexpr size_t kMostGroups = 257;
// Bytes of a number for which adding them up one by one is less work than looking all up.
constexpr int kMostBytes = 3;

// add(i, code) for row begin + i of [begin, end).
template <typename Add>
void ForCodes(const ColumnGroup& group, int64_t begin, int64_t end, const Add& add) {
  std::array<uint16_t, kRowsAtOnce> codes;
  DecodeCodes(group, begin, end, codes.data());
  for (int64_t i = 0; i < end - begin; ++i) add(i, codes[static_cast<size_t>(i)]);
}

// Whether the code of a row is where its number says.
bool HasWholeCodes(const ColumnGroup& group) {
  return group.encoding == Encoding::kDenseCodes && group.codes.bits() >= 8;
}

// The number that a table has for the code of a row of a group with codes of 8 or 16 bits.
template <typename Code, typename Number>
struct LookUp {
  const Code* codes;  // Of row `begin` and those behind it.
  const Number* table;
  Number At(int64_t i) const { return table[codes[i]]; }
};

// out[i] = fold(out[i], number of row begin + i of each group), four groups of as many bits at once, so that
// out[i] is read once for them. table(g) has the numbers of group g.
template <typename Code, typename Tuples, typename Number, typename Table, typename Fold>
void FoldGroups(const std::vector<Tuples>& all, int64_t begin, int64_t rows, const Table& table,
                const Fold& fold, Number* out) {
  std::vector<LookUp<Code, Number>> groups;
  for (const Tuples& tuples : all)
    if (tuples.group->codes.bits() == static_cast<int32_t>(8 * sizeof(Code)))
      groups.push_back({reinterpret_cast<const Code*>(tuples.group->codes.data()) + begin, table(tuples)});
  size_t g = 0;
  for (; g + 4 <= groups.size(); g += 4) {
    const auto a = groups[g], b = groups[g + 1], c = groups[g + 2], d = groups[g + 3];
    Number* __restrict to = out;
    for (int64_t i = 0; i < rows; ++i)
      to[i] = fold(to[i], fold(fold(a.At(i), b.At(i)), fold(c.At(i), d.At(i))));
  }
  for (; g < groups.size(); ++g) {
    const auto a = groups[g];
    Number* __restrict to = out;
    for (int64_t i = 0; i < rows; ++i) to[i] = fold(to[i], a.At(i));
  }
}

}  // namespace

SumsOfRows::SumsOfRows(const ColumnGroups& groups) {
  ExactUnits units;
  for (const ColumnGroup& group : groups.groups) units = Joined(units, UnitsOf(group));
  if (units.most == 0) return;  // Zeros.
  exponent_ = units.exponent;
  for (const ColumnGroup& group : groups.groups) {
    const std::vector<double> cells = TuplesAsDoubles(group);
    Tuples tuples{.group = &group, .units = {}, .byte_tables = {}};
    for (size_t at = 0; at < cells.size(); at += group.columns.size()) {
      int64_t& sum = tuples.units.emplace_back(0);
      for (size_t k = 0; k < group.columns.size(); ++k)
        sum += static_cast<int64_t>(std::ldexp(cells[at + k], -exponent_));
    }
    const auto [least, greatest] = std::minmax_element(tuples.units.begin(), tuples.units.end());
    const int64_t first = *least, range = *greatest - first;
    tuples.bytes = (std::bit_width(static_cast<uint64_t>(range)) + 7) / 8;
    base_ += first;
    for (int64_t& number : tuples.units) number -= first;
    if (range == 0) continue;  // The same for every row.
    const bool has_table = group.encoding == Encoding::kDenseCodes &&
                           (group.codes.bits() == 4 || (group.codes.bits() == 8 && simd::CanLookUpBytes()));
    if (has_table && tuples.bytes <= kMostBytes) {
      most_bytes_ = std::max(most_bytes_, tuples.bytes);
      const auto codes = size_t{1} << group.codes.bits();
      tuples.byte_tables.assign(codes * static_cast<size_t>(tuples.bytes), 0);
      for (size_t byte = 0; byte < static_cast<size_t>(tuples.bytes); ++byte)
        for (size_t t = 0; t < tuples.units.size(); ++t)
          tuples.byte_tables[codes * byte + t] = static_cast<uint8_t>(tuples.units[t] >> (8 * byte) & 0xFF);
      of_bytes_.push_back(std::move(tuples));
    } else {
      (HasWholeCodes(group) ? dense_ : others_).push_back(std::move(tuples));
    }
  }
}

void SumsOfRows::AddBytes(int64_t begin, int64_t end, int64_t* sums) const {
  std::array<std::array<uint16_t, kRowsAtOnce + 2>, kMostBytes> bytes;
  const int64_t first = begin - (begin & 1);  // Codes of 4 bits begin with the byte of the first row.
  for (size_t g = 0; g < of_bytes_.size(); g += kMostGroups) {
    const size_t groups = std::min(of_bytes_.size(), g + kMostGroups);
    for (int byte = 0; byte < most_bytes_; ++byte) bytes[static_cast<size_t>(byte)].fill(0);
    for (size_t i = g; i < groups; ++i) {
      const Tuples& tuples = of_bytes_[i];
      const Codes& codes = tuples.group->codes;
      for (int byte = 0; byte < tuples.bytes; ++byte) {
        uint16_t* const to = bytes[static_cast<size_t>(byte)].data();
        if (codes.bits() == 4)
          simd::AddEachHalfByte(codes.data() + first / 2, (end - first + 1) / 2,
                                tuples.byte_tables.data() + 16 * byte, to);
        else
          simd::AddEachLookedUpByte(codes.data() + begin, end - begin, tuples.byte_tables.data() + 256 * byte,
                                    to + (begin - first));
      }
    }
    for (int byte = 0; byte < most_bytes_; ++byte) {
      const uint16_t* const from = bytes[static_cast<size_t>(byte)].data() + (begin - first);
      for (int64_t i = 0; i < end - begin; ++i) sums[i] += static_cast<int64_t>(from[i]) << (8 * byte);
    }
  }
}

void SumsOfRows::Compute(int64_t begin, int64_t end, double* out) const {
  const double unit = std::ldexp(1.0, exponent_);
  std::array<int64_t, kRowsAtOnce> sums;
  for (int64_t row = begin; row < end; row += kRowsAtOnce) {
    const int64_t last = std::min(end, row + kRowsAtOnce), rows = last - row;
    std::fill_n(sums.begin(), rows, base_);
    AddBytes(row, last, sums.data());
    const auto units_of = [](const Tuples& tuples) { return tuples.units.data(); };
    FoldGroups<uint8_t>(dense_, row, rows, units_of, std::plus<int64_t>(), sums.data());
    FoldGroups<uint16_t>(dense_, row, rows, units_of, std::plus<int64_t>(), sums.data());
    for (const Tuples& tuples : others_) {
      const int64_t* const units = tuples.units.data();
      int64_t* const to = sums.data();
      if (tuples.group->encoding == Encoding::kDefault) {
        for (int64_t i = 0; i < rows; ++i) to[i] += units[0];
        ForExceptions(*tuples.group, row, last,
                      [&](int64_t at, uint32_t code) { to[at - row] += units[code] - units[0]; });
      } else {
        ForCodes(*tuples.group, row, last, [&](int64_t i, uint32_t code) { to[i] += units[code]; });
      }
    }
    for (int64_t i = 0; i < rows; ++i)
      out[row - begin + i] = static_cast<double>(sums[static_cast<size_t>(i)]) * unit;
  }
}

ExtremesOfRows::ExtremesOfRows(const ColumnGroups& groups, simd::Fold fold)
    : is_minimum_(fold == simd::Fold::kMinimum), uniform_(std::numeric_limits<uint64_t>::max()) {
  constexpr size_t kPlaces = 256;
  std::vector<uint64_t> keys;
  for (const ColumnGroup& group : groups.groups) {
    const std::vector<double> cells = TuplesAsDoubles(group);
    Tuples tuples{.group = &group, .keys = {}, .places = {}};
    for (size_t at = 0; at < cells.size(); at += group.columns.size()) {
      double best = simd::StartOf(fold);
      for (size_t k = 0; k < group.columns.size(); ++k) best = simd::FoldTwo(fold, best, cells[at + k]);
      tuples.keys.push_back(ExtremeKey(best, is_minimum_));
    }
    keys.insert(keys.end(), tuples.keys.begin(), tuples.keys.end());
    if (IsUniform(group))
      uniform_ = std::min(uniform_, tuples.keys[0]);
    else
      (HasWholeCodes(group) ? dense_ : others_).push_back(std::move(tuples));
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  if (keys.size() > kPlaces) return;
  const auto place_of = [&](uint64_t key) {
    return static_cast<uint8_t>(std::lower_bound(keys.begin(), keys.end(), key) - keys.begin());
  };
  for (const uint64_t key : keys) cells_.push_back(CellOfExtremeKey(key, is_minimum_));
  uniform_place_ = uniform_ == std::numeric_limits<uint64_t>::max() ? static_cast<uint8_t>(keys.size() - 1)
                                                                    : place_of(uniform_);
  for (std::vector<Tuples>* all : {&dense_, &others_})
    for (Tuples& tuples : *all) {
      for (const uint64_t key : tuples.keys) tuples.places.push_back(place_of(key));
      const int32_t bits = tuples.group->codes.bits();
      if (bits <= 8) tuples.places.resize(size_t{1} << bits);
    }
}

void ExtremesOfRows::ComputeByPlaces(int64_t begin, int64_t end, double* out) const {
  const auto smaller = [](uint8_t a, uint8_t b) { return std::min(a, b); };
  const auto places_of = [](const Tuples& tuples) { return tuples.places.data(); };
  std::array<uint8_t, kRowsAtOnce + 2> least;
  for (int64_t row = begin; row < end; row += kRowsAtOnce) {
    const int64_t last = std::min(end, row + kRowsAtOnce), rows = last - row;
    const int64_t first = row - (row & 1);  // Codes of 4 bits begin with the byte of the first row.
    uint8_t* const to = least.data() + (row - first);
    least.fill(uniform_place_);
    FoldGroups<uint16_t>(dense_, row, rows, places_of, smaller, to);
    if (simd::CanLookUpBytes()) {
      for (const Tuples& tuples : dense_)
        if (tuples.group->codes.bits() == 8)
          simd::LeastOfEachLookedUpByte(tuples.group->codes.data() + row, rows, tuples.places.data(), to);
    } else {
      FoldGroups<uint8_t>(dense_, row, rows, places_of, smaller, to);
    }
    for (const Tuples& tuples : others_) {
      const ColumnGroup& group = *tuples.group;
      const uint8_t* const places = tuples.places.data();
      if (group.encoding == Encoding::kDenseCodes)
        simd::LeastOfEachHalfByte(group.codes.data() + first / 2, (last - first + 1) / 2, places,
                                  least.data());
      else
        ForCodes(group, row, last, [&](int64_t i, uint32_t code) { to[i] = std::min(to[i], places[code]); });
    }
    for (int64_t i = 0; i < rows; ++i) out[row - begin + i] = cells_[to[i]];
  }
}

void ExtremesOfRows::Compute(int64_t begin, int64_t end, double* out) const {
  if (!cells_.empty()) return ComputeByPlaces(begin, end, out);
  const auto smaller = [](uint64_t a, uint64_t b) { return std::min(a, b); };
  const auto keys_of = [](const Tuples& tuples) { return tuples.keys.data(); };
  std::array<uint64_t, kRowsAtOnce> least;
  for (int64_t row = begin; row < end; row += kRowsAtOnce) {
    const int64_t last = std::min(end, row + kRowsAtOnce), rows = last - row;
    std::fill_n(least.begin(), rows, uniform_);
    FoldGroups<uint8_t>(dense_, row, rows, keys_of, smaller, least.data());
    FoldGroups<uint16_t>(dense_, row, rows, keys_of, smaller, least.data());
    for (const Tuples& tuples : others_) {
      const uint64_t* const keys = tuples.keys.data();
      ForCodes(*tuples.group, row, last,
               [&, to = least.data()](int64_t i, uint32_t code) { to[i] = std::min(to[i], keys[code]); });
    }
    for (int64_t i = 0; i < rows; ++i)
      out[row - begin + i] = CellOfExtremeKey(least[static_cast<size_t>(i)], is_minimum_);
  }
}

}  // namespace heddle::ops
