// SPDX-License-Identifier: Apache-2.0
#include "ops/product/matmul_gemm.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/values/panels.h"
#include "ops/base/cpu.h"
#include "ops/base/fetch.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/product/gemm_fetches.h"
#include "ops/product/matmul_pack.h"
#include "ops/simd/product/gemm.h"
#include "ops/simd/product/matmul.h"

namespace heddle::ops {
namespace {

constexpr int64_t kLargestTile = 8 * 48;
// A result of at most so many cells stays in the second-level cache from one step to the next.
constexpr int64_t kSmallResult = 1 << 15;
// A result of more cells, of short chains, is written past the caches, a block of rows at a time: then its
// lines need not be read first. 1.3 to 5 times as fast for chains of 10 terms, as fast for 32.
constexpr int64_t kStreamedResult = 1 << 22, kStreamedDepth = 32, kMostStreamedColumns = 128;
// Rows of A of at most so many cells take little to multiply: the next ones are prefetched during the
// packing.
constexpr int64_t kFetchedDepth = 128;
// How many lines before their use lines are prefetched that are read in the order of memory.
constexpr int64_t kLinesFurther = 64;
// Tasks that keep a thread busy to the end; fewer where each task of a block of rows packs those rows again.
constexpr int64_t kTasksOfThread = 16, kPackingTasksOfThread = 6;
// Tasks of the last step of a product: threads that are held up wait less for each other then.
constexpr int64_t kLastTasksOfThread = 24;
// About two microseconds. A longer wait may be for another thread of the same processor.
constexpr int kTriesBeforeYield = 64;

// Cells of C of a product of floats that are computed together: their sums in doubles stay in the last-level
// cache.
constexpr int64_t kSumCells = 1 << 22;

// Cells of A in one task of a skinny product.
constexpr int64_t kSkinnyTaskCells = 1 << 17;

// Of a symmetric product whose last strip has few columns: the first of these columns. Tiles of them would
// leave lanes empty, so the last rows of C are computed whole and copied to the last columns (TurnLastRows).
// Behind all columns where the last strip is wide.
template <typename Cell>
int64_t FirstTurned(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel) {
  const int64_t few = g.n % kernel.columns;
  return IsSymmetric(g) && few > 0 && few <= kernel.rows && few < g.n ? g.n - few : std::max(g.m, g.n);
}

template <typename Cell, typename Result>
void TurnLastRows(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel, Result* c) {
  const int64_t first = FirstTurned(g, kernel);
  for (int64_t i = first; i < g.n; ++i)
    for (int64_t j = 0; j < first; ++j) c[j * g.c_row + i] = c[i * g.c_row + j];
}

// Columns of a widest strip that are left of the diagonal for a whole tile, which begins `below` rows below
// it.
template <typename Cell>
int64_t SkippedColumns(const GemmKernel<Cell>& kernel, int64_t below) {
  if (below <= 0 || !kernel.any_b) return 0;
  return below / kernel.tiles[0].columns * kernel.tiles[0].columns;
}

// A tile of fewer rows than the kernel's: it is made beside C, and its first `height` rows are copied.
template <typename Cell>
void MultiplyLow(const GemmTile<Cell>& tile, int64_t depth, const GemmRows<Cell>& a,
                 const GemmFetches<Cell>& fetches, const Cell* b, int64_t b_row, const GemmCells& to,
                 int64_t height) {
  alignas(64) double edge[kLargestTile] = {};
  alignas(64) float edge_singles[kLargestTile] = {};
  const bool in_singles = to.open || (to.last && to.singles != nullptr);
  GemmCells aside{edge, tile.columns, to.width, to.first, to.last};
  if (in_singles) aside.singles = edge_singles, aside.singles_row = tile.columns;
  aside.open = to.open;
  for (int64_t r = 0; !to.first && r < height; ++r) {
    if (to.open)
      std::copy_n(to.singles + r * to.singles_row, to.width, edge_singles + r * tile.columns);
    else
      std::copy_n(to.c + r * to.row, to.width, edge + r * tile.columns);
  }
  tile.run(depth, a, fetches, b, b_row, aside);
  for (int64_t r = 0; r < height; ++r) {
    if (in_singles)
      std::copy_n(edge_singles + r * tile.columns, to.width, to.singles + r * to.singles_row);
    else
      std::copy_n(edge + r * tile.columns, to.width, to.c + r * to.row);
  }
}

// Rows [i0, i0 + rows) of C, whose cells in the columns of a step are `block`, take strips [begin, end) of
// the step. `packed_b` is null where B is read in place. `fetches_c`: the cells of C come from memory.
template <typename Cell>
void MultiplyBlock(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel, const GemmStep& step, int64_t i0,
                   int64_t rows, const RowsOfA<Cell>& rows_of_a, const Cell* packed_b, int64_t begin,
                   int64_t end, NextMemory<Cell> next_step, const GemmCells& block, bool fetches_c) {
  constexpr int64_t kLine = GemmFetches<Cell>::kLine;
  alignas(64) double sums[kLargestTile];  // Of a tile of floats whose only step this is.
  const int64_t strip_cells = StripCells(kernel.columns, step.depth), turned = FirstTurned(g, kernel);
  for (int64_t strip = begin; strip < end; ++strip) {
    const int64_t j = strip * kernel.columns, width = std::min(kernel.columns, step.columns - j);
    const GemmTile<Cell>& widest = kernel.TileFor(width);
    const bool has_low = kernel.low.columns == widest.columns;
    const Cell* b =
        packed_b == nullptr ? g.b + step.k0 * g.b_row + step.j0 + j : packed_b + strip * strip_cells;
    const int64_t b_row = packed_b == nullptr ? g.b_row : widest.columns;
    NextStrip<Cell> next_strip;
    if (packed_b != nullptr && strip + 1 < end && (next_step.done() || g.packed != nullptr))
      next_strip = {b + strip_cells, strip_cells,
                    CeilDivide(strip_cells, kLine * std::max<int64_t>(1, rows / widest.rows)) * kLine};
    for (int64_t i = 0, height, strip_of_a = 0; i < rows; i += height) {
      const bool above = i0 + i < turned;
      if (g.upper_only && above && (step.j0 + j >= turned || step.j0 + j + width <= i0 + i)) {
        height = turned - i0 - i;
        strip_of_a = (turned - i0) / kernel.rows;
        continue;
      }
      GemmRows<Cell> a = rows_of_a.Strip(strip_of_a++);
      height = std::min(kernel.rows, rows - i);
      const GemmTile<Cell>& tile = has_low && height <= kernel.low.rows ? kernel.low : widest;
      if (tile.rows > kernel.rows && i + kernel.rows < rows) {
        const GemmRows<Cell>& next = rows_of_a.Strip(strip_of_a);
        if (next.row == a.row && next.column == a.column) {
          a.next = next.a;
          height = std::min(tile.rows, rows - i);
          ++strip_of_a;
        }
      }
      GemmCells to = block.From(i, j);
      to.width = width;
      if (to.c == nullptr) to.c = sums, to.row = kernel.columns;
      GemmFetches<Cell> fetches;
      // A chain cannot start before its cell of C is there: the next block's cells come while this one
      // computes.
      if (fetches_c) {
        const bool is_last = i + height >= rows;  // The first block of the next strip follows.
        fetches.c = is_last ? to.c + width - i * to.row : to.c + height * to.row;
        fetches.c_rows = is_last ? (strip + 1 < end ? kernel.rows : 0) : std::min(height, rows - i - height);
      }
      next_strip.Give(&fetches);
      if (strip == begin && a.column == 1 && a.row > 1 && g.prefetched == nullptr) {
        // Rows of A that were not packed come from memory.
        const Cell* const later = a.a + 2 * height * a.row;
        if (MemoryStreams() > 1 || a.row != step.depth)
          FetchMemory(later, kernel.rows, a.row, &fetches);
        else
          FetchMemory(later + kLinesFurther * kLine, kernel.rows, 0, &fetches);
      } else {
        next_step.Give(&fetches);
      }
      if (height == tile.rows) {
        const int64_t skipped = g.upper_only && above && width == kernel.columns
                                    ? SkippedColumns(kernel, i0 + i - step.j0 - j)
                                    : 0;
        const GemmTile<Cell>& right = skipped == 0 ? tile : kernel.TileFor(width - skipped);
        right.run(step.depth, a, fetches, b + skipped, b_row, to.From(0, skipped));
      } else {
        MultiplyLow(tile, step.depth, a, fetches, b, b_row, to, height);
      }
    }
  }
}

// What rows [i0, i0 + rows) of C fetch in a step: their part of what the caller reads next; or all of B in
// the next step, if its rows lie without gaps and one task computes all of C.
template <typename Cell>
NextMemory<Cell> NextStep(const GemmOf<Cell>& g, const GemmKernel<Cell>& kernel, const GemmStep& step,
                          int64_t i0, int64_t rows, bool alone) {
  const int64_t strips = CeilDivide(g.n, kernel.columns);
  int64_t tiles = CeilDivide(rows, kernel.rows) * strips;
  if (g.upper_only) tiles = (tiles + strips) / 2;
  if (g.prefetched != nullptr) {
    const auto part = [&](int64_t done) {
      return g.prefetched_cells * done / (g.m * g.k);
    };  // Of multiplied cells of A.
    const int64_t done = step.k0 * g.m + i0 * step.depth;
    return {g.prefetched + part(done), part(done + rows * step.depth) - part(done), step.depth, tiles};
  }
  if (g.parallel && step.depth == g.k && g.k <= kFetchedDepth && g.a_column == 1 && g.a_row == g.k &&
      step.columns == g.n) {
    // Rows of A that this thread is likely to pack next: threads take blocks in turns.
    const int64_t next = i0 + kBlockRows * ParallelThreads(), count = std::min(kBlockRows, g.m - next);
    return count > 0 ? NextMemory<Cell>(g.a + next * g.k, count * g.k, step.depth, tiles)
                     : NextMemory<Cell>();
  }
  if (!alone || g.packed != nullptr || g.b_row != g.n || step.columns != g.n) return {};
  const int64_t depth = g.b_continues ? step.depth : std::min(step.depth, g.k - step.k0 - step.depth);
  return {g.b + (step.k0 + step.depth) * g.b_row, depth * g.n, step.depth, tiles};
}

bool IsSkinny(const SingleGemm&) { return false; }
bool IsSkinny(const Gemm& g) {
  return g.packed == nullptr && g.a_column == 1 && g.b_row == g.n && g.canonical && !g.accumulate &&
         !g.upper_only && g.prefetched == nullptr && simd::IsSkinny(g.m, g.k, g.n);
}

void RunSkinny(const SingleGemm&) {}
void RunSkinny(const Gemm& g) {
  const int64_t groups = g.m / 8;  // Of eight rows; the last one has the rest, too.
  const auto multiply = [&](int64_t begin, int64_t end) {
    const int64_t first = 8 * begin, last = end == groups ? g.m : 8 * end;
    if (!IsCancelled(g.cancelled))
      simd::MultiplySkinny(g.a + first * g.a_row, last - first, g.a_row, g.k, g.b, g.n, g.c + first * g.c_row,
                           g.c_row, g.a_row == g.k ? simd::Prefetch(simd::Prefetch::kFar) : simd::Prefetch());
  };
  if (g.parallel)
    ParallelFor(groups, std::max<int64_t>(1, kSkinnyTaskCells / (8 * g.k)), multiply);
  else
    multiply(0, groups);
}

// The steps of a product, one after the other: B is packed, and blocks of rows of C take their part of the
// chain.
template <typename Cell>
class Product {
 public:
  explicit Product(const GemmOf<Cell>& g) : g_(g), blocks_(CeilDivide(g.m, kBlockRows)) {
    const int64_t depth = DepthOf(g, kernel_);
    for (int64_t j0 = 0; j0 < g.n; j0 += kBlockColumns)
      for (int64_t k0 = 0; k0 < g.k; k0 += depth) {
        const int64_t here = std::min(depth, g.k - k0);
        steps_.push_back({j0, std::min(kBlockColumns, g.n - j0), k0, here, k0 == 0 && !g.accumulate,
                          (g.canonical || g.singles != nullptr) && k0 + here == g.k});
      }
    if (g.singles != nullptr && g.k > depth)
      sums_ = std::make_unique<PackedCells<double>>(g.m * std::min(g.n, kBlockColumns));
    // A thread computes all strips of a block, as there are many more blocks than threads.
    streams_ = std::is_same_v<Cell, double> && steps_.size() == 1 && steps_[0].first && g.c_row == g.n &&
               !g.upper_only && g.k <= kStreamedDepth && g.n <= kMostStreamedColumns &&
               g.m * g.n > kStreamedResult && reinterpret_cast<uintptr_t>(g.c) % 64 == 0;
    if (!g.parallel || streams_) return;
    const int64_t tasks =
        FindSourceOfA(g, kernel_) == SourceOfA::kPacked ? kPackingTasksOfThread : kTasksOfThread;
    groups_ = CeilDivide(ParallelThreads() * tasks, blocks_);
    last_groups_ = CeilDivide(ParallelThreads() * std::max(tasks, kLastTasksOfThread), blocks_);
  }

  void Run() {
    if (g_.parallel && ParallelThreads() > 1 && blocks_ * Groups(0) > 1)
      RunTogether();
    else
      RunAlone();
  }

 private:
  // Counts of what the threads have done. A thread takes the next unit of work and waits until that may
  // begin, so it waits for units that other threads are computing, never for units that nobody has taken.
  struct Progress {
    Progress(size_t steps, int64_t blocks)
        : packed(steps), multiplied(steps), of_block(static_cast<size_t>(blocks)) {}
    std::atomic<int64_t> taken = 0;
    std::vector<std::atomic<int64_t>> packed, multiplied;  // Of each step.
    std::vector<std::atomic<int64_t>> of_block;            // Groups of all steps so far.
  };

  bool Packs() const { return g_.packed == nullptr && !ReadsInPlace(g_, kernel_); }
  int64_t Strips(const GemmStep& step) const { return CeilDivide(step.columns, kernel_.columns); }
  // The first step is packed before all products; another one by the first three quarters of the products
  // before, part by part: threads that packed at the same time would wait for memory.
  int64_t PackingUnits(size_t t) const {
    if (!Packs()) return 0;
    return t == 0 ? CeilDivide(Strips(steps_[0]), kStripsTogether)
                  : CeilDivide(blocks_ * Groups(t - 1) * 3, 4);
  }
  // Where there are few blocks of rows, each block's strips are shared out.
  int64_t Groups(size_t t) const {
    return std::min(t + 1 < steps_.size() ? groups_ : last_groups_,
                    CeilDivide(Strips(steps_[t]), kFewStrips));
  }
  const Cell* PackedB(size_t t) const {
    if (g_.packed != nullptr) return g_.packed->At(steps_[t].j0, steps_[t].k0);
    return Packs() ? Buffer(t) : nullptr;
  }

  Cell* Buffer(size_t t) const { return buffers_[t % buffers_.size()]->data(); }
  void Pack(size_t t, int64_t unit) const {
    const int64_t strips = Strips(steps_[t]), units = PackingUnits(t);
    PackB(g_, kernel_, steps_[t], strips * unit / units, strips * (unit + 1) / units, Buffer(t));
  }

  // What one thread keeps.
  struct Scratch {
    explicit Scratch(const Product& product)
        : rows_of_a(product.g_, product.kernel_), prepared(product.steps_.size(), 0) {
      if (product.streams_) block = std::make_unique<PackedCells<double>>(kBlockRows * product.g_.n);
    }
    RowsOfA<Cell> rows_of_a;
    std::pair<size_t, int64_t> prepared;         // Which step's block `rows_of_a` has.
    std::unique_ptr<PackedCells<double>> block;  // Of rows of C on their way past the caches.
  };

  void Multiply(size_t t, int64_t block, int64_t group, int64_t groups, bool alone, Scratch& scratch) const {
    const GemmStep& step = steps_[t];
    const int64_t i0 = block * kBlockRows, rows = std::min(kBlockRows, g_.m - i0);
    if ((g_.upper_only && step.j0 + step.columns <= i0 && FirstTurned(g_, kernel_) >= i0 + rows) ||
        IsCancelled(g_.cancelled))
      return;
    if (scratch.prepared != std::pair(t, block)) scratch.rows_of_a.Prepare(step, i0, rows, PackedB(t));
    scratch.prepared = {t, block};
    const GemmCells to = CellsOf(step, i0);
    const auto multiply = [&](const GemmCells& cells, bool fetches_c) {
      MultiplyBlock(g_, kernel_, step, i0, rows, scratch.rows_of_a, PackedB(t), Strips(step) * group / groups,
                    Strips(step) * (group + 1) / groups,
                    NextStep(g_, kernel_, step, i0, rows, alone && blocks_ == 1), cells, fetches_c);
    };
    if (scratch.block == nullptr) return multiply(to, to.c != nullptr && g_.m * to.row > kSmallResult);
    multiply({scratch.block->data(), g_.n, g_.n, step.first, step.last}, false);
    StreamCells(scratch.block->data(), rows * g_.n, to.c);
  }

  // The cells of C from row i0 on, in the columns of a step. Sums on their way to floats are kept for the
  // columns of one step after the other.
  GemmCells CellsOf(const GemmStep& step, int64_t i0) const {
    if (g_.singles == nullptr)
      return {g_.c + i0 * g_.c_row + step.j0, g_.c_row, step.columns, step.first, step.last};
    const int64_t row = std::min(g_.n, kBlockColumns);
    return {.c = sums_ == nullptr ? nullptr : sums_->data() + i0 * row,
            .row = row,
            .width = step.columns,
            .first = step.first,
            .last = step.last,
            .singles = g_.singles + i0 * g_.c_row + step.j0,
            .singles_row = g_.c_row,
            .open = g_.open};
  }

  void Allocate(size_t buffers) {
    const int64_t cells =
        CeilDivide(steps_[0].columns, kernel_.columns) * StripCells(kernel_.columns, steps_[0].depth);
    while (Packs() && buffers_.size() < buffers)
      buffers_.push_back(std::make_unique<PackedCells<Cell>>(cells));
  }

  void RunAlone() {
    Allocate(1);
    Scratch scratch(*this);
    for (size_t t = 0; t < steps_.size(); ++t) {
      for (int64_t unit = 0; unit < PackingUnits(t); ++unit) Pack(t, unit);
      for (int64_t block = 0; block < blocks_; ++block) Multiply(t, block, 0, 1, true, scratch);
    }
  }

  // Units of work in the order in which they are taken: the first step's packing, then the products of each
  // step. The first ones of a step pack a part of the next step, too: no step waits for the end of the step
  // before.
  void RunTogether() {
    Allocate(std::min<size_t>(2, steps_.size()));
    Progress progress(steps_.size(), blocks_);
    ParallelFor(ParallelThreads(), 1, [&](int64_t, int64_t) { TakeUnits(progress); });
  }

  void TakeUnits(Progress& progress) {
    Scratch scratch(*this);
    size_t t = 0;
    int64_t first = PackingUnits(0);  // Unit of step t's first product.
    int64_t groups_before = 0;        // Groups of each block in the steps before t.
    for (;;) {
      int64_t unit = progress.taken.fetch_add(1, std::memory_order_relaxed);
      if (unit < PackingUnits(0)) {
        PackWhenFree(0, unit, progress);
        continue;
      }
      while (t < steps_.size() && unit >= first + blocks_ * Groups(t)) {
        first += blocks_ * Groups(t);
        groups_before += Groups(t++);
      }
      if (t == steps_.size()) return;
      unit -= first;
      const bool packs = t + 1 < steps_.size() && unit < PackingUnits(t + 1);
      // Before or after the product, in turns: threads that began together do not pack together.
      if (packs && unit % 2 != 0) PackWhenFree(t + 1, unit, progress);
      const int64_t block = unit / Groups(t);
      std::atomic<int64_t>& of_block = progress.of_block[static_cast<size_t>(block)];
      WaitFor(progress.packed[t], PackingUnits(t));
      WaitFor(of_block, groups_before);
      Multiply(t, block, unit % Groups(t), Groups(t), false, scratch);
      of_block.fetch_add(1, std::memory_order_release);
      progress.multiplied[t].fetch_add(1, std::memory_order_release);
      if (packs && unit % 2 == 0) PackWhenFree(t + 1, unit, progress);
    }
  }

  // The step before the last one read what this one writes to.
  void PackWhenFree(size_t t, int64_t unit, Progress& progress) {
    if (t >= 2) WaitFor(progress.multiplied[t - 2], blocks_ * Groups(t - 2));
    Pack(t, unit);
    progress.packed[t].fetch_add(1, std::memory_order_release);
  }

  static void WaitFor(const std::atomic<int64_t>& count, int64_t least) {
    for (int tries = 0; count.load(std::memory_order_acquire) < least; ++tries) {
      if (tries < kTriesBeforeYield)
        _mm_pause();
      else
        std::this_thread::yield();
    }
  }

  const GemmOf<Cell>& g_;
  const GemmKernel<Cell>& kernel_ = SelectedGemm<Cell>();
  const int64_t blocks_;
  int64_t groups_ = 1, last_groups_ = 1;
  bool streams_ = false;  // Results go past the caches.
  std::vector<GemmStep> steps_;
  std::vector<std::unique_ptr<PackedCells<Cell>>> buffers_;  // Steps take turns.
  std::unique_ptr<PackedCells<double>> sums_;                // Of all rows, on their way to floats.
};

template <typename Cell>
void RunProduct(const GemmOf<Cell>& g) {
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) {
    if (g.accumulate) return;
    for (int64_t i = 0; i < g.m; ++i) {
      if (g.singles != nullptr)
        std::fill_n(g.singles + i * g.c_row, g.n, 0.0F);
      else
        std::fill_n(g.c + i * g.c_row, g.n, 0.0);
    }
    return;
  }
  if (IsSkinny(g)) return RunSkinny(g);
  Product<Cell>(g).Run();
  if (g.singles != nullptr)
    TurnLastRows(g, SelectedGemm<Cell>(), g.singles);
  else
    TurnLastRows(g, SelectedGemm<Cell>(), g.c);
}

}  // namespace

void Run(const Gemm& g) { RunProduct(g); }
void Run(const SingleGemm& g) {
  HEDDLE_CHECK(g.singles == nullptr || g.open || !g.accumulate, "sums that are rounded are whole products");
  HEDDLE_CHECK(!g.open || (g.singles != nullptr && g.k <= kSingleBlock), "chains are of one block");
  const int64_t columns = std::min(g.n, kBlockColumns);
  if (g.singles == nullptr || g.open || g.k <= kSingleDepth || g.m * columns <= kSumCells)
    return RunProduct(g);
  SingleGemm band = g;
  const int64_t height = std::max(kBlockRows, kSumCells / columns / kBlockRows * kBlockRows);
  for (int64_t i = 0; i < g.m; i += height) {
    band.m = std::min(height, g.m - i);
    band.a = g.a + i * g.a_row;
    band.singles = g.singles + i * g.c_row;
    RunProduct(band);
  }
}

}  // namespace heddle::ops
