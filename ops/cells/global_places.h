// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/values/value.h"
#include "ops/cells/sort_keys.h"

// Which elements stand at some places of all elements that the ranks hold together, without moving them.
//
// Every rank holds elements in ascending order. All of them together are ordered by their keys, those of
// equal keys by rank, and those of one rank as this rank has them. An element has a weight, a whole number of
// at least 1, and stands at the places [before, before + weight) where `before` is the weight of all elements
// in front of it. With weights of 1 places count the elements, from 0.
//
//   1. Every rank tells all others some of its elements at regular distances, its samples.
//   2. Between which samples a place is follows from these alone (PlaceBounds). Each place has a rank that
//      looks it up (OwnPlaces); to this rank every other sends what it has between the bounds, its window.
//   3. That rank merges the windows (WindowReader), and tells all which element it is.
//
// With samples of every d-th element, the windows of a place on n ranks have less than 2 n d elements.
//
// What travels are rows of a matrix: the keys, then `before` and `before + weight` where only elements of the
// same rank count. A window ends with a row of its own: what is before its end, twice.
namespace heddle::ops {

/// One element, or a bound between elements.
struct GlobalElement {
  std::vector<double> keys;
  int32_t rank = 0;
  double before = 0;  ///< Among the elements of its rank.
};

/// Of how many elements each rank makes one a sample, so that the samples of all ranks, which go to all, are
/// about as many as the elements in the windows of all places.
int64_t SampleStep(int64_t elements, int64_t places);

/// Of `count` places those that `rank` looks up, [first, second). In the order of the ranks they ascend.
std::pair<int64_t, int64_t> OwnPlaces(int64_t count, int32_t rank, int32_t ranks);

/// The elements of one rank.
class RankElements {
 public:
  virtual ~RankElements() = default;
  virtual int64_t count() const = 0;
  virtual double Key(int64_t element, size_t key) const = 0;
  virtual double Before(int64_t element) const { return static_cast<double>(element); }  ///< Also of count().
};

/// How many elements of `rank` are in front of the bound.
int64_t CountBefore(const RankElements& elements, const KeyOrder& order, int32_t rank,
                    const GlobalElement& bound);

/// Rows of keys, before, and before + weight; as many as there are, row by row.
class ElementRows {
 public:
  explicit ElementRows(size_t keys) : keys_(keys) {}
  void Add(const RankElements& elements, int64_t element, double skipped = 0);
  void Add(std::span<const double> keys, double before, double after);
  /// Elements [begin, end) and the row that ends them. `skipped`: the weight of elements in front of them
  /// that the rank has beside these.
  void AddWindow(const RankElements& elements, int64_t begin, int64_t end, double skipped = 0);
  void EndWindow(double before);
  Result<Value> ToMatrix() const;

 private:
  size_t keys_;
  std::vector<double> cells_;
};

/// What the samples of all ranks tell about places.
class PlaceBounds {
 public:
  /// `samples` are those of all ranks in the order of the ranks, of rank r as many as samples_of_rank[r];
  /// weight_of_rank[r] is the weight of all its elements.
  PlaceBounds(const KeyOrder& order, size_t keys, const Matrix& samples,
              std::span<const int64_t> samples_of_rank, std::span<const double> weight_of_rank);

  /// The last sample that is surely not behind the place; nullopt: all elements may be.
  std::optional<GlobalElement> Begin(double place) const;
  /// The first sample that is surely behind the place; nullopt: none is.
  std::optional<GlobalElement> End(double place) const;

 private:
  std::optional<GlobalElement> Sample(size_t sorted) const;

  std::vector<GlobalElement> sorted_;
  std::vector<double> most_before_, least_before_;  // The weight before each of them. Both ascend.
};

/// The elements of all ranks between two bounds.
class MergedWindow {
 public:
  /// The element at a place that is in the window.
  const GlobalElement& At(double place) const { return elements_[Find(place).first]; }
  /// The weight of all elements up to that one, itself included.
  double WeightThrough(double place) const { return Find(place).second; }
  /// All, in their order, and the weight of each.
  const std::vector<GlobalElement>& elements() const { return elements_; }
  const std::vector<double>& weights() const { return weights_; }

 private:
  friend class WindowReader;
  std::pair<size_t, double> Find(double place) const;

  std::vector<GlobalElement> elements_;
  std::vector<double> weights_;
  double before_ = 0;  // The weight of all elements in front of the window.
};

/// Reads what all ranks have sent to this one: one window after the other.
class WindowReader {
 public:
  WindowReader(const KeyOrder& order, size_t keys, std::span<const Value* const> of_ranks);
  MergedWindow Next();

 private:
  KeyOrder order_;
  size_t keys_;
  std::span<const Value* const> of_ranks_;
  std::vector<int64_t> rows_;  // By rank, where the next window begins.
};

/// The element as a row: keys, rank, before; and back.
constexpr size_t kCellsBehindKeys = 2;
void WriteElement(const GlobalElement& element, double* row);
GlobalElement ReadElement(const double* row, size_t keys);

}  // namespace heddle::ops
