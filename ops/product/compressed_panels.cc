// SPDX-License-Identifier: Apache-2.0
// t(X) %*% W with a compressed X, eight panels of rows side by side: what a column has in each of them is
// looked up in the lanes of a register, and goes on with the chains of the panels. No cell of X is written
// anywhere.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ops/base/cpu.h"
#include "ops/base/parallel.h"
#include "ops/cells/code_units.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/compressed_products.h"
#include "ops/reduction/reduction_tasks.h"
#include "ops/simd/aggregate.h"
#include "ops/simd/codes/code_streams.h"

namespace heddle::ops {
namespace {

using simd::kStreams;
using simd::StreamedColumn;

// Rows of a panel whose weights and codes stay in the first-level cache, by the columns of W.
constexpr int64_t kChunkRows = 256, kLeastChunkRows = 64;
// To visit an exception takes as long as so many cells that are looked up.
constexpr int64_t kCellsOfException = 12;
// Columns of all products whose sums, in all panels, stay in the second-level cache.
constexpr int64_t kMostSums = 1 << 13;
// With fewer panels most lanes would be in vain.
constexpr int64_t kLeastPanels = 4;

// Panels of a task: as many streams.
struct Panels {
  std::array<int64_t, kStreams> first;  // Rows of the groups.
  int64_t rows = 0;                     // Of each.
  int64_t count = 0;                    // Those behind it are the first one again.
};

class PanelProduct {
 public:
  struct Room {
    explicit Room(const PanelProduct& product)
        : columns(product.columns_.size()),
          codes(static_cast<size_t>(product.expanded_bytes_) + 64),
          weights(ChunkRowsOf(product.k_) * product.k_ * kStreams),
          sums(product.x_.columns() * product.k_ * kStreams),
          places(product.moving_.size()) {}
    std::vector<StreamedColumn> columns;
    std::vector<uint8_t> codes;  // Of groups whose own cannot be read where they are.
    AlignedArray weights, sums;
    std::vector<std::array<GroupPlace, kStreams>> places;
    std::array<int64_t, kStreams> rows;      // Where streams begin: in the groups,
    std::array<int64_t, kStreams> own_rows;  // and in `codes`.
  };

  PanelProduct(const Matrix& x, const Matrix& w)
      : x_(x), w_(w), k_(w.columns()), is_finite_(simd::AllFinite(w.data(), w.cells())) {
    for (const ColumnGroup& group : x.groups().groups) AddGroup(group);
    // Columns that are looked up alike are added together.
    std::stable_sort(columns_.begin(), columns_.end(), [](const Column& a, const Column& b) {
      return std::pair(a.streamed.lookup, a.BitsInPlace()) < std::pair(b.streamed.lookup, b.BitsInPlace());
    });
    places_.assign(static_cast<size_t>(x.columns()), -1);
    int64_t place = 0;
    for (const Column& column : columns_) places_[static_cast<size_t>(column.column)] = place++;
    for (const Moving& moving : moving_)
      if (moving.is_skipped)
        for (const int32_t column : moving.group->columns) places_[static_cast<size_t>(column)] = place++;
  }

  static int64_t ChunkRowsOf(int64_t k) { return std::max(kLeastChunkRows, kChunkRows / k); }

  // sums[(j * k + c) * 8 + s]: column j of X with column c of W in panel s.
  void Add(const Panels& panels, Room* room) const {
    std::fill_n(room->sums.data(), x_.columns() * k_ * kStreams, 0.0);
    for (size_t g = 0; g < moving_.size(); ++g)
      for (int64_t s = 0; s < panels.count; ++s)
        room->places[g][static_cast<size_t>(s)] =
            PlaceOfRow(*moving_[g].group, panels.first[static_cast<size_t>(s)]);
    const int64_t height = ChunkRowsOf(k_);
    for (int64_t row = 0; row < panels.rows; row += height)
      AddChunk(panels, row, std::min(panels.rows, row + height), room);
  }

 private:
  struct Column {
    StreamedColumn streamed;
    int64_t column = 0;  // Of X.
    int moving = -1;     // Whose codes these are; -1: none.
    const ColumnGroup* group = nullptr;
    int BitsInPlace() const { return moving < 0 ? 0 : group->codes.bits(); }
  };
  struct Moving {
    const ColumnGroup* group;
    bool is_skipped;  // Its zeros are.
    int64_t at;       // Of its expanded codes.
    int64_t code_bytes;
  };

  // Whether a chunk reads the codes of a group where they are: whole words of them, from whole bytes on.
  static bool ReadsInPlace(const ColumnGroup& group, const Panels& panels, int64_t begin, int64_t end) {
    if (group.encoding != Encoding::kDenseCodes || (end - begin) * group.codes.bits() % 64 != 0) return false;
    if (group.codes.bits() != 4) return true;
    return begin % 2 == 0 &&
           std::all_of(panels.first.begin(), panels.first.end(), [](int64_t row) { return row % 2 == 0; });
  }

  void AddGroup(const ColumnGroup& group) {
    if (group.encoding == Encoding::kEmpty && is_finite_) return;
    int moving = -1;
    if (group.encoding == Encoding::kDefault || group.encoding == Encoding::kRuns ||
        group.encoding == Encoding::kDenseCodes) {
      const bool is_skipped = group.encoding == Encoding::kDefault && is_finite_ &&
                              kCellsOfException * group.codes.count() < x_.groups().rows &&
                              group.dictionary.Rows(0, 1).CountNonzeros() == 0;
      moving = static_cast<int>(moving_.size());
      moving_.push_back({&group, is_skipped, expanded_bytes_, group.tuples() <= 256 ? 1 : 2});
      if (is_skipped) return;
      expanded_bytes_ += kStreams * ChunkRowsOf(k_) * moving_.back().code_bytes;
    }
    for (int64_t k = 0; k < group.width(); ++k) {
      columns_.push_back({ColumnOf(group, k), group.columns[static_cast<size_t>(k)], moving, &group});
    }
  }

  StreamedColumn ColumnOf(const ColumnGroup& group, int64_t k) {
    using Lookup = StreamedColumn::Lookup;
    StreamedColumn column;
    const double* const cells = group.dictionary.data() + k;
    if (group.encoding == Encoding::kEmpty) return Table({}, 1);
    if (group.encoding == Encoding::kConstant) return Table({cells, 1}, 1);
    column.step = group.width();
    column.cells = cells;
    if (group.encoding == Encoding::kUncompressed) {
      column.lookup = Lookup::kCells;
      return column;
    }
    if (group.tuples() > 32) {
      column.lookup = Lookup::kGather;
      return column;
    }
    std::vector<double> own;
    for (int64_t t = 0; t < group.tuples(); ++t) own.push_back(cells[t * group.width()]);
    column = Table(own, 32);
    column.lookup = group.tuples() <= 16 ? Lookup::kSixteen : Lookup::kThirtyTwo;
    return column;
  }

  // A copy of the cells, with zeros behind them.
  StreamedColumn Table(std::span<const double> cells, int64_t count) {
    AlignedArray table(count);
    std::fill_n(table.data(), count, 0.0);
    std::copy(cells.begin(), cells.end(), table.data());
    tables_.push_back(std::move(table));
    StreamedColumn column;
    column.cells = tables_.back().data();
    return column;
  }

  // Rows [begin, end) of the panels.
  void AddChunk(const Panels& panels, int64_t begin, int64_t end, Room* room) const {
    const int64_t rows = end - begin, height = ChunkRowsOf(k_);
    for (size_t s = 0; s < static_cast<size_t>(kStreams); ++s) {
      room->rows[s] = panels.first[s] + begin;
      room->own_rows[s] = static_cast<int64_t>(s) * height;
    }
    CopyWeights(panels, begin, rows, room->weights.data());
    for (size_t g = 0; g < moving_.size(); ++g) {
      if (moving_[g].is_skipped)
        AddExceptions(g, panels, begin, end, room);
      else if (!ReadsInPlace(*moving_[g].group, panels, begin, end))
        Expand(g, panels, begin, end, room);
    }
    for (size_t j = 0; j < columns_.size(); ++j)
      room->columns[j] = Bound(columns_[j], panels, begin, end, *room);
    simd::AddStreamsAvx512(room->columns.data(), static_cast<int64_t>(columns_.size()), rows,
                           room->weights.data(), k_, room->sums.data());
  }

  // The next rows of the panels, or the first ones of the next eight. Several columns in eight panels are
  // more streams than the processor's own prefetcher follows.
  static void Fetch(const Codes& codes, const Panels& panels, int64_t begin, int64_t end) {
    constexpr int64_t kLine = 64;
    const int64_t next = end < panels.rows ? end : kStreams * panels.rows;
    const int64_t bytes = CodeBytes(end - begin, codes.bits());
    for (const int64_t first : panels.first) {
      const int64_t place = CodeBytes(first + next, codes.bits());
      if (place + bytes > codes.bytes()) return;
      for (int64_t at = place; at < place + bytes; at += kLine)
        _mm_prefetch(reinterpret_cast<const char*>(codes.data() + at), _MM_HINT_T1);
    }
  }

  // Where a chunk reads the column.
  StreamedColumn Bound(const Column& column, const Panels& panels, int64_t begin, int64_t end,
                       const Room& room) const {
    StreamedColumn bound = column.streamed;
    bound.rows = room.rows.data();
    if (column.moving < 0) return bound;
    const Moving& moving = moving_[static_cast<size_t>(column.moving)];
    if (ReadsInPlace(*column.group, panels, begin, end)) {
      bound.bits = column.group->codes.bits();
      bound.codes = column.group->codes.data();
      Fetch(column.group->codes, panels, begin, end);
    } else {
      bound.bits = static_cast<int>(8 * moving.code_bytes);
      bound.codes = room.codes.data() + moving.at;
      bound.rows = room.own_rows.data();
    }
    // Codes of 16 bits are looked up in memory, however few tuples there are.
    if (bound.bits == 16) bound.lookup = StreamedColumn::Lookup::kGather;
    return bound;
  }

  void CopyWeights(const Panels& panels, int64_t begin, int64_t rows, double* weights) const {
    for (int64_t s = 0; s < kStreams; ++s) {
      const int64_t first = panels.first[static_cast<size_t>(s)] - x_.first_row() + begin;
      const double* const from = w_.data() + first * k_;
      for (int64_t i = 0; i < rows * k_; ++i) weights[i * kStreams + s] = from[i];
    }
  }

  void AddExceptions(size_t g, const Panels& panels, int64_t begin, int64_t end, Room* room) const {
    const ColumnGroup& group = *moving_[g].group;
    const double* const tuples = group.dictionary.data();
    const int64_t width = group.width();
    for (size_t s = 0; s < static_cast<size_t>(panels.count); ++s)
      VisitExceptions(group, panels.first[s] + begin, panels.first[s] + end, &room->places[g][s],
                      [&](int64_t row, uint32_t code) {
                        const double* const weights = w_.data() + (row - x_.first_row()) * k_;
                        for (int64_t k = 0; k < width; ++k) {
                          const double cell = tuples[code * width + k];
                          double* const sums = SumsOf(group.columns[static_cast<size_t>(k)], room) + s;
                          for (int64_t c = 0; c < k_; ++c)
                            sums[c * kStreams] = __builtin_fma(cell, weights[c], sums[c * kStreams]);
                        }
                      });
  }

  void Expand(size_t g, const Panels& panels, int64_t begin, int64_t end, Room* room) const {
    const Moving& moving = moving_[g];
    for (size_t s = 0; s < static_cast<size_t>(panels.count); ++s) {
      uint8_t* const to = room->codes.data() + moving.at + room->own_rows[s] * moving.code_bytes;
      const int64_t first = panels.first[s] + begin, last = panels.first[s] + end;
      if (moving.code_bytes == 1)
        ExpandCodes(*moving.group, first, last, &room->places[g][s], to);
      else
        ExpandCodes(*moving.group, first, last, &room->places[g][s], reinterpret_cast<uint16_t*>(to));
    }
  }

  double* SumsOf(int64_t column, Room* room) const {
    return room->sums.data() + places_[static_cast<size_t>(column)] * k_ * kStreams;
  }

 public:
  // What Add() left of panel s: cells[c * step + j].
  void Close(int64_t s, int64_t step, Room* room, double* cells) const {
    for (int64_t j = 0; j < x_.columns(); ++j)
      for (int64_t c = 0; c < k_; ++c)
        cells[c * step + j] = places_[static_cast<size_t>(j)] < 0 ? 0.0 : SumsOf(j, room)[c * kStreams + s];
  }

 private:
  const Matrix& x_;
  const Matrix& w_;
  const int64_t k_;
  const bool is_finite_;  // W.
  std::vector<Column> columns_;
  std::vector<Moving> moving_;
  std::vector<AlignedArray> tables_;
  std::vector<int64_t> places_;  // Of the sums of each column of X; -1: they are zeros.
  int64_t expanded_bytes_ = 0;
};

// The panels of one thread's nodes: those that stand side by side are computed when the first one is asked
// for.
class PanelReader {
 public:
  // Rows [first, last) of all are those of the matrix.
  PanelReader(const PanelProduct& product, int64_t first_row, int64_t first, int64_t last, int64_t height,
              int64_t together)
      : product_(product),
        first_row_(first_row),
        first_(first),
        last_(last),
        height_(height),
        together_(together),
        room_(product) {}

  void Read(int64_t panel, int64_t step, double* payload) {
    if (panel < begin_ || panel >= end_) Compute(panel);
    product_.Close(panel - begin_, step, &room_, payload);
  }

 private:
  void Compute(int64_t panel) {
    const auto rows_of = [&](int64_t p) { return std::min(last_, (p + 1) * height_) - p * height_; };
    const int64_t stop = std::min((panel / together_ + 1) * together_, CeilDivide(last_, height_));
    begin_ = panel;
    end_ = panel + 1;
    // The last panel of all may be shorter than the others.
    while (end_ < stop && rows_of(end_) == rows_of(begin_)) ++end_;
    Panels panels{.rows = rows_of(begin_), .count = end_ - begin_};
    for (int64_t s = 0; s < kStreams; ++s)
      panels.first[static_cast<size_t>(s)] =
          (begin_ + (s < panels.count ? s : 0)) * height_ - first_ + first_row_;
    product_.Add(panels, &room_);
  }

  const PanelProduct& product_;
  const int64_t first_row_, first_, last_, height_, together_;
  PanelProduct::Room room_;
  int64_t begin_ = 0, end_ = 0;  // Panels whose sums are in the room.
};

}  // namespace

bool AddsByPanels(const Matrix& x, int64_t k, int64_t first, int64_t last, int64_t height) {
  if (first == last || SelectedCpu() != Cpu::kAvx512 || HoldsSingles(x) || x.columns() * k > kMostSums ||
      last - first < kLeastPanels * height)
    return false;
  return std::none_of(x.groups().groups.begin(), x.groups().groups.end(), [](const ColumnGroup& group) {
    return group.encoding == Encoding::kUncompressed && group.dictionary.IsSparse();
  });
}

Result<Matrix> AddByPanels(const Matrix& x, const Matrix& w, int64_t first, int64_t last, int64_t height,
                           int64_t step, Reduction reduction) {
  const PanelProduct product(x, w);
  // A task has as many panels as there are streams.
  reduction.leaf_cells = std::min(reduction.leaf_cells, kCellsOfTask / kStreams);
  return ReduceNodes(reduction, first / height, CeilDivide(last, height), [&](int level) -> NodeFunction {
    const int64_t together = std::min(kStreams, int64_t{1} << level);
    auto reader = std::make_shared<PanelReader>(product, x.first_row(), first, last, height, together);
    auto stack = std::make_shared<PayloadStack>(reduction.join, reduction.width, level);
    return [&, reader, stack, step](int64_t begin, int64_t end, double* payload) {
      for (int64_t panel = begin; panel < end && !IsCancelled(reduction.cancelled); ++panel) {
        double* const sums = stack->Next(panel);
        std::fill_n(sums, reduction.width, 0.0);
        reader->Read(panel, step, sums);
        stack->Push();
      }
      if (const double* const sums = stack->Finish(); sums != nullptr)
        std::copy_n(sums, reduction.width, payload);
    };
  });
}

}  // namespace heddle::ops
