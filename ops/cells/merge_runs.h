// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/parallel.h"

namespace heddle::ops {

/// Merges two buffers' worth of runs at most: see MergeRuns, of which this is one part.
template <typename Item, typename Less>
void MergeOnOneThread(std::vector<std::span<const Item>> runs, const Less& less,
                      std::array<std::vector<Item>, 2>* buffers, Item* merged) {
  std::erase_if(runs, [](const auto& run) { return run.empty(); });
  size_t items = 0;
  for (const auto& run : runs) items += run.size();
  for (size_t round = 0; runs.size() > 2; ++round) {
    std::vector<Item>& buffer = (*buffers)[round % 2];
    buffer.resize(items);
    Item* to = buffer.data();
    std::vector<std::span<const Item>> longer;
    for (size_t i = 0; i < runs.size(); i += 2) {
      Item* const begin = to;
      const std::span<const Item> right = i + 1 < runs.size() ? runs[i + 1] : std::span<const Item>();
      to = std::merge(runs[i].begin(), runs[i].end(), right.begin(), right.end(), begin, less);
      longer.emplace_back(begin, to);
    }
    runs = std::move(longer);
  }
  runs.resize(2);
  std::merge(runs[0].begin(), runs[0].end(), runs[1].begin(), runs[1].end(), merged, less);
}

/// Merges runs, each of which ascends by `less`, into `merged`, on all threads. Of items that are equal those
/// of an earlier run come first, those of one run in their order.
///
/// Cost: each item is moved once for every doubling of the number of runs, in parts that fit a cache.
template <typename Item, typename Less>
void MergeRuns(const std::vector<std::span<const Item>>& runs, const Less& less, Item* merged) {
  // The parts end at some of the items that stand at every kStep-th place of a run.
  constexpr size_t kStep = 4096, kStepsOfPart = 8;
  struct Sample {
    size_t run, place;
  };
  std::vector<Sample> samples;
  for (size_t run = 0; run < runs.size(); ++run)
    for (size_t place = 0; place < runs[run].size(); place += kStep) samples.push_back({run, place});
  std::stable_sort(samples.begin(), samples.end(), [&](const Sample& a, const Sample& b) {
    return less(runs[a.run][a.place], runs[b.run][b.place]);
  });
  const auto parts = static_cast<size_t>(CeilDivide(static_cast<int64_t>(samples.size()), kStepsOfPart));
  // How many items of each run are in front of part `part`.
  const auto begins_of = [&](size_t part) {
    std::vector<size_t> begins(runs.size(), 0);
    for (size_t run = 0; part > 0 && run < runs.size(); ++run) {
      const auto& items = runs[run];
      if (part == parts) {
        begins[run] = items.size();
        continue;
      }
      const Sample& end = samples[part * kStepsOfPart];
      const Item& item = runs[end.run][end.place];
      if (run == end.run)
        begins[run] = end.place;
      else if (run < end.run)
        begins[run] =
            static_cast<size_t>(std::upper_bound(items.begin(), items.end(), item, less) - items.begin());
      else
        begins[run] =
            static_cast<size_t>(std::lower_bound(items.begin(), items.end(), item, less) - items.begin());
    }
    return begins;
  };
  ParallelFor(static_cast<int64_t>(parts), 1, [&](int64_t first, int64_t last) {
    std::array<std::vector<Item>, 2> buffers;
    std::vector<size_t> begins = begins_of(static_cast<size_t>(first));
    for (auto part = static_cast<size_t>(first); part < static_cast<size_t>(last); ++part) {
      std::vector<size_t> ends = begins_of(part + 1);
      std::vector<std::span<const Item>> inside;
      size_t before = 0;
      for (size_t run = 0; run < runs.size(); ++run) {
        inside.push_back(runs[run].subspan(begins[run], ends[run] - begins[run]));
        before += begins[run];
      }
      MergeOnOneThread(std::move(inside), less, &buffers, merged + before);
      begins = std::move(ends);
    }
  });
}

}  // namespace heddle::ops
