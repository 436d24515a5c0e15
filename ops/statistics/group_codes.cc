// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/group_codes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <mutex>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/parallel.h"
#include "ops/base/whole_number.h"
#include "ops/compressed/exact.h"
#include "ops/compressed/extreme_keys.h"
#include "ops/compressed/fold_columns.h"
#include "ops/compressed/occurring_cells.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::ops {
namespace {

constexpr int64_t kRowsAtOnce = 1024;
constexpr int64_t kGrainRows = 1 << 16;
// Counters of a thread, which stay in the second-level cache.
constexpr int64_t kMostCounters = 1 << 16;
constexpr int32_t kNoGroup = -1;

// The numbers of the rows' groups, from 0; kNoGroup of those that are left out.
class GroupNumbers {
 public:
  // False where a number is an error, or a group far beyond the rows.
  bool Prepare(const Matrix& groups, int64_t most) {
    groups_ = &groups;
    double largest = 0;
    if (groups.IsCompressed()) {
      const ColumnGroup& group = groups.groups().groups[0];
      if (group.encoding == Encoding::kUncompressed || group.encoding == Encoding::kEmpty) return false;
      cells_ = TuplesAsDoubles(group);
      const std::vector<int64_t> counts =
          CountRowsOfTuples(group, groups.first_row(), groups.first_row() + groups.rows());
      for (size_t tuple = 0; tuple < cells_.size(); ++tuple) {
        if (counts[tuple] == 0) continue;
        if (!IsKey(cells_[tuple])) return false;
        largest = std::max(largest, cells_[tuple]);
      }
    } else if (groups.IsDense() && groups.element_type() == ElementType::kFloat64) {
      for (int64_t i = 0; i < groups.rows(); ++i) {
        if (!IsKey(groups.data()[i])) return false;
        largest = std::max(largest, groups.data()[i]);
      }
    } else {
      return false;
    }
    if (largest > static_cast<double>(kMostCounters) && most == kUnknown) return false;
    count_ = PlaceOfKey(std::min(largest, static_cast<double>(kMostCounters))) + 1;
    if (most != kUnknown) count_ = std::min(count_, most);
    for (const double cell : cells_) numbers_.push_back(NumberOf(cell));
    return count_ > 0 && count_ < kMostCounters;
  }
  int64_t count() const { return count_; }

  // Of rows [begin, end), at most kRowsAtOnce, of the view that Prepare has got.
  void Read(int64_t begin, int64_t end, int32_t* numbers) const {
    if (!groups_->IsCompressed()) {
      for (int64_t i = begin; i < end; ++i) numbers[i - begin] = NumberOf(groups_->data()[i]);
      return;
    }
    std::array<uint16_t, kRowsAtOnce> codes;
    DecodeCodes(groups_->groups().groups[0], groups_->first_row() + begin, groups_->first_row() + end,
                codes.data());
    for (int64_t i = 0; i < end - begin; ++i) numbers[i] = numbers_[codes[static_cast<size_t>(i)]];
  }

 private:
  int32_t NumberOf(double group) const {
    // Tuples that no row has may be no group.
    if (!IsKey(group) || group >= static_cast<double>(count_) + 1) return kNoGroup;
    const int64_t number = PlaceOfKey(group);
    return number < count_ ? static_cast<int32_t>(number) : kNoGroup;
  }

  const Matrix* groups_ = nullptr;
  int64_t count_ = 0;
  std::vector<double> cells_;     // Of compressed groups: those of each tuple,
  std::vector<int32_t> numbers_;  // and which group they name.
};

// Rows of each group and tuple of a column group, counters[group * tuples + tuple].
struct Counted {
  const ColumnGroup* group;
  int64_t tuples;  // 1 of kEmpty.
  size_t first;    // Among the counters of all.
  std::vector<double> cells;
};

class CodesReader {
 public:
  CodesReader(const Matrix& x, const GroupPayload& payload) : x_(x), payload_(payload) {}

  bool Prepare(const Matrix& groups, int64_t most, bool reads_cells) {
    if (!numbers_.Prepare(groups, most)) return false;
    size_ = static_cast<size_t>(numbers_.count());  // The rows of each group come first.
    if (!reads_cells) return true;
    for (const ColumnGroup& group : x_.groups().groups) {
      if (group.encoding == Encoding::kUncompressed) return false;
      Counted counted{&group, std::max<int64_t>(group.tuples(), 1), size_, TuplesAsDoubles(group)};
      size_ += static_cast<size_t>(numbers_.count() * counted.tuples);
      if (size_ > static_cast<size_t>(kMostCounters)) return false;
      counted_.push_back(std::move(counted));
    }
    return true;
  }

  // Rows [begin, end) of the view.
  PayloadsOfGroups Read(int64_t begin, int64_t end) const {
    const std::vector<int64_t> counters = Count(begin, end);
    PayloadsOfGroups node;
    node.payloads.assign(static_cast<size_t>(numbers_.count() * payload_.width()), 0.0);
    for (int64_t g = 0; g < numbers_.count(); ++g) {
      const int64_t rows = counters[static_cast<size_t>(g)];
      node.occurs.push_back(rows > 0 ? 1 : 0);
      double* const numbers = node.payloads.data() + g * payload_.width();
      if (rows > 0) Fill(g, rows, counters, numbers);
    }
    return node;
  }

 private:
  std::vector<int64_t> Count(int64_t begin, int64_t end) const {
    std::vector<int64_t> counters(size_, 0);
    std::mutex mutex;
    ParallelFor(end - begin, kGrainRows, [&](int64_t first, int64_t last) {
      std::vector<int64_t> own(size_, 0);
      std::array<int32_t, kRowsAtOnce> numbers;
      std::array<uint16_t, kRowsAtOnce> codes{};
      for (int64_t row = begin + first; row < begin + last; row += kRowsAtOnce) {
        const int64_t behind = std::min(begin + last, row + kRowsAtOnce);
        const auto rows = static_cast<size_t>(behind - row);
        numbers_.Read(row, behind, numbers.data());
        for (size_t i = 0; i < rows; ++i)
          if (numbers[i] != kNoGroup) ++own[static_cast<size_t>(numbers[i])];
        for (const Counted& one : counted_) {
          if (one.group->encoding == Encoding::kEmpty)
            codes.fill(0);
          else
            DecodeCodes(*one.group, x_.first_row() + row, x_.first_row() + behind, codes.data());
          int64_t* const to = own.data() + one.first;
          for (size_t i = 0; i < rows; ++i)
            if (numbers[i] != kNoGroup) ++to[numbers[i] * one.tuples + codes[i]];
        }
      }
      const std::lock_guard lock(mutex);
      for (size_t i = 0; i < size_; ++i) counters[i] += own[i];
    });
    return counters;
  }

  // The payload of a group with so many rows.
  void Fill(int64_t g, int64_t rows, const std::vector<int64_t>& counters, double* numbers) const {
    const GroupFunction function = payload_.function();
    const bool is_minimum = function == GroupFunction::kMinimum;
    const bool is_extreme = is_minimum || function == GroupFunction::kMaximum;
    if (function == GroupFunction::kCount || function == GroupFunction::kMean)
      *numbers++ = static_cast<double>(rows);
    for (const Counted& one : counted_) {
      const int64_t* const counts = counters.data() + one.first + g * one.tuples;
      const int64_t width = one.group->width();
      for (int64_t k = 0; k < width; ++k) {
        double& result = numbers[one.group->columns[static_cast<size_t>(k)]];
        uint64_t best = ~uint64_t{0};
        for (int64_t tuple = 0; tuple < one.tuples; ++tuple) {
          if (counts[tuple] == 0) continue;
          const double cell = one.cells[static_cast<size_t>(tuple * width + k)];
          if (is_extreme)
            best = std::min(best, ExtremeKey(cell, is_minimum));
          else
            result += static_cast<double>(counts[tuple]) * cell;
        }
        if (is_extreme) result = CellOfExtremeKey(best, is_minimum);
      }
    }
  }

  const Matrix& x_;
  const GroupPayload& payload_;
  GroupNumbers numbers_;
  std::vector<Counted> counted_;
  size_t size_ = 0;
};

// Whether sums of so many rows are exact in every order, whichever rows they are of.
bool AddsExactly(const Matrix& x, int64_t rows) {
  const std::vector<ColumnGroup>& groups = x.groups().groups;
  return std::all_of(groups.begin(), groups.end(), [&](const ColumnGroup& group) {
    return group.encoding == Encoding::kUncompressed || AddExactly(UnitsOf(group), static_cast<double>(rows));
  });
}

}  // namespace

std::optional<std::vector<PayloadsOfGroups>> ReadByCodes(const Matrix& x, const Matrix& groups,
                                                         const GroupPayload& payload, int64_t most,
                                                         RowsOfAll rows, const std::atomic<bool>* cancelled) {
  const GroupFunction function = payload.function();
  const bool reads_cells = function != GroupFunction::kCount;
  if (function == GroupFunction::kVariance || function == GroupFunction::kCentralMoment ||
      (reads_cells ? !x.IsCompressed() : !groups.IsCompressed()) || x.rows() == 0)
    return std::nullopt;
  if (payload.AddsUp() && !AddsExactly(x, rows.end - rows.begin)) return std::nullopt;
  CodesReader reader(x, payload);
  if (!reader.Prepare(groups, most, reads_cells)) return std::nullopt;
  std::vector<PayloadsOfGroups> nodes;
  if (rows.begin == 0 && rows.end == rows.total) {
    nodes.push_back(reader.Read(0, rows.total));
    return nodes;
  }
  const int64_t height = Granule(rows.total);
  for (const TreeNode& node : CoveringNodes(rows.begin / height, CeilDivide(rows.end, height))) {
    if (IsCancelled(cancelled)) return std::nullopt;
    const int64_t first = (node.index << node.level) * height;
    const int64_t last = std::min(rows.end, first + (int64_t{1} << node.level) * height);
    nodes.push_back(reader.Read(first - rows.begin, last - rows.begin));
    nodes.back().panel = node.index << node.level;
  }
  return nodes;
}

}  // namespace heddle::ops
