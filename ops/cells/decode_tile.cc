// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/decode_tile.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "core/values/panels.h"
#include "ops/base/cpu.h"
#include "ops/simd/codes/eight_columns.h"
#include "ops/simd/rows.h"

namespace heddle::ops {
namespace {

// Cells of a tile: three quarters of the first-level cache.
int64_t TileCells() {
  static const int64_t bytes = std::max<int64_t>(sysconf(_SC_LEVEL1_DCACHE_SIZE), 32 << 10);
  return bytes * 3 / 4 / static_cast<int64_t>(sizeof(double));
}
// Of wide rows so many are decoded in the second-level cache: to find the exceptions of a group takes as long
// as a dozen cells.
constexpr int64_t kLeastTileRows = 16, kLeastWideTileRows = 64, kWideRow = 256;
// Cells of the tuples of all joined groups.
constexpr int64_t kJoinedCells = 3072;

// Copies `width` cells, at most eight, from `from(i)` to each of `rows` rows: of a number that is known to
// the compiler, a move or two.
template <typename T, typename From>
[[gnu::always_inline]] inline void CopyToRows(int64_t width, int64_t rows, T* cells, int64_t stride,
                                              const From& from) {
  simd::WithConstant<1, 8>(
      width, [&](auto constant) __attribute__((always_inline)) {
        T* __restrict to = cells;
        for (int64_t i = 0; i < rows; ++i, to += stride)
          std::memcpy(to, from(i), decltype(constant)::value * sizeof(T));
      });
}

template <typename T, typename Code>
void CopyTuples(const T* tuples, int64_t tuple, int64_t width, const Code* codes, int64_t rows, T* cells,
                int64_t stride) {
  if (tuple == 1)
    return CopyToRows(
        1, rows, cells, stride, [&](int64_t i) __attribute__((always_inline)) { return tuples + codes[i]; });
  CopyToRows(
      width, rows, cells,
      stride, [&](int64_t i) __attribute__((always_inline)) { return tuples + codes[i] * tuple; });
}

}  // namespace

template <typename T>
std::vector<typename TileDecoder<T>::Piece> TileDecoder<T>::PiecesOf(
    const std::vector<int32_t>& columns) const {
  std::vector<Piece> pieces;
  for (size_t k = 0; k < columns.size(); ++k) {
    if (is_in_eight_[static_cast<size_t>(columns[k])]) continue;
    const auto offset = static_cast<int64_t>(k);
    const bool goes_on = !pieces.empty() && pieces.back().column + pieces.back().width == columns[k] &&
                         pieces.back().offset + pieces.back().width == offset;
    if (goes_on && pieces.back().width < kMostTogether)
      ++pieces.back().width;
    else
      pieces.push_back({columns[k], offset, 1});
  }
  return pieces;
}

template <typename T>
int64_t TileDecoder<T>::RowsOfTile(int64_t columns) {
  const int64_t least = columns > kWideRow ? kLeastWideTileRows : kLeastTileRows;
  return FloorPowerOfTwo(
      std::clamp<int64_t>(TileCells() / std::max<int64_t>(columns, 1), least, kCodesAtOnce));
}

template <typename T>
TileDecoder<T>::TileDecoder(const Matrix& matrix)
    : matrix_(matrix),
      is_in_eight_(static_cast<size_t>(matrix.columns()), false),
      defaults_(static_cast<size_t>(matrix.columns()), T(0)) {
  std::vector<const ColumnGroup*> dense;
  for (const ColumnGroup& group : matrix_.groups().groups) {
    const auto tuples = [&]() -> Tuples {
      return {PiecesOf(group.columns), {}, group.dictionary.template data<T>(), group.width()};
    };
    switch (group.encoding) {
      case Encoding::kEmpty:
      case Encoding::kConstant: AddDefaults(group); break;
      case Encoding::kDenseCodes: dense.push_back(&group); break;
      case Encoding::kDefault:
        AddDefaults(group);
        moving_.push_back({&group, tuples()});
        break;
      case Encoding::kRuns: moving_.push_back({&group, tuples()}); break;
      case Encoding::kUncompressed: plain_.push_back({&group, tuples()}); break;
    }
  }
  if (std::is_same_v<T, double> && SelectedCpu() == Cpu::kAvx512) FindEights(dense);
  AddUnits(std::move(dense));
  FindFours();
  std::sort(default_.begin(), default_.end(),
            [](const Piece& a, const Piece& b) { return a.column < b.column; });
  std::vector<Piece> joined;
  for (const Piece& piece : default_)
    if (!joined.empty() && joined.back().column + joined.back().width == piece.column)
      joined.back().width += piece.width;
    else
      joined.push_back(piece);
  default_ = std::move(joined);
}

template <typename T>
void TileDecoder<T>::AddDefaults(const ColumnGroup& group) {
  for (size_t k = 0; k < group.columns.size(); ++k) {
    if (group.encoding != Encoding::kEmpty)
      defaults_[static_cast<size_t>(group.columns[k])] = group.dictionary.template data<T>()[k];
    default_.push_back({group.columns[k], 0, 1});
  }
}

template <typename T>
void TileDecoder<T>::FindEights(const std::vector<const ColumnGroup*>& dense) {
  std::vector<std::pair<const ColumnGroup*, int64_t>> of_columns(defaults_.size());
  for (const ColumnGroup* group : dense)
    if (group->codes.bits() == 4)
      for (size_t k = 0; k < group->columns.size(); ++k)
        of_columns[static_cast<size_t>(group->columns[k])] = {group, static_cast<int64_t>(k)};
  const int64_t columns = matrix_.columns();
  for (int64_t first = 0, last; first < columns; first = last + 1) {
    for (last = first; last < columns && of_columns[static_cast<size_t>(last)].first != nullptr;) ++last;
    int64_t at = first;
    for (; at + 8 <= last; at += 8) AddEight(of_columns, at);
    // Some columns twice take no longer than the others one by one.
    if (at > first && at + 4 <= last) AddEight(of_columns, last - 8);
  }
}

template <typename T>
void TileDecoder<T>::AddEight(const std::vector<std::pair<const ColumnGroup*, int64_t>>& columns,
                              int64_t first) {
  Eight eight;
  eight.column = first;
  eight.cells.resize(8 * 16);
  for (int64_t c = 0; c < 8; ++c) {
    const auto [group, k] = columns[static_cast<size_t>(first + c)];
    is_in_eight_[static_cast<size_t>(first + c)] = true;
    eight.codes[static_cast<size_t>(c)] = &group->codes;
    for (int64_t t = 0; t < std::min<int64_t>(group->tuples(), 16); ++t)
      eight.cells[static_cast<size_t>(c * 16 + t)] =
          group->dictionary.template data<T>()[t * group->width() + k];
  }
  eights_.push_back(std::move(eight));
}

template <typename T>
void TileDecoder<T>::DecodeEight(const Eight& eight, int64_t begin, int64_t end, T* cells) const {
  const int64_t stride = columns();
  T* const to = cells + eight.column;
  int64_t row = begin;
  if constexpr (std::is_same_v<T, double>) {
    // Two codes are in a byte: of rows from an odd one on they are looked up one by one.
    if (begin % 2 == 0) {
      simd::EightColumns columns;
      for (size_t c = 0; c < 8; ++c) {
        columns.codes[c] = eight.codes[c]->data();
        columns.cells[c] = eight.cells.data() + c * 16;
        FetchCodes(columns.codes[c] + end / 2, (end - begin) / 2);
      }
      row += (end - begin) / 8 * 8;
      simd::LookUpEightColumnsAvx512(columns, begin, row - begin, to, stride);
    }
  }
  for (; row < end; ++row)
    for (size_t c = 0; c < 8; ++c)
      to[(row - begin) * stride + static_cast<int64_t>(c)] = eight.cells[c * 16 + eight.codes[c]->At(row)];
}

// Groups whose columns are adjacent are joined while their tuples are few.
template <typename T>
void TileDecoder<T>::AddUnits(std::vector<const ColumnGroup*> dense) {
  std::sort(dense.begin(), dense.end(), [](const ColumnGroup* a, const ColumnGroup* b) {
    return a->columns.front() < b->columns.front();
  });
  CodeUnit open;
  for (const ColumnGroup* group : dense) {
    const std::vector<Piece> pieces = PiecesOf(group->columns);
    if (pieces.empty()) continue;
    const bool is_whole = pieces[0].width == group->width();
    const bool is_adjacent =
        is_whole && (open.groups.empty() || open.groups.back()->columns.back() + 1 == group->columns.front());
    const bool joins =
        matrix_.rows() >= kLeastJoinedRows && is_adjacent && open.width + group->width() <= kMostTogether &&
        open.CanJoin(*group, std::clamp<int64_t>(kJoinedCells / columns(), 1, CodeUnit::kMostJoined));
    if (!joins && !open.groups.empty()) {
      AddUnit(open);
      open = {};
    }
    open.Join(*group);
    // What is not adjacent in itself stays alone.
    if (!joins && !is_whole) {
      AddUnit(open);
      open = {};
    }
  }
  if (!open.groups.empty()) AddUnit(open);
}

// Four columns that are written together take less time than one after the other.
template <typename T>
void TileDecoder<T>::FindFours() {
  std::vector<Unit> others;
  for (size_t at = 0; at < units_.size();) {
    const auto is_next = [&](size_t k) {
      const Unit& unit = units_[at + k];
      return unit.codes.width == 1 && !unit.codes.HasWideCodes() &&
             unit.tuples.pieces[0].column == units_[at].tuples.pieces[0].column + static_cast<int64_t>(k);
    };
    const bool are_four = at + 4 <= units_.size() && is_next(0) && is_next(1) && is_next(2) && is_next(3);
    std::vector<Unit>& to = are_four ? single_ : others;
    for (size_t last = at + (are_four ? 4 : 1); at < last; ++at) to.push_back(std::move(units_[at]));
  }
  units_ = std::move(others);
}

template <typename T>
void TileDecoder<T>::AddUnit(const CodeUnit& codes) {
  Unit unit{codes, {}};
  std::vector<int32_t> columns;
  for (const ColumnGroup* group : codes.groups)
    columns.insert(columns.end(), group->columns.begin(), group->columns.end());
  unit.tuples.pieces = PiecesOf(columns);
  unit.tuples.width = codes.width;
  unit.tuples.cells = codes.groups[0]->dictionary.template data<T>();
  if (codes.groups.size() > 1) {
    for (int64_t code = 0; code < codes.tuples; ++code)
      codes.ForCodes(code, [&](size_t k, int64_t own) {
        const ColumnGroup& group = *codes.groups[k];
        const T* const tuple = group.dictionary.template data<T>() + own * group.width();
        unit.tuples.joined.insert(unit.tuples.joined.end(), tuple, tuple + group.width());
      });
    unit.tuples.cells = unit.tuples.joined.data();
  }
  units_.push_back(std::move(unit));
}

template <typename T>
void TileDecoder<T>::Decode(Cursor* cursor, int64_t begin, int64_t end, T* cells) const {
  const int64_t first = matrix_.first_row() + begin, last = matrix_.first_row() + end;
  if (first == last) return;
  if (cursor->row_ != first) {
    cursor->places_.clear();
    for (const Group& group : moving_) cursor->places_.push_back(PlaceOfRow(*group.group, first));
  }
  const int64_t height = RowsOfTile(columns());
  for (int64_t row = first; row < last; row += height)
    DecodeRows(cursor, row, std::min(last, row + height), cells + (row - first) * columns());
  cursor->row_ = last;
}

template <typename T>
void TileDecoder<T>::DecodeRows(Cursor* cursor, int64_t begin, int64_t end, T* cells) const {
  const int64_t stride = columns(), rows = end - begin;
  for (const Piece& piece : default_) {
    const T* const from = defaults_.data() + piece.column;
    if (piece.width <= kMostTogether) {
      CopyToRows(
          piece.width, rows, cells + piece.column,
          stride, [&](int64_t) __attribute__((always_inline)) { return from; });
      continue;
    }
    for (int64_t i = 0; i < rows; ++i)
      std::memcpy(cells + i * stride + piece.column, from, static_cast<size_t>(piece.width) * sizeof(T));
  }
  for (const Eight& eight : eights_) DecodeEight(eight, begin, end, cells);
  for (const Unit& unit : units_)
    WithCodes(unit.codes, begin, end, [&](const auto* codes) {
      for (const Piece& piece : unit.tuples.pieces)
        CopyTuples(unit.tuples.cells + piece.offset, unit.tuples.width, piece.width, codes, rows,
                   cells + piece.column, stride);
    });
  for (size_t k = 0; k < single_.size(); k += 4) DecodeFour(&single_[k], begin, end, cells);
  for (size_t g = 0; g < moving_.size(); ++g) {
    const auto& [group, tuples] = moving_[g];
    const auto copy = [&, &tuples = tuples](int64_t first, int64_t last, uint32_t code) {
      const T* const tuple = tuples.cells + code * tuples.width;
      for (const Piece& piece : tuples.pieces)
        CopyToRows(
            piece.width, last - first, cells + (first - begin) * stride + piece.column,
            stride, [&](int64_t) __attribute__((always_inline)) { return tuple + piece.offset; });
    };
    if (group->encoding == Encoding::kRuns)
      VisitRuns(*group, begin, end, &cursor->places_[g], copy);
    else
      VisitExceptions(*group, begin, end, &cursor->places_[g],
                      [&](int64_t row, uint32_t code) { copy(row, row + 1, code); });
  }
  for (const Group& plain : plain_) CopyPlain(plain, begin, end, cells);
}

template <typename T>
void TileDecoder<T>::DecodeFour(const Unit* units, int64_t begin, int64_t end, T* cells) const {
  std::array<CodeRoom, 4> rooms;
  std::array<const uint8_t*, 4> codes;
  for (size_t k = 0; k < 4; ++k) codes[k] = ByteCodes(units[k].codes, begin, end, &rooms[k]);
  const T *const a = units[0].tuples.cells, *const b = units[1].tuples.cells,
                 *const c = units[2].tuples.cells, *const d = units[3].tuples.cells;
  const int64_t stride = columns();
  T* __restrict to = cells + units[0].tuples.pieces[0].column;
  for (int64_t i = 0; i < end - begin; ++i, to += stride) {
    to[0] = a[codes[0][i]];
    to[1] = b[codes[1][i]];
    to[2] = c[codes[2][i]];
    to[3] = d[codes[3][i]];
  }
}

// Rows of an uncompressed group.
template <typename T>
void TileDecoder<T>::CopyPlain(const Group& plain, int64_t begin, int64_t end, T* cells) const {
  const ColumnGroup& group = *plain.group;
  const Matrix& matrix = group.dictionary;
  const int64_t stride = columns(), rows = end - begin;
  if (!matrix.IsSparse()) {
    const T* const from = matrix.data<T>() + begin * group.width();
    for (const Piece& piece : plain.tuples.pieces)
      CopyToRows(
          piece.width, rows, cells + piece.column, stride, [&](int64_t i) __attribute__((always_inline)) {
            return from + i * group.width() + piece.offset;
          });
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    T* const row = cells + i * stride;
    for (const int32_t column : group.columns) row[column] = 0;
    for (int64_t at = matrix.row_offsets()[begin + i]; at < matrix.row_offsets()[begin + i + 1]; ++at)
      row[group.columns[static_cast<size_t>(matrix.column_indexes()[at])]] = matrix.values<T>()[at];
  }
}

template class TileDecoder<double>;
template class TileDecoder<float>;

}  // namespace heddle::ops
