// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/sparse_leaves.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>

#include "core/values/panels.h"
#include "ops/base/fetch.h"
#include "ops/base/parallel.h"
#include "ops/base/thread_slots.h"
#include "ops/reduction/reduction_tasks.h"
#include "ops/simd/product/sparse_rows.h"

namespace heddle::ops {
namespace {

// Cells of a block of places, so that the last nodes of all its places stay in the second-level cache.
constexpr int64_t kBlockCells = 4096;
constexpr int64_t kMostBlocks = 4096;
// Of all leaves together: where the terms of each block begin.
constexpr int64_t kMostStarts = 1 << 23;

// Fetched ahead: the first terms of a block in the leaves to come, and weights; of many weights the first.
constexpr int64_t kLeavesAhead = 3, kFetchedTerms = 16, kTermsAhead = 16, kRowsAhead = 4;
constexpr int64_t kFetchedWeights = 64;

// How a payload is cut into blocks of 2^shift places.
struct Blocks {
  int64_t places;
  int shift;
  Blocks(int64_t places_of_payload, int64_t cells, int64_t leaves) : places(places_of_payload) {
    const int64_t most = std::clamp<int64_t>(kMostStarts / std::max<int64_t>(leaves, 1), 1, kMostBlocks);
    const int64_t size =
        std::max(FloorPowerOfTwo(std::max<int64_t>(1, kBlockCells / cells)), CeilDivide(places, most));
    shift = std::bit_width(static_cast<uint64_t>(size - 1));
  }
  int64_t size() const { return int64_t{1} << shift; }
  int64_t count() const { return CeilDivide(places, size()); }
};

// The terms of a leaf, block after block, in each in the order of the leaf.
class SortedTerms {
 public:
  SortedTerms() = default;
  SortedTerms(const SparseLeaf& leaf, const Blocks& blocks)
      : terms_(std::make_unique_for_overwrite<SparseTerm[]>(leaf.terms().size())),
        weights_(leaf.weights()),
        rows_(leaf.rows()),
        starts_(static_cast<size_t>(blocks.count()) + 1) {
    for (const SparseTerm& term : leaf.terms()) ++starts_[static_cast<size_t>(term.place >> blocks.shift)];
    int64_t start = 0;
    for (int64_t& count : starts_) start += std::exchange(count, start);
    for (const SparseTerm& term : leaf.terms())
      terms_[starts_[static_cast<size_t>(term.place >> blocks.shift)]++] = term;
    // Each block's start has become its end, that of the next one.
    std::copy_backward(starts_.begin(), starts_.end() - 1, starts_.end());
    starts_[0] = 0;
  }
  const SparseTerm* Begin(int64_t block) const { return terms_.get() + starts_[static_cast<size_t>(block)]; }
  const SparseTerm* End(int64_t block) const { return Begin(block + 1); }
  const double* weights() const { return rows_ != nullptr ? rows_ : weights_.data(); }
  // The first of a block; the machine goes on with what follows.
  void Fetch(int64_t block) const { FetchLines(Begin(block), kFetchedTerms); }

 private:
  std::unique_ptr<SparseTerm[]> terms_;
  std::vector<double> weights_;
  const double* rows_ = nullptr;
  std::vector<int64_t> starts_;
};

// Cell c of the place becomes fma(value, weights[c], cell c).
template <typename At>
[[gnu::always_inline]] inline void AddTerms(const SparseTerm* terms, const SparseTerm* end,
                                            const double* weights, int64_t cells, At at) {
  if (cells == 1) {
    for (; terms < end; ++terms) {
      _mm_prefetch(reinterpret_cast<const char*>(weights + std::min(terms + kTermsAhead, end - 1)->weights),
                   _MM_HINT_T0);
      double* const cell = at(terms->place);
      *cell = std::fma(terms->value, weights[terms->weights], *cell);
    }
    return;
  }
  for (; terms < end; ++terms) {
    FetchLines(weights + std::min(terms + kRowsAhead, end - 1)->weights * cells,
               std::min(cells, kFetchedWeights));
    simd::AddScaled(terms->value, weights + terms->weights * cells, cells, at(terms->place));
  }
}

// A tree above each place of a block on its own. Which places a term meets nothing foresees, so that few
// branches depend on it. (Whole payloads of blocks, joined in the first-level cache, were as fast where a
// term comes to fifty places of a leaf, and slower from there on.) kCells: 0 if it is not known.
template <int kCells>
class PlaceTrees {
 public:
  // For leaves that differ in no bit above `max_level` < 32.
  PlaceTrees(int64_t places, int64_t cells, int max_level)
      : cells_(cells),
        max_level_(std::max(max_level, 1)),
        last_(places * (1 + cells)),
        earlier_(places * max_level_ * cells) {}

  void Begin(int64_t places) {
    places_ = places;
    FillPayload(last_.data(), places * (1 + cells()), 0.0);
  }

  void Add(int64_t leaf_number, const SparseTerm* terms, const SparseTerm* end, int64_t first_place,
           const double* weights) {
    const auto leaf = static_cast<uint32_t>(leaf_number & ((int64_t{1} << max_level_) - 1)) + 1;
    AddTerms(terms, end, weights, cells(), [&](int64_t place) {
      double* const last = last_.data() + (place - first_place) * (1 + cells());
      if (HeadOf(last).leaf != leaf) Open(place - first_place, leaf, last);
      return last + 1;
    });
  }

  // Cell c of the first place goes to payload[c * cell_stride], that of the next one place_stride further.
  void Finish(int64_t cell_stride, int64_t place_stride, double* payload) {
    for (int64_t place = 0; place < places_; ++place) {
      double* const last = last_.data() + place * (1 + cells());
      if (const int nodes = std::popcount(HeadOf(last).levels); nodes > 0)
        JoinLast(Earlier(place), last, nodes, nodes);
      double* const out = payload + place * place_stride;
      if (cell_stride == 1) {
        std::copy_n(last + 1, cells(), out);
        continue;
      }
      for (int64_t c = 0; c < cells(); ++c) out[c * cell_stride] = last[1 + c];
    }
  }

 private:
  int64_t cells() const { return kCells > 0 ? kCells : cells_; }
  // Of the last node of a place. Bit l of `levels` says that two neighbouring nodes meet at level l, which
  // falls from pair to pair.
  struct Head {
    uint32_t leaf;  // Plus one; 0 before the first.
    uint32_t levels;
  };
  static_assert(sizeof(Head) == sizeof(double));

  static Head& HeadOf(double* last) { return reinterpret_cast<Head&>(*last); }
  double* Earlier(int64_t place) { return earlier_.data() + place * max_level_ * cells(); }

  // A new leaf of the place, +0.0. Before the first one the last node is 0.0 and meets nobody.
  [[gnu::always_inline]] void Open(int64_t place, uint32_t leaf, double* last) {
    Head& head = HeadOf(last);
    double* const earlier = Earlier(place);
    const uint32_t is_touched = head.leaf != 0;
    const int level = CommonLevel(std::max(head.leaf, 1U) - 1, leaf - 1);
    const uint32_t below = (uint32_t{1} << level) - 1;
    const int nodes = std::popcount(head.levels), joins = std::popcount(head.levels & below);
    if (joins > 0) JoinLast(earlier, last, nodes, joins);
    std::copy_n(last + 1, cells(), earlier + (nodes - joins) * cells());
    std::fill_n(last + 1, cells(), 0.0);
    head = {leaf, (head.levels & ~below) | is_touched << level};
  }

  // Of `from` nodes before the last one, the last `joins` become one with it.
  void JoinLast(const double* earlier, double* last, int from, int joins) const {
    for (int i = from - 1; i >= from - joins; --i)
      for (int64_t c = 0; c < cells(); ++c) last[1 + c] = earlier[i * cells() + c] + last[1 + c];
  }

  const int64_t cells_, max_level_;
  int64_t places_ = 0;
  // For each place: its last node with its head, and the nodes before that, earliest first.
  AlignedArray last_, earlier_;
};

// The payload of each node, block by block; `leaves` begin with number `begin`.
template <int kCells>
void AddBlocks(const Blocks& blocks, int64_t cells, PlaceLayout layout,
               const std::vector<SortedTerms>& leaves, int64_t begin, const std::vector<TreeNode>& nodes,
               Matrix* partial) {
  const bool together = layout == PlaceLayout::kCellsTogether;
  const int64_t cell_stride = together ? 1 : blocks.places, place_stride = together ? cells : 1;
  const int64_t end = begin + static_cast<int64_t>(leaves.size());
  int max_level = 0;
  for (const TreeNode& node : nodes) max_level = std::max(max_level, node.level);
  ThreadSlots<PlaceTrees<kCells>> slots;
  ParallelFor(blocks.count(), 1, [&](int64_t first, int64_t last) {
    std::unique_ptr<PlaceTrees<kCells>> trees = slots.Take();
    if (trees == nullptr) trees = std::make_unique<PlaceTrees<kCells>>(blocks.size(), cells, max_level);
    for (int64_t block = first; block < last; ++block) {
      const int64_t place = block * blocks.size();
      for (size_t n = 0; n < nodes.size(); ++n) {
        const int64_t end_leaf = std::min(end, (nodes[n].index + 1) << nodes[n].level);
        trees->Begin(std::min(blocks.size(), blocks.places - place));
        for (int64_t i = std::max(begin, nodes[n].FirstLeaf()); i < end_leaf; ++i) {
          if (i + kLeavesAhead < end_leaf) leaves[static_cast<size_t>(i + kLeavesAhead - begin)].Fetch(block);
          const SortedTerms& terms = leaves[static_cast<size_t>(i - begin)];
          trees->Add(i, terms.Begin(block), terms.End(block), place, terms.weights());
        }
        trees->Finish(cell_stride, place_stride,
                      partial->mutable_data() + static_cast<int64_t>(n) * partial->columns() + 2 +
                          place * place_stride);
      }
    }
    slots.GiveBack(std::move(trees));
  });
}

}  // namespace

Result<Matrix> ReduceSparseLeaves(const Reduction& reduction, int64_t cells, int64_t begin, int64_t end,
                                  bool whole, const SparseLeafFunction& leaf, PlaceLayout layout) {
  HEDDLE_CHECK(reduction.join == Join::kSum, "only sums may skip places");
  std::vector<TreeNode> nodes = CoveringNodes(begin, end);
  if (whole && !nodes.empty()) nodes = {{0, CommonLevel(0, end - 1)}};
  HEDDLE_ASSIGN_OR_RETURN(Matrix partial, PartialMatrix(nodes, reduction.width));

  const Blocks blocks(reduction.width / cells, cells, end - begin);
  std::vector<SortedTerms> leaves(static_cast<size_t>(end - begin));
  ThreadSlots<SparseLeaf> scratch;
  ParallelFor(end - begin, 1, [&](int64_t first, int64_t last) {
    std::unique_ptr<SparseLeaf> terms = scratch.Take();
    if (terms == nullptr) terms = std::make_unique<SparseLeaf>(cells);
    for (int64_t i = first; i < last && !IsCancelled(reduction.cancelled); ++i) {
      terms->Clear();
      leaf(begin + i, *terms);
      leaves[static_cast<size_t>(i)] = SortedTerms(*terms, blocks);
    }
    scratch.GiveBack(std::move(terms));
  });
  if (IsCancelled(reduction.cancelled)) return Cancelled("cancelled");
  if (cells == 1)
    AddBlocks<1>(blocks, cells, layout, leaves, begin, nodes, &partial);
  else
    AddBlocks<0>(blocks, cells, layout, leaves, begin, nodes, &partial);
  return partial;
}

bool AreSparseLeaves(int64_t terms, int64_t leaves, int64_t places, int64_t cells) {
  // Whole payloads pay longer while they stay in the second-level cache, and then in the third; of few, most
  // of the time is that of the passes over them.
  const int64_t width = places * cells;
  if (cells > 8) return terms < leaves * places / (width > (1 << 15) ? 1 : 6);
  const int64_t places_of_term = width > (1 << 17) && leaves < 4 ? 2
                                 : width > (1 << 19)             ? 6
                                 : width > (1 << 17)             ? 16
                                 : cells <= 2                    ? 40
                                                                 : 24;
  return terms < leaves * places / places_of_term;
}

}  // namespace heddle::ops
