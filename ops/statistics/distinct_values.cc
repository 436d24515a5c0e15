// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/distinct_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace heddle::ops {
namespace {

constexpr uint64_t kFree = ~uint64_t{0};
constexpr size_t kFewPlaces = 16;

// Of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t BitsOf(double x) {
  return std::bit_cast<uint64_t>(std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x + 0.0);
}

}  // namespace

void DistinctValues::Clear() {
  places_.assign(kFewPlaces, kFree);
  size_ = 0;
}

bool DistinctValues::Insert(uint64_t bits) {
  const size_t mask = places_.size() - 1;
  size_t at = Mix(bits) & mask;
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
  for (const uint64_t bits : old)
    if (bits != kFree) Insert(bits);
}

void DistinctValues::Add(double x) {
  if (!Insert(BitsOf(x))) return;
  if (2 * static_cast<size_t>(++size_) > places_.size()) Grow();
}

void DistinctValues::AddRow(const Matrix& x, int64_t i) {
  if (!x.IsSparse()) {
    const double* row = x.data() + i * x.columns();
    for (int64_t j = 0; j < x.columns(); ++j) Add(row[j]);
    return;
  }
  const int64_t begin = x.row_offsets()[i], end = x.row_offsets()[i + 1];
  for (int64_t k = begin; k < end; ++k) Add(x.values()[k]);
  if (end - begin < x.columns()) Add(0);
}

std::vector<double> DistinctValues::Elements() const {
  std::vector<double> values;
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
