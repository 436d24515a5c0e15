// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/select_ranks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include "ops/base/parallel.h"
#include "ops/cells/sort_keys.h"

namespace heddle::ops {
namespace {

constexpr int kDigitBits = 16;
constexpr size_t kDigits = size_t{1} << kDigitBits;
constexpr int64_t kSorted = 4096;  // so few are sorted: counting would touch more counters than cells

using Key = uint64_t;
using Counts = std::vector<uint32_t>;

// Keys [0, count), in parts that threads read.
struct Parts {
  int64_t count;
  int64_t parts;

  explicit Parts(int64_t n) : count(n), parts(n < kSorted ? 1 : ParallelThreads()) {}
  template <typename Body>
  void ForEach(const Body& body) const {  // body(part, begin, end)
    ParallelFor(parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part)
        body(static_cast<size_t>(part), count * part / parts, count * (part + 1) / parts);
    });
  }
};

void SelectKeys(std::vector<Key> keys, int shift, std::span<const int64_t> places, Key* found);

// Writes the keys at `places` of key(0) ... key(count - 1), which are equal above the digit at `shift`.
template <typename KeyAt>
void Select(int64_t count, const KeyAt& key, int shift, std::span<const int64_t> places, Key* found) {
  const Parts parts(count);
  const auto digit = [&](Key k) { return static_cast<size_t>(k >> shift) % kDigits; };
  std::vector<Counts> counted(static_cast<size_t>(parts.parts));
  parts.ForEach([&](size_t part, int64_t begin, int64_t end) {
    Counts& counts = counted[part];
    counts.assign(kDigits, 0);
    for (int64_t i = begin; i < end; ++i) ++counts[digit(key(i))];
  });
  // The digits that hold a place, and how many keys are below each.
  struct Bucket {
    size_t digit;
    int64_t below;
    size_t first_place, last_place;
  };
  std::vector<Bucket> buckets;
  std::vector<uint16_t> bucket_of(kDigits, 0);  // counted from 1
  int64_t below = 0;
  size_t next = 0;
  for (size_t d = 0; d < kDigits && next < places.size(); ++d) {
    int64_t here = 0;
    for (const Counts& counts : counted) here += counts[d];
    const size_t first = next;
    while (next < places.size() && places[next] < below + here) ++next;
    if (next > first) {
      buckets.push_back({d, below, first, next});
      bucket_of[d] = static_cast<uint16_t>(buckets.size());
    }
    below += here;
  }
  std::vector<std::vector<std::vector<Key>>> taken(static_cast<size_t>(parts.parts));
  parts.ForEach([&](size_t part, int64_t begin, int64_t end) {
    std::vector<std::vector<Key>>& keys = taken[part];
    keys.resize(buckets.size());
    for (size_t b = 0; b < buckets.size(); ++b) keys[b].reserve(counted[part][buckets[b].digit]);
    for (int64_t i = begin; i < end; ++i) {
      const Key k = key(i);
      if (const uint16_t b = bucket_of[digit(k)]; b != 0) keys[b - 1].push_back(k);
    }
  });
  ParallelFor(static_cast<int64_t>(buckets.size()), 1, [&](int64_t first, int64_t last) {
    for (auto b = static_cast<size_t>(first); b < static_cast<size_t>(last); ++b) {
      std::vector<Key> keys = std::move(taken[0][b]);
      for (size_t part = 1; part < taken.size(); ++part)
        keys.insert(keys.end(), taken[part][b].begin(), taken[part][b].end());
      std::vector<int64_t> inside(places.begin() + static_cast<int64_t>(buckets[b].first_place),
                                  places.begin() + static_cast<int64_t>(buckets[b].last_place));
      for (int64_t& place : inside) place -= buckets[b].below;
      SelectKeys(std::move(keys), shift - kDigitBits, inside, found + buckets[b].first_place);
    }
  });
}

void SelectKeys(std::vector<Key> keys, int shift, std::span<const int64_t> places, Key* found) {
  const auto count = static_cast<int64_t>(keys.size());
  if (shift >= 0 && count > kSorted)
    return Select(
        count, [&](int64_t i) { return keys[static_cast<size_t>(i)]; }, shift, places, found);
  if (count > kSorted) {  // all digits are equal
    std::fill_n(found, places.size(), keys[0]);
    return;
  }
  std::sort(keys.begin(), keys.end());
  for (size_t i = 0; i < places.size(); ++i) found[i] = keys[static_cast<size_t>(places[i])];
}

bool HasNaN(std::span<const double> cells) {
  std::atomic<bool> has = false;
  Parts(static_cast<int64_t>(cells.size())).ForEach([&](size_t, int64_t begin, int64_t end) {
    bool found = false;
    for (int64_t i = begin; i < end; ++i) found |= std::isnan(cells[static_cast<size_t>(i)]);
    if (found) has = true;
  });
  return has;
}

}  // namespace

std::vector<double> SelectRanks(std::span<const double> cells, std::span<const int64_t> places) {
  if (HasNaN(cells)) return {};
  std::vector<Key> found(places.size());
  const auto count = static_cast<int64_t>(cells.size());
  if (count <= kSorted) {
    std::vector<Key> keys(cells.size());
    std::transform(cells.begin(), cells.end(), keys.begin(), ExactSortKey);
    SelectKeys(std::move(keys), -1, places, found.data());
  } else {
    Select(
        count, [&](int64_t i) { return ExactSortKey(cells[static_cast<size_t>(i)]); }, 64 - kDigitBits,
        places, found.data());
  }
  std::vector<double> result(places.size());
  std::transform(found.begin(), found.end(), result.begin(), NumberOfSortKey);
  return result;
}

}  // namespace heddle::ops
