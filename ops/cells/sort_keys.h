// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

// Sorting numbers by unsigned keys.
namespace heddle::ops {

/// Unsigned integers in the order of the doubles, -0.0 below 0.0. Not of NaN.
inline uint64_t ExactSortKey(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  return bits >> 63 != 0 ? ~bits : bits | (uint64_t{1} << 63);
}
/// The same, where -0.0 equals 0.0 and every NaN is above infinity.
constexpr uint64_t kNaNSortKey = ~uint64_t{0} - 1;
inline uint64_t SortKey(double x) { return std::isnan(x) ? kNaNSortKey : ExactSortKey(x + 0.0); }
/// The number of a key of either kind.
inline double NumberOfSortKey(uint64_t key) {
  if (key == kNaNSortKey) return std::numeric_limits<double>::quiet_NaN();
  return std::bit_cast<double>(key >> 63 != 0 ? key ^ (uint64_t{1} << 63) : ~key);
}

/// Which of two doubles comes first: the one of the smaller key.
struct KeyOrder {
  bool decreasing = false;
  bool zeros_differ = false;  ///< -0.0 comes before 0.0. There is no NaN then.

  uint64_t KeyOf(double x) const {
    const uint64_t key = zeros_differ ? ExactSortKey(x) : SortKey(x);
    return decreasing ? ~key : key;
  }
  /// One of the numbers that have the key.
  double NumberOf(uint64_t key) const { return NumberOfSortKey(decreasing ? ~key : key); }
};

/// Sorts items by `key_of(item)`, a uint64_t, stably; `scratch` is room that calls may share. Least
/// significant byte first, leaving out bytes that all keys share.
template <typename Item, typename KeyOf>
void SortByKeys(std::vector<Item>* items, std::vector<Item>* scratch, const KeyOf& key_of) {
  constexpr size_t kFew = 512, kBytes = 8;
  if (items->size() < kFew) {
    std::stable_sort(items->begin(), items->end(),
                     [&](const Item& a, const Item& b) { return key_of(a) < key_of(b); });
    return;
  }
  uint64_t different = 0;
  for (const Item& item : *items) different |= key_of(item) ^ key_of(items->front());
  std::array<size_t, kBytes> shifts;
  size_t passes = 0;
  for (size_t byte = 0; byte < kBytes; ++byte)
    if ((different >> (8 * byte) & 255) != 0) shifts[passes++] = 8 * byte;
  scratch->resize(items->size());
  std::array<std::array<size_t, 256>, kBytes> counts{};
  for (const Item& item : *items)
    for (size_t pass = 0; pass < passes; ++pass) ++counts[pass][key_of(item) >> shifts[pass] & 255];
  for (size_t pass = 0; pass < passes; ++pass) {
    size_t sum = 0;
    for (size_t& count : counts[pass]) sum += std::exchange(count, sum);
    for (const Item& item : *items) (*scratch)[counts[pass][key_of(item) >> shifts[pass] & 255]++] = item;
    std::swap(*items, *scratch);
  }
}

}  // namespace heddle::ops
