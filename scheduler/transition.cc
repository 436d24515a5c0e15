// SPDX-License-Identifier: Apache-2.0
#include "scheduler/transition.h"

#include <algorithm>
#include <bit>

#include "core/status.h"
#include "core/values/panels.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::scheduler {
namespace {

constexpr double kChunkBytes = 4 << 20;
constexpr int32_t kMostChunks = 16;

// Steps in which so many ranks have met by halves.
int StepsOf(int32_t ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

double LengthOf(const Split& split, int32_t rank) {
  return static_cast<double>(split.End(rank) - split.Begin(rank));
}

double LongestPart(const Split& split, int32_t ranks) {
  double longest = 0;
  for (int32_t rank = 0; rank < ranks; ++rank) longest = std::max(longest, LengthOf(split, rank));
  return longest;
}

// The rows of `a` and `b` that rank r has of both.
double Common(const Split& a, const Split& b, int32_t rank) {
  const int64_t begin = std::max(a.Begin(rank), b.Begin(rank)), end = std::min(a.End(rank), b.End(rank));
  return static_cast<double>(std::max<int64_t>(0, end - begin));
}

Transition Recut(double bytes, const Split& from, const Split& to, int32_t ranks) {
  Transition moved;
  const auto length = static_cast<double>(std::max<int64_t>(from.Length(), 1));
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const double common = Common(from, to, rank);
    const double sent = LengthOf(from, rank) - common, received = LengthOf(to, rank) - common;
    moved.sent_bytes += sent * bytes / length;
    moved.slowest_bytes = std::max(moved.slowest_bytes, std::max(sent, received) * bytes / length);
  }
  moved.messages = moved.sent_bytes > 0 ? 1 : 0;
  return moved;
}

// Between rows and columns: of what a rank has, the part stays that it will have.
Transition Turned(double bytes, const Split& from, const Split& to, int32_t ranks) {
  Transition moved;
  const auto share = [](const Split& split, int32_t rank) {
    return LengthOf(split, rank) / static_cast<double>(std::max<int64_t>(split.Length(), 1));
  };
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const double has = share(from, rank), gets = share(to, rank);
    const double sent = has * (1 - gets) * bytes, received = gets * (1 - has) * bytes;
    moved.sent_bytes += sent;
    moved.slowest_bytes = std::max({moved.slowest_bytes, sent, received});
  }
  moved.messages = moved.sent_bytes > 0 ? 1 : 0;
  return moved;
}

}  // namespace

Transition TransitionOf(double bytes, const Distribution& from, const Distribution& to, int32_t ranks) {
  using Kind = Distribution::Kind;
  HEDDLE_CHECK(from.kind != Kind::kPartial && to.kind != Kind::kPartial, "what is partial is finished");
  if (from == to || from.IsEach() || ranks == 1) return {};
  const double others = ranks - 1;
  const int steps = ranks <= kMostDirectRanks ? 1 : StepsOf(ranks);
  if (from.IsOne()) {
    if (to.IsOne()) return {bytes, bytes, 1};
    if (const int32_t chunks = ChunksOf(bytes, ranks); to.IsEach() && chunks > 1) {
      const int depth = StepsOf(ranks);
      return {others * bytes, bytes, depth, (depth - 1) * 2 * bytes / chunks};
    }
    if (to.IsEach()) return {others * bytes, (ranks <= kMostDirectRanks ? others : steps) * bytes, steps};
    const auto length = static_cast<double>(std::max<int64_t>(to.split.Length(), 1));
    const double sent = bytes * (1 - LengthOf(to.split, from.rank) / length);
    return {sent, sent, 1};
  }
  // Cuts that only the run tells are taken for even ones.
  const bool is_known = !from.split.cuts.empty();
  const auto length = is_known ? static_cast<double>(std::max<int64_t>(from.split.Length(), 1)) : ranks;
  const auto part = [&](int32_t rank) {
    return is_known ? LengthOf(from.split, rank) / length : 1.0 / ranks;
  };
  const double longest = is_known ? LongestPart(from.split, ranks) / length : 1.0 / ranks;
  if (to.IsOne()) {
    const double sent = bytes * (1 - part(to.rank));
    return {sent, sent, bytes > static_cast<double>(kMostTreeBytes) ? 1 : steps};
  }
  if (to.IsEach() && ranks > kMostDirectRanks && bytes <= static_cast<double>(kMostTreeBytes))
    return {2 * others * bytes, 2 * steps * bytes, 2 * steps};
  if (to.IsEach() && ranks > kMostExchanged && is_known && from.split.axis == Axis::kRows)
    return {others * bytes, bytes * (1 - 1.0 / ranks), StepsOf(ranks)};
  if (to.IsEach()) return {others * bytes, bytes * std::max(others * longest, 1 - 1.0 / ranks), 1};
  if (!is_known || to.split.cuts.empty()) return {};
  return from.split.axis == to.split.axis ? Recut(bytes, from.split, to.split, ranks)
                                          : Turned(bytes, from.split, to.split, ranks);
}

int32_t ChunksOf(double bytes, int32_t ranks) {
  if (ranks < 3 || bytes < 2 * kChunkBytes) return 1;
  const auto chunks = static_cast<int32_t>(std::min<double>(bytes / kChunkBytes, kMostChunks));
  return (chunks + 1) / 2 * 2;
}

Transition ListsToOne(double bytes, const std::vector<int>& nodes, int32_t rank) {
  double sent = 0;
  for (size_t from = 0; from < nodes.size(); ++from)
    if (from != static_cast<size_t>(rank)) sent += nodes[from] * bytes;
  return {sent, sent, 1};
}

Transition ListsInParts(double bytes, const std::vector<int>& nodes) {
  const auto ranks = static_cast<int32_t>(nodes.size());
  double all = 0, longest = 0;
  for (const int count : nodes) {
    all += count * bytes;
    longest = std::max(longest, count * bytes);
  }
  const double share = 1 - 1.0 / ranks;
  // By halves lists are joined on their way, and stay about as long as they are.
  if (ranks > kMostExchanged) return {all * share, longest * share, StepsOf(ranks)};
  return {all * share, std::max(longest * share, all / ranks * share), 1};
}

std::vector<int> NodesOfLists(const Split& cuts) {
  const int64_t granule = Granule(cuts.Length());
  std::vector<int> nodes;
  for (size_t rank = 0; rank + 1 < cuts.cuts.size(); ++rank) {
    const int64_t begin = cuts.cuts[rank], end = cuts.cuts[rank + 1];
    nodes.push_back(begin == end ? 0
                                 : static_cast<int>(
                                       ops::CoveringNodes(begin / granule, CeilDivide(end, granule)).size()));
  }
  return nodes;
}

double NanosecondsOf(const Transition& transition, const ops::MachineConstants& constants) {
  return transition.messages * constants.links.message_ns +
         (transition.slowest_bytes + transition.delay_bytes) / constants.links.bytes_per_ns;
}

}  // namespace heddle::scheduler
