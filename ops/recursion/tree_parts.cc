// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/tree_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "ops/parallel.h"
#include "ops/recursion/batch_time.h"

namespace heddle::ops {
namespace {

constexpr int32_t kRest = -1;
// Subtrees that are replaced by those of their children, at most, for parts of more even size; and how far a
// part may be from an even share of the work.
constexpr int kMostCuts = 64;
constexpr double kUneven = 0.03;
// Rows of a batch for which the work of a node is taken.
constexpr int64_t kUsualRows = 8;

class PartChooser {
 public:
  PartChooser(const Linearized& structure, int threads, const BatchTime& time)
      : structure_(structure), threads_(threads), time_(time) {}

  TreeParts Choose() {
    if (threads_ < 2 || structure_.batches.empty() || !AddUpSubtrees()) return {};
    const std::optional<std::vector<int64_t>> bounds = Cut();
    if (!bounds) return {};
    TreeParts parts = PartsWithin(*bounds);
    if (parts.parts.size() < 2 || TimeOf(parts) >= TimeOf(structure_.batches, threads_)) return {};
    return parts;
  }

 private:
  const Linearized::Class& ClassOf(const Linearized::Batch& batch) const {
    return structure_.classes[static_cast<size_t>(batch.node_class)];
  }
  template <typename Body>
  static void EachChild(const Linearized::Class& node_class, int64_t place, const Body& body) {
    const int64_t size = node_class.end - node_class.begin;
    for (int64_t call = 0; call < node_class.calls; ++call)
      body(static_cast<size_t>(
          node_class.children[static_cast<size_t>(call * size + place - node_class.begin)]));
  }

  // The work of each node with all that is below it. False where a node is called twice.
  bool AddUpSubtrees() {
    const size_t nodes = structure_.nodes.size();
    work_.assign(nodes, 0);
    class_of_.assign(nodes, 0);
    std::vector<bool> is_child(nodes, false);
    for (const Linearized::Batch& batch : structure_.batches) {
      const double of_node = time_(batch.node_class, kUsualRows, 1) / kUsualRows;
      bool is_shared = false;
      for (int64_t place = batch.begin; place < batch.end; ++place) {
        double work = of_node;
        EachChild(ClassOf(batch), place, [&](size_t child) {
          is_shared |= is_child[child];
          is_child[child] = true;
          work += work_[child];
        });
        work_[static_cast<size_t>(place)] = work;
        class_of_[static_cast<size_t>(place)] = batch.node_class;
      }
      if (is_shared) return false;
    }
    for (const int32_t root : structure_.roots) {
      const auto place = static_cast<size_t>(root);
      if (is_child[place]) continue;
      is_child[place] = true;  // A root that is given twice is one tree.
      tops_.push_back(root);
    }
    return true;
  }

  // Lets `tops_` be subtrees that make parts of about the same work when they are shared out in their order:
  // part i has those from bounds[i] on. Where a bound would lie in the middle of a subtree, its top goes to
  // the rest and its children's subtrees take its place. nullopt where there are no two parts.
  std::optional<std::vector<int64_t>> Cut() {
    std::vector<int32_t> best_tops;
    std::vector<int64_t> best, bounds;
    double least = std::numeric_limits<double>::infinity(), above = 0;
    for (int cuts = 0; cuts <= kMostCuts; ++cuts) {
      const Share share = ShareOut(&bounds);
      if (share.largest + above < least) {
        least = share.largest + above;
        best_tops = tops_;
        best = bounds;
      }
      if (share.missed < kUneven * share.even) break;
      const auto top = tops_.begin() + static_cast<std::ptrdiff_t>(share.divided);
      const auto place = static_cast<size_t>(*top);
      const int32_t node_class = class_of_[place];
      above += time_(node_class, 1, threads_);
      std::vector<int32_t> children;
      EachChild(structure_.classes[static_cast<size_t>(node_class)], *top,
                [&](size_t child) { children.push_back(static_cast<int32_t>(child)); });
      if (children.empty()) break;
      tops_.insert(tops_.erase(top), children.begin(), children.end());
    }
    tops_ = std::move(best_tops);
    return tops_.size() < 2 ? std::nullopt : std::optional(std::move(best));
  }

  struct Share {
    double even = 0, largest = 0;  // The work of a part: an even share, and that of the largest one.
    // The subtree that keeps a bound farthest from where shares would be even, and how far.
    size_t divided = 0;
    double missed = 0;
  };
  Share ShareOut(std::vector<int64_t>* bounds) const {
    Share share;
    double all = 0;
    for (const int32_t top : tops_) all += work_[static_cast<size_t>(top)];
    share.even = all / threads_;
    bounds->assign(1, 0);
    double before = 0, begin = 0;
    for (size_t i = 0; i < tops_.size(); ++i) {
      const double after = before + work_[static_cast<size_t>(tops_[i])];
      while (bounds->size() < static_cast<size_t>(threads_) &&
             share.even * static_cast<double>(bounds->size()) <= after) {
        const double wanted = share.even * static_cast<double>(bounds->size());
        const bool takes = after - wanted < wanted - before;
        const double missed = std::min(after - wanted, wanted - before);
        if (missed > share.missed) {
          share.missed = missed;
          share.divided = i;
        }
        bounds->push_back(static_cast<int64_t>(takes ? i + 1 : i));
        share.largest = std::max(share.largest, (takes ? after : before) - begin);
        begin = takes ? after : before;
      }
      before = after;
    }
    share.largest = std::max(share.largest, all - begin);
    bounds->resize(static_cast<size_t>(threads_) + 1, static_cast<int64_t>(tops_.size()));
    return share;
  }

  TreeParts PartsWithin(const std::vector<int64_t>& bounds) const {
    std::vector<int32_t> part_of(structure_.nodes.size(), kRest);
    TreeParts parts;
    for (size_t i = 0; i + 1 < bounds.size(); ++i) {
      if (bounds[i] >= bounds[i + 1]) continue;
      for (int64_t top = bounds[i]; top < bounds[i + 1]; ++top)
        part_of[static_cast<size_t>(tops_[static_cast<size_t>(top)])] = static_cast<int32_t>(parts.parts.size());
      parts.parts.emplace_back();
    }
    parts.subtrees = static_cast<int64_t>(tops_.size());
    for (size_t at = structure_.batches.size(); at-- > 0;) {
      const Linearized::Batch& batch = structure_.batches[at];
      for (int64_t place = batch.begin; place < batch.end; ++place)
        if (const int32_t part = part_of[static_cast<size_t>(place)]; part != kRest)
          EachChild(ClassOf(batch), place, [&](size_t child) { part_of[child] = part; });
    }
    for (const Linearized::Batch& batch : structure_.batches)
      for (int64_t begin = batch.begin, end; begin < batch.end; begin = end) {
        const int32_t part = part_of[static_cast<size_t>(begin)];
        for (end = begin + 1; end < batch.end && part_of[static_cast<size_t>(end)] == part;) ++end;
        (part == kRest ? parts.rest : parts.parts[static_cast<size_t>(part)])
            .push_back({batch.node_class, begin, end});
      }
    return parts;
  }

  double TimeOf(const TreeParts::Batches& batches, int threads) const {
    double time = 0;
    for (const Linearized::Batch& batch : batches)
      time += time_(batch.node_class, batch.end - batch.begin, threads);
    return time;
  }
  double TimeOf(const TreeParts& parts) const {
    double longest = 0;
    for (const TreeParts::Batches& part : parts.parts) longest = std::max(longest, TimeOf(part, 1));
    return longest + kHandOverMicroseconds + TimeOf(parts.rest, threads_);
  }

  const Linearized& structure_;
  const int threads_;
  const BatchTime& time_;
  std::vector<double> work_;       // By place.
  std::vector<int32_t> class_of_;  // By place.
  std::vector<int32_t> tops_;      // Of subtrees that parts have, root after root.
};

}  // namespace

TreeParts ChooseParts(const Linearized& structure, int threads, const BatchTime& time) {
  return PartChooser(structure, threads, time).Choose();
}

Status EachPart(const TreeParts& parts, const std::function<Status(size_t part)>& run) {
  std::vector<Status> failed(parts.parts.size());
  ParallelFor(static_cast<int64_t>(parts.parts.size()), 1, [&](int64_t begin, int64_t end) {
    const SerialLoops serial;
    for (int64_t part = begin; part < end; ++part)
      failed[static_cast<size_t>(part)] = run(static_cast<size_t>(part));
  });
  for (const Status& status : failed) HEDDLE_RETURN_IF_ERROR(status);
  return OkStatus();
}

std::string ToText(const TreeParts& parts) {
  if (parts.parts.empty()) return "levels";
  return fmt::format("{} over {} threads", parts.rest.empty() ? "trees" : "subtrees below a cut",
                     parts.parts.size());
}

}  // namespace heddle::ops
