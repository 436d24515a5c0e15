// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/variables/merge_cells.h"

namespace heddle::engine {
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

// Where a cell is taken from.
struct Source {
  const Column* column = nullptr;
  int64_t row = 0;
};

// A column of these cells; source(row) tells the Source of each. All have `type`.
template <typename SourceOf>
Result<Column> Collect(ColumnType type, int64_t rows, bool may_miss, const SourceOf& source) {
  const ColumnStorage storage = StorageOf(type);
  const bool has_texts = storage == ColumnStorage::kTexts;
  const auto text = [](const Source& cell) { return cell.column->TextAt(cell.row); };
  int64_t text_bytes = 0;
  for (int64_t row = 0; has_texts && row < rows; ++row)
    text_bytes += static_cast<int64_t>(text(source(row)).size());
  HEDDLE_ASSIGN_OR_RETURN(Column collected, Column::Make(type, rows, text_bytes, may_miss));
  const int64_t bytes = CellBytes(storage);
  int64_t written = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const Source cell = source(row);
    if (cell.column->IsMissing(cell.row)) collected.mutable_missing()[row] = 1;
    if (has_texts) {
      const std::string_view own = text(cell);
      collected.mutable_offsets()[row] = written;
      if (!own.empty()) std::memcpy(collected.mutable_texts() + written, own.data(), own.size());
      written += static_cast<int64_t>(own.size());
    } else {
      std::memcpy(reinterpret_cast<char*>(collected.mutable_booleans()) + row * bytes,
                  NumbersOf(*cell.column) + cell.row * bytes, static_cast<size_t>(bytes));
    }
  }
  if (has_texts) collected.mutable_offsets()[rows] = written;
  return collected;
}

bool SharesMemory(const Column& a, const Column& b) {
  return a.booleans() == b.booleans() && a.missing() == b.missing();
}

Status OtherColumns() { return Internal("iterations of a parfor made frames of different columns of one"); }

}  // namespace

Result<Frame> MergeCells(const Frame& before, const Frame& last, std::span<const Frame> others) {
  std::vector<Column> merged;
  for (const Frame& other : others) {
    if (other.shape() != before.shape() || last.shape() != before.shape() ||
        other.schema()->types != before.schema()->types || last.schema()->types != before.schema()->types)
      return OtherColumns();
  }
  for (int64_t j = 0; j < last.columns(); ++j) {
    const Column old = before.column(j);
    std::vector<Column> columns = {last.column(j)};
    std::vector<uint8_t> sources(static_cast<size_t>(last.rows()), 0);  // By row the column of its cell.
    bool is_changed = false, may_miss = columns[0].MayMiss();
    for (const Frame& other : others) {
      columns.push_back(other.column(j));
      const Column& cells = columns.back();
      if (SharesMemory(cells, old)) continue;
      may_miss |= cells.MayMiss();
      for (int64_t row = 0; row < last.rows(); ++row) {
        if (SameCell(cells, old, row)) continue;
        sources[static_cast<size_t>(row)] = static_cast<uint8_t>(columns.size() - 1);
        is_changed = true;
      }
    }
    if (is_changed) {
      HEDDLE_ASSIGN_OR_RETURN(Column column, Collect(old.type(), last.rows(), may_miss, [&](int64_t row) {
                                return Source{&columns[sources[static_cast<size_t>(row)]], row};
                              }));
      merged.push_back(std::move(column));
    } else {
      merged.push_back(columns[0]);
    }
  }
  return Frame(last.schema(), std::move(merged));
}

Result<std::vector<ColumnChange>> ChangedCells(const Frame& before, const Frame& after) {
  if (after.shape() != before.shape() || after.schema()->types != before.schema()->types)
    return OtherColumns();
  std::vector<ColumnChange> changes;
  for (int64_t j = 0; j < before.columns(); ++j) {
    const Column old = before.column(j), changed = after.column(j);
    if (SharesMemory(old, changed)) continue;
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < before.rows(); ++row)
      if (!SameCell(old, changed, row)) rows.push_back(row);
    if (rows.empty()) continue;
    ColumnChange& change = changes.emplace_back();
    change.column = j;
    const auto count = static_cast<int64_t>(rows.size());
    HEDDLE_ASSIGN_OR_RETURN(change.rows, Matrix::Dense(count, 1));
    std::copy(rows.begin(), rows.end(), change.rows.mutable_data());
    HEDDLE_ASSIGN_OR_RETURN(change.cells, Collect(changed.type(), count, changed.MayMiss(), [&](int64_t i) {
                              return Source{&changed, rows[static_cast<size_t>(i)]};
                            }));
  }
  return changes;
}

Result<Frame> WithCells(const Frame& before, std::span<const ColumnChange> changes) {
  std::vector<Column> columns;
  for (int64_t j = 0; j < before.columns(); ++j) {
    const Column old = before.column(j);
    std::vector<Source> sources;
    bool may_miss = old.MayMiss();
    for (const ColumnChange& change : changes) {
      if (change.column != j) continue;
      if (change.cells.type() != old.type() || change.cells.rows() != change.rows.rows())
        return OtherColumns();
      if (sources.empty())
        for (int64_t row = 0; row < old.rows(); ++row) sources.push_back({&old, row});
      may_miss |= change.cells.MayMiss();
      for (int64_t i = 0; i < change.rows.rows(); ++i) {
        const double row = change.rows.At(i, 0);
        if (!(row >= 0 && row < static_cast<double>(old.rows())))
          return Internal("a cell that a parfor changed is not there");
        sources[static_cast<size_t>(row)] = {&change.cells, i};
      }
    }
    if (sources.empty()) {
      columns.push_back(old);
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(Column column, Collect(old.type(), old.rows(), may_miss, [&](int64_t row) {
                              return sources[static_cast<size_t>(row)];
                            }));
    columns.push_back(std::move(column));
  }
  return Frame(before.schema(), std::move(columns));
}

}  // namespace heddle::engine
