// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/text/cell_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/values/sizes.h"
#include "ops/io/formats/text/cell_placer.h"

namespace heddle::ops {
namespace {

// A double counts exactly up to 2^53.
constexpr int kBitsOfPlace = 53;
constexpr uint64_t kPlaces = uint64_t{1} << kBitsOfPlace;
constexpr int64_t kMostRanks = int64_t{1} << (64 - kBitsOfPlace);

// The cells of JoinCells() for PlaceCells().
class SentCells {
 public:
  SentCells(const ReadOptions& options, const Shape& shape, std::span<const Value* const> parts)
      : options_(options), shape_(shape), parts_(parts) {}

  template <typename Take>
  Status ForCells(ChunkOrder order, const Take& take) const {
    constexpr int64_t kCellsAtOnce = 1 << 14;
    std::atomic<bool> fits = true;
    const auto places = static_cast<double>(shape_.Cells());
    for (const Value* const part : parts_) {
      const double* const cells = part->matrix().data();
      const auto visit = [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          if (k % kCellsAtOnce == 0 && IsCancelled(options_.cancelled)) return;
          if (!(cells[2 * k] >= 0 && cells[2 * k] < places)) {
            fits = false;
            return;
          }
          const auto place = static_cast<uint64_t>(cells[2 * k]);
          const auto columns = static_cast<uint64_t>(shape_.columns);
          const auto row = static_cast<int64_t>(place / columns);
          if (!take(row, static_cast<int64_t>(place % columns), cells[2 * k + 1])) fits = false;
        }
      };
      if (order == ChunkOrder::kAny)
        ParallelFor(part->matrix().rows(), kCellsAtOnce, visit);
      else
        visit(0, part->matrix().rows());
    }
    if (IsCancelled(options_.cancelled)) return Cancelled("cancelled");
    return fits ? OkStatus() : Internal("cells of '{}' arrived malformed", options_.path);
  }

 private:
  const ReadOptions& options_;
  const Shape shape_;
  const std::span<const Value* const> parts_;
};

}  // namespace

bool CanExchangeCells(const Shape& shape, int64_t ranks) {
  return ranks < kMostRanks && SaturatingProduct(shape.rows, shape.columns) < static_cast<int64_t>(kPlaces);
}

CellSorter::CellSorter(const ReadOptions& options, std::span<const int64_t> cuts, int64_t columns,
                       size_t chunks)
    : options_(options), cuts_(cuts), columns_(columns), chunks_(chunks) {}

bool CellSorter::Add(size_t number, int64_t row, int64_t column, double value) {
  if (chunks_[number] == nullptr) {
    chunks_[number] = std::make_unique<Chunk>();
    chunks_[number]->counts.resize(cuts_.size() - 1);
  }
  Chunk& chunk = *chunks_[number];
  if (row >= cuts_.back() || column >= columns_) chunk.status = ItChanged(options_);
  if (!chunk.status.ok()) return false;
  if (row < cuts_[chunk.rank] || row >= cuts_[chunk.rank + 1])
    chunk.rank = static_cast<size_t>(std::upper_bound(cuts_.begin(), cuts_.end(), row) - cuts_.begin()) - 1;
  ++chunk.counts[chunk.rank];
  chunk.last[chunk.lasts++] = {static_cast<uint64_t>(chunk.rank) << kBitsOfPlace |
                                   static_cast<uint64_t>((row - cuts_[chunk.rank]) * columns_ + column),
                               value};
  if (chunk.lasts == chunk.last.size()) Flush(&chunk);
  return chunk.status.ok();
}

void CellSorter::Flush(Chunk* chunk) const {
  chunk->status = chunk->cells.Append(
      {reinterpret_cast<const char*>(chunk->last.data()), chunk->lasts * sizeof(Cell)}, options_.path);
  chunk->lasts = 0;
}

Result<std::vector<Matrix>> CellSorter::Take() && {
  std::vector<int64_t> cells(cuts_.size() - 1, 0);  // By rank: those of the chunks before.
  for (const std::unique_ptr<Chunk>& chunk : chunks_) {
    if (chunk == nullptr) continue;
    HEDDLE_RETURN_IF_ERROR(chunk->status);
    for (size_t rank = 0; rank < cells.size(); ++rank)
      chunk->counts[rank] = std::exchange(cells[rank], cells[rank] + chunk->counts[rank]);
  }
  std::vector<Matrix> sorted;
  std::vector<double*> out;
  for (const int64_t count : cells) {
    HEDDLE_ASSIGN_OR_RETURN(sorted.emplace_back(), Matrix::Dense(count, 2));
    out.push_back(sorted.back().mutable_data());
  }
  ParallelFor(std::ssize(chunks_), 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const std::unique_ptr<Chunk> chunk = std::move(chunks_[static_cast<size_t>(c)]);
      if (chunk == nullptr) continue;
      const auto place = [&](const char* bytes, size_t count) {
        for (size_t k = 0; k < count; ++k) {
          Cell cell;
          std::memcpy(&cell, bytes + k * sizeof(Cell), sizeof(Cell));
          const size_t rank = cell.place >> kBitsOfPlace;
          double* const to = out[rank] + 2 * chunk->counts[rank]++;
          to[0] = static_cast<double>(cell.place & (kPlaces - 1));
          to[1] = cell.value;
        }
      };
      place(chunk->cells.view().data(), chunk->cells.view().size() / sizeof(Cell));
      place(reinterpret_cast<const char*>(chunk->last.data()), chunk->lasts);
    }
  });
  return sorted;
}

Result<Matrix> JoinCells(const ReadOptions& options, const Shape& shape, Format format,
                         std::span<const Value* const> parts) {
  for (const Value* const part : parts)
    if (!part->IsMatrix() || part->matrix().IsSparse() || part->matrix().columns() != 2)
      return Internal("cells of '{}' arrived malformed", options.path);
  return PlaceCells(SentCells(options, shape, parts), shape, format, options);
}

}  // namespace heddle::ops
