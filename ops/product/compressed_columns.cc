// SPDX-License-Identifier: Apache-2.0
// X %*% M with a compressed X and 3 to 8 columns of M, column by column of X: those of some rows are looked
// up once, into a buffer that stays in the first-level cache, and the lanes of the rows run along it.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/cpu.h"
#include "ops/base/parallel.h"
#include "ops/cells/code_units.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/compressed_products.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/aggregate.h"
#include "ops/simd/codes/column_buffers.h"

namespace heddle::ops {
namespace {

constexpr int64_t kTaskCells = 1 << 18;
// Cells of a buffer in the first-level cache, and its rows.
constexpr int64_t kBufferCells = 1 << 12, kLeastRows = 64, kMostRows = 256;

class BufferedColumns {
 public:
  // Where one thread reads on, and the cells that it has looked up.
  struct Room {
    explicit Room(const BufferedColumns& lanes)
        : cells(static_cast<int64_t>(lanes.columns_.size()) * lanes.height_), places(lanes.moving_.size()) {}
    AlignedArray cells;
    std::vector<GroupPlace> places;  // Of the rows of the buffer.
    std::vector<GroupPlace> next;    // Of those behind it.
    int64_t begin = -1, end = -1;    // Rows of the groups that are in the buffer.
  };

  BufferedColumns(const Matrix& x, const Matrix& m) : x_(x), k_(m.columns()) {
    std::vector<Column> columns(static_cast<size_t>(x.columns()));
    for (const ColumnGroup& group : x_.groups().groups) AddGroup(group, &columns);
    const bool is_finite = simd::AllFinite(m.data(), m.cells());
    for (size_t lane = 0; lane < 8; ++lane) {
      for (size_t j = lane; j < columns.size(); j += 8) {
        // Zeros change no sum.
        if (columns[j].group->encoding == Encoding::kEmpty && is_finite) continue;
        columns_.push_back(std::move(columns[j]));
        const double* const factors = m.data() + static_cast<int64_t>(j) * k_;
        factors_.insert(factors_.end(), factors, factors + k_);
      }
      ends_[lane] = static_cast<int64_t>(columns_.size());
    }
    height_ = FloorPowerOfTwo(std::clamp(
        kBufferCells / std::max<int64_t>(static_cast<int64_t>(columns_.size()), 1), kLeastRows, kMostRows));
  }

  // Of a buffer.
  int64_t height() const { return height_; }

  // Rows [begin, end), at most height(), to out, row-major.
  void Multiply(int64_t begin, int64_t end, Room* room, double* out) const {
    const int64_t first = x_.first_row() + begin, last = x_.first_row() + end;
    const bool goes_on = room->end == first;
    if (!goes_on) {
      room->next.clear();
      for (const ColumnGroup* group : moving_) room->next.push_back(PlaceOfRow(*group, first));
    }
    std::vector<GroupPlace> before = room->next;
    before.swap(room->places);  // Of the rows that are still in the buffer.
    for (size_t s = 0; s < columns_.size(); ++s)
      Decode(columns_[s], first, last, goes_on, before, room,
             room->cells.data() + static_cast<int64_t>(s) * height_);
    room->begin = first;
    room->end = last;
    simd::LaneColumns lanes{
        .cells = room->cells.data(), .stride = height_, .factors = factors_.data(), .ends = {}};
    std::copy(ends_.begin(), ends_.end(), lanes.ends);
    simd::MultiplyLanesAvx512(lanes, end - begin, k_, out);
  }

 private:
  struct Column {
    const ColumnGroup* group = nullptr;
    int64_t place = 0;              // In its tuples.
    size_t moving = 0;              // SDC and RLE: its place in a room.
    const double* cells = nullptr;  // By code.
    std::vector<double> own;
  };

  void AddGroup(const ColumnGroup& group, std::vector<Column>* columns) {
    const size_t moving = moving_.size();
    if (group.encoding == Encoding::kDefault || group.encoding == Encoding::kRuns) moving_.push_back(&group);
    for (int64_t k = 0; k < group.width(); ++k) {
      Column& column = (*columns)[static_cast<size_t>(group.columns[static_cast<size_t>(k)])];
      column = {&group, k, moving, nullptr, {}};
      if (group.encoding == Encoding::kUncompressed) continue;
      const double* const tuples = group.dictionary.data();
      if (group.width() == 1 && group.tuples() > simd::kRegisterCells) {
        column.cells = tuples;
        continue;
      }
      column.own.assign(static_cast<size_t>(std::max(group.tuples(), simd::kRegisterCells)), 0.0);
      for (int64_t t = 0; t < group.tuples(); ++t)
        column.own[static_cast<size_t>(t)] = tuples[t * group.width() + k];
      column.cells = column.own.data();
    }
  }

  // Rows [begin, end) of the groups to `out`, which has those of the room where they go on from these.
  void Decode(const Column& column, int64_t begin, int64_t end, bool goes_on,
              const std::vector<GroupPlace>& before, Room* room, double* out) const {
    const ColumnGroup& group = *column.group;
    const int64_t count = end - begin;
    switch (group.encoding) {
      case Encoding::kEmpty:
      case Encoding::kConstant:
        if (!goes_on) std::fill_n(out, height_, column.cells[0]);
        return;
      case Encoding::kDenseCodes: return DecodeCodes(group, column.cells, begin, end, out);
      case Encoding::kUncompressed: {
        const Matrix& matrix = group.dictionary;
        const double* cell = matrix.data() + begin * matrix.columns() + column.place;
        for (int64_t i = 0; i < count; ++i, cell += matrix.columns()) out[i] = *cell;
        return;
      }
      case Encoding::kRuns: {
        GroupPlace& place = room->next[column.moving] = room->places[column.moving];
        return VisitRuns(group, begin, end, &place, [&](int64_t first, int64_t last, uint32_t code) {
          std::fill_n(out + (first - begin), last - first, column.cells[code]);
        });
      }
      case Encoding::kDefault: {
        // The column has its default where no exception of the rows before was.
        if (goes_on) {
          GroupPlace place = before[column.moving];
          VisitExceptions(group, room->begin, room->end, &place,
                          [&](int64_t row, uint32_t) { out[row - room->begin] = column.cells[0]; });
        } else {
          std::fill_n(out, height_, column.cells[0]);
        }
        GroupPlace& place = room->next[column.moving] = room->places[column.moving];
        return VisitExceptions(group, begin, end, &place,
                               [&](int64_t row, uint32_t code) { out[row - begin] = column.cells[code]; });
      }
    }
  }

  static void DecodeCodes(const ColumnGroup& group, const double* cells, int64_t begin, int64_t end,
                          double* out) {
    const Codes& codes = group.codes;
    const int64_t count = end - begin;
    FetchCodes(codes.data() + CodeBytes(end, codes.bits()), CodeBytes(count, codes.bits()));
    switch (codes.bits()) {
      case 4: return simd::LookUpFourBitsAvx512(codes.data(), begin, count, cells, out);
      case 8: return simd::LookUpCodesAvx512(codes.data() + begin, count, cells, group.tuples(), out);
      default:
        return simd::LookUpCodesAvx512(reinterpret_cast<const uint16_t*>(codes.data()) + begin, count, cells,
                                       out);
    }
  }

  const Matrix& x_;
  const int64_t k_;
  int64_t height_ = kLeastRows;
  std::vector<Column> columns_;    // Those of a lane one behind the other.
  std::vector<double> factors_;    // Of M, in the order of the columns.
  std::array<int64_t, 8> ends_{};  // Of the columns of the lanes.
  std::vector<const ColumnGroup*> moving_;
};

}  // namespace

void MultiplyByBuffers(const Matrix& x, const Matrix& m, const KernelContext& context, double* out) {
  const BufferedColumns columns(x, m);
  const int64_t k = m.columns(), height = columns.height();
  const int64_t grain = std::max<int64_t>(1, kTaskCells / x.columns() / height) * height;
  ParallelFor(x.rows(), grain, [&](int64_t begin, int64_t end) {
    BufferedColumns::Room room(columns);
    for (int64_t row = begin; row < end && !IsCancelled(context.cancelled); row += height)
      columns.Multiply(row, std::min(end, row + height), &room, out + row * k);
  });
}

}  // namespace heddle::ops
