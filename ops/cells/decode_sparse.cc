// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/decode_sparse.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "core/values/group_rows.h"
#include "ops/base/parallel.h"
#include "ops/cells/move_cells.h"

namespace heddle::ops {
namespace {

// Rows whose codes, and the places of whose entries, are in a buffer on the stack.
constexpr int64_t kRowsAtOnce = 512;
// Entries of a task.
constexpr double kGrainEntries = 1 << 16;

// Sorts the entries of a row by column.
template <typename T>
void SortRow(int64_t count, int32_t* columns, T* values) {
  constexpr int64_t kFewEntries = 32;
  if (count > kFewEntries) {
    std::vector<std::pair<int32_t, T>> entries;
    for (int64_t i = 0; i < count; ++i) entries.emplace_back(columns[i], values[i]);
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (int64_t i = 0; i < count; ++i) std::tie(columns[i], values[i]) = entries[static_cast<size_t>(i)];
    return;
  }
  for (int64_t i = 1; i < count; ++i) {
    const int32_t column = columns[i];
    const T value = values[i];
    int64_t at = i;
    for (; at > 0 && columns[at - 1] > column; --at) {
      columns[at] = columns[at - 1];
      values[at] = values[at - 1];
    }
    columns[at] = column;
    values[at] = value;
  }
}

// visit(k, value) for the cells of a row of an uncompressed group that are not zero.
template <typename T, typename Visit>
void ForNonzeros(const Matrix& cells, int64_t row, const Visit& visit) {
  if (cells.IsSparse()) {
    for (int64_t at = cells.row_offsets()[row]; at < cells.row_offsets()[row + 1]; ++at)
      if (cells.values<T>()[at] != 0) visit(cells.column_indexes()[at], cells.values<T>()[at]);
    return;
  }
  const T* const cell = cells.data<T>() + row * cells.columns();
  for (int64_t k = 0; k < cells.columns(); ++k)
    if (cell[k] != 0) visit(static_cast<int32_t>(k), cell[k]);
}

}  // namespace

template <typename T>
SparseDecoder<T>::SparseDecoder(const Matrix& compressed) : matrix_(compressed) {
  const ColumnGroups& groups = compressed.groups();
  const auto rows = static_cast<double>(std::max<int64_t>(groups.rows, 1));
  std::map<const void*, std::shared_ptr<const Tuples>> known;  // Groups share dictionaries.
  for (const ColumnGroup& group : groups.groups) {
    if (group.encoding == Encoding::kEmpty) continue;
    Part part{&group, nullptr};
    if (group.encoding == Encoding::kUncompressed) {
      entries_of_row_ += static_cast<double>(group.dictionary.IsSparse() ? group.dictionary.stored()
                                                                         : group.dictionary.cells()) /
                         rows;
      parts_.push_back(std::move(part));
      continue;
    }
    std::shared_ptr<const Tuples>& tuples = known[group.dictionary.data<void>()];
    if (tuples == nullptr || static_cast<int64_t>(tuples->first.size()) != group.tuples() + 1) {
      auto read = std::make_shared<Tuples>();
      read->first.push_back(0);
      for (int64_t tuple = 0; tuple < group.tuples(); ++tuple) {
        ForNonzeros<T>(group.dictionary, tuple, [&](int32_t k, T value) {
          read->columns.push_back(k);
          read->values.push_back(value);
        });
        read->first.push_back(static_cast<int64_t>(read->columns.size()));
      }
      tuples = std::move(read);
    }
    part.tuples = tuples;
    const auto all = static_cast<double>(tuples->columns.size()),
               of_default = static_cast<double>(tuples->first[1]);
    if (group.encoding == Encoding::kDefault) {
      const double share = static_cast<double>(group.codes.count()) / rows;
      entries_of_row_ += (1 - share) * of_default +
                         share * (all - of_default) / std::max(1.0, static_cast<double>(group.tuples() - 1));
    } else {
      entries_of_row_ += all / static_cast<double>(group.tuples());
    }
    parts_.push_back(std::move(part));
  }
  std::stable_sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) {
    return a.group->columns.front() < b.group->columns.front();
  });
  for (size_t i = 1; i < parts_.size(); ++i)
    are_in_order_ = are_in_order_ && parts_[i - 1].group->columns.back() < parts_[i].group->columns.front();
}

// visit(row, first, last): rows [begin, end) of the matrix, and which entries of the part's tuples they have.
template <typename T>
template <typename Visit>
void SparseDecoder<T>::ForRows(const Part& part, int64_t begin, int64_t end, Visit visit) const {
  const int64_t shift = matrix_.first_row();
  std::array<uint16_t, kRowsAtOnce> codes;
  const int64_t* const first = part.tuples->first.data();
  for (int64_t row = begin; row < end; row += kRowsAtOnce) {
    const int64_t last = std::min(end, row + kRowsAtOnce);
    DecodeCodes(*part.group, shift + row, shift + last, codes.data());
    for (int64_t i = row; i < last; ++i) {
      const uint16_t code = codes[static_cast<size_t>(i - row)];
      visit(i, first[code], first[code + 1]);
    }
  }
}

template <typename T>
void SparseDecoder<T>::Count(int64_t begin, int64_t end, int64_t* counts) const {
  std::fill_n(counts, end - begin, 0);
  for (const Part& part : parts_) {
    if (part.tuples != nullptr) {
      ForRows(part, begin, end,
              [&](int64_t row, int64_t first, int64_t last) { counts[row - begin] += last - first; });
      continue;
    }
    for (int64_t row = begin; row < end; ++row)
      ForNonzeros<T>(part.group->dictionary, matrix_.first_row() + row,
                     [&](int32_t, T) { ++counts[row - begin]; });
  }
}

template <typename T>
void SparseDecoder<T>::Write(int64_t begin, int64_t end, const int64_t* places, int32_t* columns,
                             T* values) const {
  std::array<int64_t, kRowsAtOnce> next;
  for (int64_t block = begin; block < end; block += kRowsAtOnce) {
    const int64_t last_row = std::min(end, block + kRowsAtOnce);
    std::copy_n(places + (block - begin), last_row - block, next.begin());
    for (const Part& part : parts_) {
      const int32_t* const names = part.group->columns.data();
      const auto put = [&](int64_t row, int32_t k, T value) {
        const int64_t at = next[static_cast<size_t>(row - block)]++;
        columns[at] = names[k];
        values[at] = value;
      };
      if (part.tuples == nullptr) {
        for (int64_t row = block; row < last_row; ++row)
          ForNonzeros<T>(part.group->dictionary, matrix_.first_row() + row,
                         [&](int32_t k, T value) { put(row, k, value); });
        continue;
      }
      const Tuples& tuples = *part.tuples;
      ForRows(part, block, last_row, [&](int64_t row, int64_t first, int64_t last) {
        for (int64_t entry = first; entry < last; ++entry)
          put(row, tuples.columns[static_cast<size_t>(entry)], tuples.values[static_cast<size_t>(entry)]);
      });
    }
    if (are_in_order_) continue;
    for (int64_t row = block; row < last_row; ++row) {
      const int64_t at = places[row - begin];
      SortRow(next[static_cast<size_t>(row - block)] - at, columns + at, values + at);
    }
  }
}

template class SparseDecoder<double>;
template class SparseDecoder<float>;

namespace {

// So many cells of dense rows take as long as an entry.
constexpr double kCellsOfEntry = 8;

std::variant<SparseDecoder<double>, SparseDecoder<float>> DecoderOf(const Matrix& x) {
  if (x.element_type() == ElementType::kFloat64) return SparseDecoder<double>(x);
  return SparseDecoder<float>(x);
}

template <typename T>
Result<Matrix> DecodedRows(const SparseDecoder<T>& decoder, int64_t begin, int64_t end, const Matrix& x,
                           int64_t grain) {
  std::vector<int64_t> counts(static_cast<size_t>(end - begin));
  ParallelFor(end - begin, grain, [&](int64_t first, int64_t last) {
    decoder.Count(begin + first, begin + last, counts.data() + first);
  });
  HEDDLE_ASSIGN_OR_RETURN(Matrix sparse, SparseOfCounts(x.columns(), counts, x.element_type()));
  ParallelFor(end - begin, grain, [&](int64_t first, int64_t last) {
    decoder.Write(begin + first, begin + last, sparse.row_offsets() + first, sparse.mutable_column_indexes(),
                  sparse.mutable_values<T>());
  });
  return sparse;
}

}  // namespace

SparseRows::SparseRows(const Matrix& compressed) : matrix_(compressed), decoder_(DecoderOf(compressed)) {}

double SparseRows::EntriesOfRow() const {
  return std::visit([](const auto& decoder) { return decoder.EntriesOfRow(); }, decoder_);
}

bool SparseRows::HasFewEntries() const {
  return kCellsOfEntry * EntriesOfRow() < static_cast<double>(matrix_.columns());
}

Result<Matrix> SparseRows::Decode(int64_t begin, int64_t end) const {
  return std::visit(
      [&](const auto& decoder) { return DecodedRows(decoder, begin, end, matrix_, end - begin + 1); },
      decoder_);
}

Result<Matrix> SparseRows::DecodeAll() const {
  const auto grain = static_cast<int64_t>(kGrainEntries / (1 + EntriesOfRow())) + 1;
  return std::visit(
      [&](const auto& decoder) { return DecodedRows(decoder, 0, matrix_.rows(), matrix_, grain); }, decoder_);
}

}  // namespace heddle::ops
