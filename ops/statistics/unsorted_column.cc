// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/unsorted_column.h"

#include <algorithm>

#include "ops/base/parallel.h"

namespace heddle::ops {

UnsortedColumn::UnsortedColumn(std::span<const double> cells, std::span<const Range> ranges) {
  for (const Range& range : ranges)
    for (const std::optional<double>& end : {range.begin, range.end})
      if (end) ends_.push_back(ExactSortKey(*end));
  std::sort(ends_.begin(), ends_.end());
  ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
  const size_t classes = 2 * ends_.size() + 1;
  std::vector<bool> is_asked(classes, false);
  for (const Range& range : ranges) {
    const size_t first = range.begin ? ClassOf(ExactSortKey(*range.begin)) : 0;
    const size_t last = range.end ? ClassOf(ExactSortKey(*range.end)) : classes - 1;
    for (size_t c = first; c <= last; ++c) is_asked[c] = c % 2 == 0;
  }
  struct Part {
    std::vector<int64_t> counts;
    std::vector<std::vector<uint64_t>> inside;
  };
  const auto count = static_cast<int64_t>(cells.size()), parts = int64_t{ParallelThreads()};
  std::vector<Part> of_part(static_cast<size_t>(parts));
  ParallelFor(parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      Part& part = of_part[static_cast<size_t>(p)];
      part.counts.assign(classes, 0);
      part.inside.resize(classes);
      for (int64_t i = count * p / parts; i < count * (p + 1) / parts; ++i) {
        const uint64_t key = ExactSortKey(cells[static_cast<size_t>(i)]);
        const size_t c = ClassOf(key);
        ++part.counts[c];
        if (is_asked[c]) part.inside[c].push_back(key);
      }
    }
  });
  inside_.resize(classes);
  begins_.assign(1, 0);
  for (size_t c = 0; c < classes; ++c) {
    begins_.push_back(begins_.back());
    for (Part& part : of_part) {
      begins_.back() += part.counts[c];
      inside_[c].insert(inside_[c].end(), part.inside[c].begin(), part.inside[c].end());
    }
    std::sort(inside_[c].begin(), inside_[c].end());
  }
}

size_t UnsortedColumn::ClassOf(uint64_t key) const {
  constexpr size_t kFew = 8;  // So few comparisons take less time than branches that are not foreseen.
  if (ends_.size() <= kFew) {
    size_t c = 0;
    for (const uint64_t end : ends_) c += static_cast<size_t>(key >= end) + static_cast<size_t>(key > end);
    return c;
  }
  const auto end = std::lower_bound(ends_.begin(), ends_.end(), key);
  const auto i = static_cast<size_t>(end - ends_.begin());
  return 2 * i + (end != ends_.end() && *end == key ? 1 : 0);
}

double UnsortedColumn::Key(int64_t element, size_t) const {
  const auto c =
      static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), element) - begins_.begin()) - 1;
  if (c % 2 == 1) return NumberOfSortKey(ends_[c / 2]);
  return NumberOfSortKey(inside_[c][static_cast<size_t>(element - begins_[c])]);
}

int64_t UnsortedColumn::CountBefore(int32_t rank, const GlobalElement& bound) const {
  if (rank == bound.rank) return static_cast<int64_t>(bound.before);
  const size_t c = ClassOf(ExactSortKey(bound.keys[0]));
  return begins_[rank < bound.rank ? c + 1 : c];
}

}  // namespace heddle::ops
