// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/variables/merge_cells.h"

namespace heddle::cluster {
namespace {

// Bytes of a cell of numbers.
int64_t CellBytes(ColumnStorage storage) { return storage == ColumnStorage::kBooleans ? 1 : 8; }

const char* NumbersOf(const Column& column) { return reinterpret_cast<const char*>(column.booleans()); }

bool SameCell(const Column& a, const Column& b, int64_t row) {
  if (a.IsMissing(row) || b.IsMissing(row)) return a.IsMissing(row) && b.IsMissing(row);
  if (a.storage() == ColumnStorage::kTexts) return a.TextAt(row) == b.TextAt(row);
  const int64_t bytes = CellBytes(a.storage());
  return std::memcmp(NumbersOf(a) + row * bytes, NumbersOf(b) + row * bytes, static_cast<size_t>(bytes)) == 0;
}

// By row the column that its cell is from.
using Sources = std::vector<uint8_t>;

Result<Column> Collect(std::span<const Column> columns, const Sources& sources) {
  const Column& first = columns[0];
  const auto source = [&](int64_t row) -> const Column& {
    return columns[sources[static_cast<size_t>(row)]];
  };
  const bool has_texts = first.storage() == ColumnStorage::kTexts;
  bool may_miss = false;
  int64_t text_bytes = 0;
  for (int64_t row = 0; row < first.rows(); ++row) {
    may_miss |= source(row).IsMissing(row);
    if (has_texts) text_bytes += static_cast<int64_t>(source(row).TextAt(row).size());
  }
  HEDDLE_ASSIGN_OR_RETURN(Column merged, Column::Make(first.type(), first.rows(), text_bytes, may_miss));
  const int64_t bytes = CellBytes(first.storage());
  int64_t written = 0;
  for (int64_t row = 0; row < first.rows(); ++row) {
    if (source(row).IsMissing(row)) merged.mutable_missing()[row] = 1;
    if (has_texts) {
      const std::string_view text = source(row).TextAt(row);
      merged.mutable_offsets()[row] = written;
      if (!text.empty()) std::memcpy(merged.mutable_texts() + written, text.data(), text.size());
      written += static_cast<int64_t>(text.size());
    } else {
      std::memcpy(reinterpret_cast<char*>(merged.mutable_booleans()) + row * bytes,
                  NumbersOf(source(row)) + row * bytes, static_cast<size_t>(bytes));
    }
  }
  if (has_texts) merged.mutable_offsets()[first.rows()] = written;
  return merged;
}

}  // namespace

Result<heddle::Frame> MergeCells(const heddle::Frame& before, const heddle::Frame& last,
                                 std::span<const heddle::Frame> others) {
  std::vector<Column> merged;
  for (const heddle::Frame& other : others) {
    if (other.shape() != before.shape() || last.shape() != before.shape() ||
        other.schema()->types != before.schema()->types || last.schema()->types != before.schema()->types)
      return Internal("iterations of a parfor made frames of different columns of one");
  }
  for (int64_t j = 0; j < last.columns(); ++j) {
    const Column old = before.column(j);
    std::vector<Column> columns = {last.column(j)};
    Sources sources(static_cast<size_t>(last.rows()), 0);
    bool is_changed = false;
    for (const heddle::Frame& other : others) {
      columns.push_back(other.column(j));
      const Column& cells = columns.back();
      if (cells.booleans() == old.booleans()) continue;  // The same memory.
      for (int64_t row = 0; row < last.rows(); ++row) {
        if (SameCell(cells, old, row)) continue;
        sources[static_cast<size_t>(row)] = static_cast<uint8_t>(columns.size() - 1);
        is_changed = true;
      }
    }
    if (is_changed) {
      HEDDLE_ASSIGN_OR_RETURN(Column column, Collect(columns, sources));
      merged.push_back(std::move(column));
    } else {
      merged.push_back(columns[0]);
    }
  }
  return heddle::Frame(last.schema(), std::move(merged));
}

}  // namespace heddle::cluster
