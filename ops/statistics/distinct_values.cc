// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/distinct_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "ops/cells/sort_keys.h"

namespace heddle::ops {
namespace {

constexpr uint64_t kFree = ~uint64_t{0};
constexpr size_t kFewPlaces = 16;
// A larger table would not stay in the second-level cache.
constexpr int64_t kMostInTable = 1 << 14;
// Keys of the list that are not sorted yet, at least: as many as that cache holds beside their copy.
constexpr size_t kLeastUnsorted = 1 << 18;

// Of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t BitsOf(double x) {
  return std::bit_cast<uint64_t>(std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x + 0.0);
}

// Of two ascending lists without duplicates.
std::vector<uint64_t> Union(const std::vector<uint64_t>& left, const std::vector<uint64_t>& right) {
  std::vector<uint64_t> all(left.size() + right.size());
  const uint64_t *a = left.data(), *const a_end = a + left.size();
  const uint64_t *b = right.data(), *const b_end = b + right.size();
  uint64_t* out = all.data();
  while (a < a_end && b < b_end) {
    const uint64_t x = *a, y = *b;
    *out++ = std::min(x, y);
    a += x <= y ? 1 : 0;
    b += y <= x ? 1 : 0;
  }
  out = std::copy(a, a_end, out);
  out = std::copy(b, b_end, out);
  all.resize(static_cast<size_t>(out - all.data()));
  return all;
}

}  // namespace

void DistinctValues::Clear() {
  places_.assign(kFewPlaces, kFree);
  shift_ = 64 - std::countr_zero(kFewPlaces);
  size_ = 0;
  keys_.clear();
  sorted_ = 0;
}

bool DistinctValues::Insert(uint64_t bits) {
  const size_t mask = places_.size() - 1;
  // The upper bits of the product depend on all bits of its operand; those of whole numbers end in zeros.
  size_t at = ((bits ^ bits >> 32) * 0x9e3779b97f4a7c15ULL) >> shift_;
  while (places_[at] != kFree) {
    if (places_[at] == bits) return false;
    at = (at + 1) & mask;
  }
  places_[at] = bits;
  return true;
}

void DistinctValues::Grow() {
  std::vector<uint64_t> old(4 * places_.size(), kFree);
  old.swap(places_);
  shift_ -= 2;
  for (const uint64_t bits : old)
    if (bits != kFree) Insert(bits);
}

void DistinctValues::AddToTable(uint64_t bits) {
  if (!Insert(bits)) return;
  if (++size_ > kMostInTable)
    LeaveTable();
  else if (2 * static_cast<size_t>(size_) > places_.size())
    Grow();
}

void DistinctValues::LeaveTable() {
  for (const uint64_t bits : std::exchange(places_, {}))
    if (bits != kFree) AddToList(SortKey(std::bit_cast<double>(bits)));
  size_ = 0;
}

void DistinctValues::SortListIfLong() {
  if (keys_.size() - sorted_ >= std::max(kLeastUnsorted, sorted_)) SortList();
}

void DistinctValues::SortList() {
  if (sorted_ == keys_.size()) return;
  const auto first_unsorted = keys_.begin() + static_cast<int64_t>(sorted_);
  std::vector<uint64_t> sorted, scratch;
  if (sorted_ > 0) {
    sorted.assign(keys_.begin(), first_unsorted);
    keys_.erase(keys_.begin(), first_unsorted);
  }
  SortByKeys(&keys_, &scratch, [](uint64_t key) { return key; });
  keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
  if (!sorted.empty()) keys_ = Union(sorted, keys_);
  sorted_ = keys_.size();
}

void DistinctValues::Add(double x) { AddCells(&x, 1); }

void DistinctValues::AddCells(const double* cells, int64_t count) {
  const double* const end = cells + count;
  while (cells < end && IsTable()) AddToTable(BitsOf(*cells++));
  while (cells < end) {
    const double* const stop = cells + std::min<int64_t>(end - cells, kLeastUnsorted);
    const size_t needed = keys_.size() + static_cast<size_t>(stop - cells);
    if (needed > keys_.capacity()) keys_.reserve(std::max(2 * keys_.size(), needed));
    for (; cells < stop; ++cells) AddToList(SortKey(*cells));
    SortListIfLong();
  }
}

void DistinctValues::AddRows(const Matrix& x, int64_t begin, int64_t end) {
  if (!x.IsSparse()) return AddCells(x.data() + begin * x.columns(), (end - begin) * x.columns());
  const int64_t first = x.row_offsets()[begin], last = x.row_offsets()[end];
  AddCells(x.values() + first, last - first);
  if (last - first < (end - begin) * x.columns()) Add(0);
}

void DistinctValues::Join(DistinctValues other) {
  if (IsTable() && !other.IsTable()) std::swap(*this, other);
  if (other.IsTable()) {
    for (const uint64_t bits : other.places_) {
      if (bits != kFree) Add(std::bit_cast<double>(bits));
    }
    return;
  }
  SortList();
  other.SortList();
  keys_ = Union(keys_, other.keys_);
  sorted_ = keys_.size();
}

int64_t DistinctValues::Count() {
  if (IsTable()) return size_;
  SortList();
  return static_cast<int64_t>(keys_.size());
}

std::vector<double> DistinctValues::Elements() {
  std::vector<double> values;
  if (!IsTable()) {
    SortList();
    values.resize(keys_.size());
    std::transform(keys_.begin(), keys_.end(), values.begin(), NumberOfSortKey);
    return values;
  }
  values.reserve(static_cast<size_t>(size_));
  for (const uint64_t bits : places_)
    if (bits != kFree) values.push_back(std::bit_cast<double>(bits));
  std::sort(values.begin(), values.end(),
            [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; });
  return values;
}

double HashOfValue(double x) {
  // The bits of whole numbers end in zeros: the constant keeps 0.0 from being its own hash.
  return static_cast<double>(Mix(BitsOf(x) + 0x9e3779b97f4a7c15ULL) >> 11);
}

}  // namespace heddle::ops
