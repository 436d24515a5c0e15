// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/group_panels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/parallel.h"
#include "ops/base/whole_number.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::ops {
namespace {

constexpr int64_t kChunk = 16384;  // rows that a thread looks for the largest group in
constexpr int64_t kMostGroups = int64_t{1} << 20;
constexpr int64_t kLeftOut = -1;

// The number of a group, 0-based, as TruncateToInteger has it; kLeftOut beyond `most`.
int64_t NumberOf(double group, int64_t most) {
  if (group >= static_cast<double>(most) + 1) return kLeftOut;
  const int64_t number = PlaceOfKey(group);
  return number < most ? number : kLeftOut;
}

// The largest group; nullopt if one is no number from 1 on.
std::optional<double> LargestGroup(const double* groups, int64_t rows) {
  std::vector<double> largest(static_cast<size_t>(CeilDivide(rows, kChunk)), 0.0);
  ParallelFor(rows, kChunk, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kChunk) {
      double high = 0;
      bool are_numbers = true;
      for (int64_t i = at; i < std::min(at + kChunk, end); ++i) {
        are_numbers &= IsKey(groups[i]);
        high = std::max(high, groups[i]);
      }
      largest[static_cast<size_t>(at / kChunk)] =
          are_numbers ? high : std::numeric_limits<double>::quiet_NaN();
    }
  });
  double all = 0;
  for (const double one : largest) {
    if (std::isnan(one)) return std::nullopt;
    all = std::max(all, one);
  }
  return all;
}

TreeNode LeftOf(const TreeNode& node) { return {2 * node.index, node.level - 1}; }
TreeNode RightOf(const TreeNode& node) { return {2 * node.index + 1, node.level - 1}; }

// Makes nodes of the reduction tree from the rows of some panels.
class PanelReader {
 public:
  PanelReader(const Matrix& x, const double* groups, const double* weights, const GroupPayload& payload,
              int64_t count, RowsOfAll rows)
      : x_(x),
        groups_(groups),
        weights_(weights),
        payload_(payload),
        count_(count),
        width_(payload.width()),
        row_begin_(rows.begin),
        height_(Granule(rows.total)) {}

  PayloadsOfGroups Read(const TreeNode& node) const {
    if (node.level == 0) return Panel(node.index);
    PayloadsOfGroups left = Read(LeftOf(node));
    Join(&left, Read(RightOf(node)));
    return left;
  }

  void Join(PayloadsOfGroups* left, const PayloadsOfGroups& right) const {
    for (int64_t g = 0; g < count_; ++g) {
      if (right.occurs[static_cast<size_t>(g)] == 0) continue;
      double* const to = left->payloads.data() + g * width_;
      const double* const from = right.payloads.data() + g * width_;
      if (left->occurs[static_cast<size_t>(g)] != 0) {
        payload_.Join(to, from);
      } else {
        std::copy_n(from, width_, to);
        left->occurs[static_cast<size_t>(g)] = 1;
      }
    }
  }

 private:
  PayloadsOfGroups Panel(int64_t panel) const {
    PayloadsOfGroups node;
    node.panel = panel;
    node.payloads.resize(static_cast<size_t>(count_ * width_));
    node.occurs.assign(static_cast<size_t>(count_), 0);
    const int64_t begin = panel * height_ - row_begin_, end = std::min(begin + height_, x_.rows());
    std::vector<int64_t> numbers(static_cast<size_t>(end - begin));
    for (int64_t i = begin; i < end; ++i) {
      numbers[static_cast<size_t>(i - begin)] = NumberOf(groups_[i], count_);
      if (numbers[static_cast<size_t>(i - begin)] != kLeftOut)
        node.occurs[static_cast<size_t>(numbers[static_cast<size_t>(i - begin)])] = 1;
    }
    payload_.MakeOfGroups(x_, weights_, begin, numbers, node.occurs, node.payloads.data());
    for (int64_t g = 0; g < count_; ++g)
      if (node.occurs[static_cast<size_t>(g)] != 0 && payload_.IsEmpty(node.payloads.data() + g * width_))
        node.occurs[static_cast<size_t>(g)] = 0;
    return node;
  }

  const Matrix& x_;
  const double* groups_;
  const double* weights_;
  const GroupPayload& payload_;
  const int64_t count_, width_, row_begin_, height_;
};

// The nodes that threads read: `node` halved until there are enough of them.
void AddParts(const TreeNode& node, int level, std::vector<TreeNode>* parts) {
  if (node.level <= level) return parts->push_back(node);
  AddParts(LeftOf(node), level, parts);
  AddParts(RightOf(node), level, parts);
}

}  // namespace

std::optional<std::vector<PayloadsOfGroups>> ReadByPanels(const Matrix& x, const Matrix& groups,
                                                          const double* weights, const GroupPayload& payload,
                                                          int64_t most, RowsOfAll rows,
                                                          const std::atomic<bool>* cancelled) {
  if (x.IsSparse() || groups.IsSparse() || x.rows() == 0) return std::nullopt;
  const std::optional<double> largest = LargestGroup(groups.data(), x.rows());
  if (!largest || (most == kUnknown && *largest >= static_cast<double>(kMostGroups))) return std::nullopt;
  int64_t count = PlaceOfKey(std::min(*largest, static_cast<double>(kMostGroups))) + 1;
  if (most != kUnknown) count = std::min(count, most);
  const int64_t height = Granule(rows.total);
  const int64_t first = rows.begin / height, last = CeilDivide(rows.end, height);
  // Joining panels costs a step a group, sorting rows a few steps a row.
  if (count == 0 || (last - first) * count > 4 * x.rows()) return std::nullopt;

  const PanelReader reader(x, groups.data(), weights, payload, count, rows);
  const std::vector<TreeNode> nodes = CoveringNodes(first, last);
  const int level = std::bit_width(static_cast<uint64_t>((last - first) / (4 * ParallelThreads())));
  std::vector<TreeNode> parts;
  for (const TreeNode& node : nodes) AddParts(node, level, &parts);
  std::vector<PayloadsOfGroups> made(parts.size());
  ParallelFor(static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end) && !IsCancelled(cancelled); ++i)
      made[i] = reader.Read(parts[i]);
  });
  if (IsCancelled(cancelled)) return std::nullopt;
  size_t next = 0;
  const auto join = [&](const auto& self, const TreeNode& node) -> PayloadsOfGroups {
    if (node.level <= level) return std::move(made[next++]);
    PayloadsOfGroups left = self(self, LeftOf(node));
    reader.Join(&left, self(self, RightOf(node)));
    return left;
  };
  std::vector<PayloadsOfGroups> joined;
  for (const TreeNode& node : nodes) joined.push_back(join(join, node));
  // Of all rows the nodes are the left halves on the way to the last panel: the root is joined from there.
  while (rows.begin == 0 && rows.end == rows.total && joined.size() > 1) {
    reader.Join(&joined[joined.size() - 2], joined.back());
    joined.pop_back();
  }
  return joined;
}

}  // namespace heddle::ops
