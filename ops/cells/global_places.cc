// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/global_places.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heddle::ops {
namespace {

// The keys of elements as numbers, row by row.
class KeyRows {
 public:
  KeyRows(const KeyOrder& order, size_t keys, const std::vector<GlobalElement>& elements) : keys_(keys) {
    numbers_.reserve(elements.size() * keys);
    for (const GlobalElement& element : elements)
      for (const double key : element.keys) numbers_.push_back(order.KeyOf(key));
  }
  // The elements in ascending order of their keys, those of equal keys as they are.
  std::vector<size_t> Sorted(size_t elements) const {
    std::vector<size_t> sorted(elements);
    std::iota(sorted.begin(), sorted.end(), size_t{0});
    std::stable_sort(sorted.begin(), sorted.end(), [&](size_t a, size_t b) {
      const uint64_t *const left = numbers_.data() + a * keys_, *const right = numbers_.data() + b * keys_;
      return std::lexicographical_compare(left, left + keys_, right, right + keys_);
    });
    return sorted;
  }

 private:
  size_t keys_;
  std::vector<uint64_t> numbers_;
};

GlobalElement ElementOfRow(const double* row, size_t keys, int32_t rank) {
  return {.keys = std::vector<double>(row, row + keys), .rank = rank, .before = row[keys]};
}

}  // namespace

int64_t SampleStep(int64_t elements, int64_t places) {
  if (places == 0) return elements + 1;
  return std::max<int64_t>(
      1, static_cast<int64_t>(std::sqrt(static_cast<double>(elements) / (2 * static_cast<double>(places)))));
}

std::pair<int64_t, int64_t> OwnPlaces(int64_t count, int32_t rank, int32_t ranks) {
  return {count * rank / ranks, count * (rank + 1) / ranks};
}

int64_t CountBefore(const RankElements& elements, const KeyOrder& order, int32_t rank,
                    const GlobalElement& bound) {
  // Whether an element is in front of all, or behind all, whose keys are those of the bound.
  const auto sign = [&](int64_t element) {
    for (size_t k = 0; k < bound.keys.size(); ++k) {
      const uint64_t a = order.KeyOf(elements.Key(element, k)), b = order.KeyOf(bound.keys[k]);
      if (a != b) return a < b ? -1 : 1;
    }
    return 0;
  };
  const auto is_before = [&](int64_t element) {
    const int by_keys = sign(element);
    if (by_keys != 0) return by_keys < 0;
    return rank == bound.rank ? elements.Before(element) < bound.before : rank < bound.rank;
  };
  int64_t begin = 0, end = elements.count();
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (is_before(middle))
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

void ElementRows::Add(std::span<const double> keys, double before, double after) {
  cells_.insert(cells_.end(), keys.begin(), keys.end());
  cells_.insert(cells_.end(), {before, after});
}

void ElementRows::Add(const RankElements& elements, int64_t element, double skipped) {
  for (size_t k = 0; k < keys_; ++k) cells_.push_back(elements.Key(element, k));
  cells_.insert(cells_.end(), {elements.Before(element) + skipped, elements.Before(element + 1) + skipped});
}

void ElementRows::AddWindow(const RankElements& elements, int64_t begin, int64_t end, double skipped) {
  for (int64_t element = begin; element < end; ++element) Add(elements, element, skipped);
  EndWindow(elements.Before(end) + skipped);
}

void ElementRows::EndWindow(double before) {
  cells_.insert(cells_.end(), keys_, 0.0);
  cells_.insert(cells_.end(), {before, before});
}

Result<Value> ElementRows::ToMatrix() const {
  const size_t width = keys_ + kCellsBehindKeys;
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix rows, Matrix::Dense(static_cast<int64_t>(cells_.size() / width), static_cast<int64_t>(width)));
  std::copy(cells_.begin(), cells_.end(), rows.mutable_data());
  return Value(std::move(rows));
}

PlaceBounds::PlaceBounds(const KeyOrder& order, size_t keys, const Matrix& samples,
                         std::span<const int64_t> samples_of_rank, std::span<const double> weight_of_rank) {
  const size_t ranks = samples_of_rank.size(), width = keys + kCellsBehindKeys;
  std::vector<GlobalElement> elements;
  std::vector<double> after, next;  // Of each sample: before + weight, and `before` of the next of its rank.
  for (size_t rank = 0; rank < ranks; ++rank) {
    for (int64_t i = 0; i < samples_of_rank[rank]; ++i) {
      const double* const row = samples.data() + elements.size() * width;
      elements.push_back(ElementOfRow(row, keys, static_cast<int32_t>(rank)));
      after.push_back(row[keys + 1]);
      next.push_back(i + 1 < samples_of_rank[rank] ? row[width + keys] : weight_of_rank[rank]);
    }
  }
  // In the order of all elements, one sample after the other: of the elements of each rank at least those up
  // to its last sample are before the present one, and at most those in front of its next.
  std::vector<double> last_after(ranks, 0.0);
  double most = 0, least = 0;
  for (size_t rank = 0, first = 0; rank < ranks; ++rank) {
    most += samples_of_rank[rank] > 0 ? elements[first].before : weight_of_rank[rank];
    first += static_cast<size_t>(samples_of_rank[rank]);
  }
  for (const size_t i : KeyRows(order, keys, elements).Sorted(elements.size())) {
    double& last = last_after[static_cast<size_t>(elements[i].rank)];
    most_before_.push_back(most);
    least_before_.push_back(least - last + elements[i].before);
    most += next[i] - elements[i].before;
    least += after[i] - last;
    last = after[i];
    sorted_.push_back(std::move(elements[i]));
  }
}

std::optional<GlobalElement> PlaceBounds::Sample(size_t sorted) const {
  if (sorted >= sorted_.size()) return std::nullopt;
  return sorted_[sorted];
}

std::optional<GlobalElement> PlaceBounds::Begin(double place) const {
  const auto behind = std::upper_bound(most_before_.begin(), most_before_.end(), place);
  if (behind == most_before_.begin()) return std::nullopt;
  return Sample(static_cast<size_t>(behind - most_before_.begin()) - 1);
}

std::optional<GlobalElement> PlaceBounds::End(double place) const {
  const auto behind = std::upper_bound(least_before_.begin(), least_before_.end(), place);
  return Sample(static_cast<size_t>(behind - least_before_.begin()));
}

std::pair<size_t, double> MergedWindow::Find(double place) const {
  double through = before_;
  for (size_t i = 0; i < elements_.size(); ++i) {
    through += weights_[i];
    if (place < through) return {i, through};
  }
  HEDDLE_CHECK(false, "the bounds of a place hold its element");
}

WindowReader::WindowReader(const KeyOrder& order, size_t keys, std::span<const Value* const> of_ranks)
    : order_(order), keys_(keys), of_ranks_(of_ranks), rows_(of_ranks.size(), 0) {}

MergedWindow WindowReader::Next() {
  const size_t width = keys_ + kCellsBehindKeys;
  std::vector<GlobalElement> elements;
  std::vector<double> weights;
  MergedWindow window;
  for (size_t rank = 0; rank < of_ranks_.size(); ++rank) {
    const double* row = of_ranks_[rank]->matrix().data() + rows_[rank] * static_cast<int64_t>(width);
    window.before_ += row[keys_];
    for (; row[keys_ + 1] > row[keys_]; row += width) {
      elements.push_back(ElementOfRow(row, keys_, static_cast<int32_t>(rank)));
      weights.push_back(row[keys_ + 1] - row[keys_]);
    }
    rows_[rank] = (row - of_ranks_[rank]->matrix().data()) / static_cast<int64_t>(width) + 1;
  }
  for (const size_t i : KeyRows(order_, keys_, elements).Sorted(elements.size())) {
    window.elements_.push_back(std::move(elements[i]));
    window.weights_.push_back(weights[i]);
  }
  return window;
}

void WriteElement(const GlobalElement& element, double* row) {
  row = std::copy(element.keys.begin(), element.keys.end(), row);
  row[0] = element.rank;
  row[1] = element.before;
}

GlobalElement ReadElement(const double* row, size_t keys) {
  return {.keys = std::vector<double>(row, row + keys),
          .rank = static_cast<int32_t>(row[keys]),
          .before = row[keys + 1]};
}

}  // namespace heddle::ops
