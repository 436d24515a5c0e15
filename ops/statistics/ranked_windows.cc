// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/ranked_windows.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/cells/move_cells.h"
#include "ops/cells/row_order.h"
#include "ops/cells/storage.h"
#include "ops/statistics/narrow_column.h"
#include "ops/statistics/select_ranks.h"
#include "ops/statistics/unsorted_column.h"

namespace heddle::ops {
namespace {

constexpr size_t kKeys = 1;

// What a rank tells all others of its rows beside the samples.
struct Summary {
  enum Column { kSamples, kWeight, kHasNaN, kHasNoCount, kNoCount, kColumns };

  int64_t samples = 0;
  double weight = 0;               // Of all its values.
  bool has_nan = false;            // Among the values that count.
  std::optional<double> no_count;  // Its first weight that is no count.

  Result<Value> ToRow() const {
    HEDDLE_ASSIGN_OR_RETURN(Matrix row, Matrix::Dense(1, kColumns));
    double* const cells = row.mutable_data();
    cells[kSamples] = static_cast<double>(samples);
    cells[kWeight] = weight;
    cells[kHasNaN] = has_nan ? 1 : 0;
    cells[kHasNoCount] = no_count ? 1 : 0;
    cells[kNoCount] = no_count.value_or(0);
    return Value(std::move(row));
  }
  static Summary OfRow(const double* cells) {
    Summary summary{.samples = static_cast<int64_t>(cells[kSamples]),
                    .weight = cells[kWeight],
                    .has_nan = cells[kHasNaN] != 0};
    if (cells[kHasNoCount] != 0) summary.no_count = cells[kNoCount];
    return summary;
  }
};

const Value* WeightsOf(const StageCall& call, const ColumnOfRanks& column) {
  const auto i = static_cast<size_t>(column.weights);
  return column.weights >= 0 && i < call.inputs.size() ? call.inputs[i] : nullptr;
}

// The values that count and their weights, sorted; not where one is NaN.
Result<Matrix> SortedValues(std::string_view name, const Matrix& cells, const Matrix& counts,
                            const std::atomic<bool>* cancelled, Summary* summary) {
  std::vector<double> rows;
  for (int64_t i = 0; i < cells.rows(); ++i) {
    const double cell = cells.data()[i], count = counts.data()[i];
    if (!CheckCount(name, count).ok()) {
      summary->no_count = count;
      break;
    }
    if (count == 0) continue;
    rows.insert(rows.end(), {cell, count});
    summary->has_nan |= std::isnan(cell);
    summary->weight += count;
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix values, Matrix::Dense(static_cast<int64_t>(rows.size() / 2), 2));
  std::copy(rows.begin(), rows.end(), values.mutable_data());
  if (summary->has_nan || summary->no_count) return values;
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<KeyedRow> order, SortedRows(values, {.columns = {0}}, cancelled));
  return GatherRows(values, NumbersOf(order));
}

// At regular distances in the number of values, and in their weight.
int64_t AddWeightedSamples(const Matrix& sorted, double weight, int64_t step, ElementRows* samples) {
  const WeightedValues values(sorted);
  const double weight_step = std::max(
      1.0,
      weight / std::max(1.0, std::floor(static_cast<double>(values.count()) / static_cast<double>(step))));
  int64_t count = 0;
  for (int64_t i = 0; i < values.count(); ++i) {
    const bool reaches_step =
        std::floor(values.Before(i) / weight_step) != std::floor(values.Before(i + 1) / weight_step);
    if (i % step != 0 && !reaches_step) continue;
    samples->Add(values, i);
    ++count;
  }
  return count;
}

std::span<const double> CellsOf(const Matrix& column) {
  return {column.data(), static_cast<size_t>(column.rows())};
}

// Some of the cells of this rank, none of a column with weights.
Status Draw(const StageCall& call, const ColumnOfRanks& column, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix drawn, Matrix::Dense(0, 1));
  if (WeightsOf(call, column) == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, AsDense(call.inputs[0]->matrix()));
    HEDDLE_ASSIGN_OR_RETURN(drawn, DrawCells(CellsOf(cells), call.rows.Begin(call.rank), call.rows.Length()));
  }
  outputs[0] = Value(std::move(drawn));
  return OkStatus();
}

Status Narrow(const StageCall& call, const RanksOfTotal& ranks, std::span<Value> outputs) {
  const int64_t total = call.rows.Length();
  const std::vector<std::pair<double, double>> wanted = ranks(static_cast<double>(total));
  const std::vector<ValueRange> ranges = GuessRanges(call.Received(0).matrix(), total, wanted);
  NarrowColumn narrow;
  if (!ranges.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, AsDense(call.inputs[0]->matrix()));
    HEDDLE_ASSIGN_OR_RETURN(narrow, NarrowColumn::Of(CellsOf(cells), ranges, call.context.cancelled));
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells, Matrix::Dense(std::ssize(narrow.cells), 1));
  std::copy(narrow.cells.begin(), narrow.cells.end(), cells.mutable_data());
  HEDDLE_ASSIGN_OR_RETURN(Matrix row, narrow.ToRow());
  outputs[0] = Value(std::move(cells));
  outputs[1] = Value(std::move(row));
  return OkStatus();
}

// Whether the cells at all of the ranks are in the ranges, of which each rank has told what it has in them.
bool HoldsAll(const Matrix& rows, std::span<const std::pair<double, double>> ranks) {
  if (rows.rows() == 0 || rows.columns() == 1) return false;
  std::vector<std::pair<double, double>> held;  // Ranks, by range.
  for (int64_t rank = 0; rank < rows.rows(); ++rank) {
    const NarrowColumn column = NarrowColumn::OfRow(rows.data() + rank * rows.columns(), rows.columns());
    held.resize(column.parts.size());
    double in_front = 0;
    for (size_t i = 0; i < held.size(); ++i) {
      held[i].first += static_cast<double>(column.parts[i].skipped) + in_front;
      in_front += static_cast<double>(column.parts[i].count);
      held[i].second += static_cast<double>(column.parts[i].skipped) + in_front;
    }
  }
  return std::all_of(ranks.begin(), ranks.end(), [&](const auto& wanted) {
    return std::any_of(held.begin(), held.end(), [&](const auto& range) {
      return wanted.first > range.first && wanted.second <= range.second;
    });
  });
}

// The cells of this rank among which windows are looked for: those in ranges of values, or all.
struct SoughtCells {
  std::span<const double> cells;
  std::vector<NarrowColumn::Part> parts;
  bool is_narrow = false;

  // `narrow` and `rows` as the stages hand them on; `all` is this rank's piece of the column.
  static SoughtCells Of(const Matrix& all, const Matrix& narrow, const Matrix& rows, int32_t rank) {
    if (rows.rows() == 0) return {CellsOf(all), {{.count = all.rows()}}, false};
    return {CellsOf(narrow), NarrowColumn::OfRow(rows.data() + rank * rows.columns(), rows.columns()).parts,
            true};
  }
  // How many more cells are in front of a value in a range than are here.
  int64_t SkippedAt(double value) const {
    for (const NarrowColumn::Part& part : parts)
      if (is_narrow && ExactSortKey(value) <= ExactSortKey(part.range.high)) return part.skipped;
    return 0;
  }
};

// Samples at regular distances; where cells are narrow, bounds around those of each range.
int64_t AddSamples(const SoughtCells& sought, int64_t step, bool* has_nan, ElementRows* samples) {
  int64_t count = 0, first = 0;
  const auto add = [&](double value, int64_t before, int64_t weight) {
    samples->Add({&value, 1}, static_cast<double>(before), static_cast<double>(before + weight));
    ++count;
  };
  for (const NarrowColumn::Part& part : sought.parts) {
    std::vector<int64_t> places;
    for (int64_t place = 0; place < part.count; place += step) places.push_back(place);
    const std::vector<double> values = SelectRanks(
        sought.cells.subspan(static_cast<size_t>(first), static_cast<size_t>(part.count)), places);
    *has_nan |= values.size() < places.size();
    const int64_t in_front = first + part.skipped;
    if (sought.is_narrow) add(part.range.low, in_front, 0);
    for (size_t i = 0; i < values.size(); ++i) add(values[i], in_front + places[i], 1);
    if (sought.is_narrow) add(part.range.high, in_front + part.count, 0);
    first += part.count;
  }
  return count;
}

Status SendBetween(const StageCall& call, const RankedTotals& totals, const PlaceBounds& bounds,
                   const std::vector<std::pair<double, double>>& ranks, std::span<Value> outputs) {
  struct Bounds {
    std::optional<GlobalElement> begin, end;
  };
  std::vector<Bounds> windows;
  for (const auto& [low, high] : ranks) windows.push_back({bounds.Begin(low - 1), bounds.End(high - 1)});
  std::optional<UnsortedColumn> unsorted;
  SoughtCells sought;
  Matrix cells;
  if (!totals.is_weighted) {
    HEDDLE_ASSIGN_OR_RETURN(cells, AsDense(call.inputs[0]->matrix()));
    sought = SoughtCells::Of(cells, call.Received(0).matrix(), call.Received(1).matrix(), call.rank);
    std::vector<UnsortedColumn::Range> ranges;
    const auto key = [](const std::optional<GlobalElement>& bound) -> std::optional<double> {
      if (!bound) return std::nullopt;
      return bound->keys[0];
    };
    for (const Bounds& window : windows) ranges.push_back({key(window.begin), key(window.end)});
    unsorted.emplace(sought.cells, ranges);
  }
  std::optional<WeightedValues> sorted;
  if (totals.is_weighted) sorted.emplace(call.Received(0).matrix());
  const RankElements& elements = unsorted ? static_cast<const RankElements&>(*unsorted) : *sorted;
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    ElementRows rows(kKeys);
    const auto [first, last] = OwnPlaces(static_cast<int64_t>(windows.size()), rank, call.ranks());
    for (int64_t i = first; i < last; ++i) {
      const auto& [begin, end] = windows[static_cast<size_t>(i)];
      const int64_t skipped = begin ? sought.SkippedAt(begin->keys[0]) : 0;
      const auto before = [&](GlobalElement bound) {
        bound.before -= static_cast<double>(skipped);
        return unsorted ? unsorted->CountBefore(call.rank, bound)
                        : CountBefore(*sorted, totals.order(), call.rank, bound);
      };
      rows.AddWindow(elements, begin ? before(*begin) : 0, end ? before(*end) : elements.count(),
                     static_cast<double>(skipped));
    }
    HEDDLE_ASSIGN_OR_RETURN(outputs[static_cast<size_t>(2 + rank)], rows.ToMatrix());
  }
  return OkStatus();
}

// All values and weights, to rank 0.
Status SendAll(const StageCall& call, std::span<Value> outputs) {
  const WeightedValues values(call.Received(0).matrix());
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    ElementRows rows(kKeys);
    for (int64_t i = 0; rank == 0 && i < values.count(); ++i) {
      const double value = values.Key(i, 0);
      rows.Add({&value, 1}, 0, values.Weight(i));
    }
    if (rank == 0) rows.EndWindow(0);
    HEDDLE_ASSIGN_OR_RETURN(outputs[static_cast<size_t>(2 + rank)], rows.ToMatrix());
  }
  return OkStatus();
}

}  // namespace

Result<Value> RankedTotals::ToRow() const {
  HEDDLE_ASSIGN_OR_RETURN(Matrix row, Matrix::Dense(1, 3));
  row.mutable_data()[0] = total;
  row.mutable_data()[1] = has_nan ? 1 : 0;
  row.mutable_data()[2] = is_weighted ? 1 : 0;
  return Value(std::move(row));
}

RankedTotals RankedTotals::OfRow(const Matrix& row) {
  return {.total = row.data()[0], .has_nan = row.data()[1] != 0, .is_weighted = row.data()[2] != 0};
}

WeightedValues::WeightedValues(const Matrix& rows)
    : rows_(rows), before_(static_cast<size_t>(rows.rows()) + 1) {
  for (int64_t i = 0; i < rows.rows(); ++i)
    before_[static_cast<size_t>(i) + 1] = before_[static_cast<size_t>(i)] + Weight(i);
}

namespace {

Status SampleColumn(const StageCall& call, const ColumnOfRanks& column, const RanksOfTotal& ranks,
                    std::span<Value> outputs) {
  const Value* const weights = WeightsOf(call, column);
  const int64_t rows = call.rows.Length();
  const std::vector<std::pair<double, double>> wanted = ranks(static_cast<double>(rows));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, AsDense(call.inputs[0]->matrix()));
  const int64_t step = SampleStep(rows, std::ssize(wanted));
  Summary summary;
  ElementRows samples(kKeys);
  Matrix here, rows_of_ranks;
  if (weights != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(const Matrix counts, AsDense(weights->matrix()));
    HEDDLE_ASSIGN_OR_RETURN(here, SortedValues(column.name, cells, counts, call.context.cancelled, &summary));
    if (!summary.has_nan && !summary.no_count && summary.weight < 0x1p53)
      summary.samples = AddWeightedSamples(here, summary.weight, step, &samples);
  } else {
    if (HoldsAll(call.Received(1).matrix(), wanted)) {
      here = call.Received(0).matrix();
      rows_of_ranks = call.Received(1).matrix();
      summary.has_nan =
          NarrowColumn::OfRow(rows_of_ranks.data() + call.rank * rows_of_ranks.columns(), 1).has_nan;
    }
    const SoughtCells sought = SoughtCells::Of(cells, here, rows_of_ranks, call.rank);
    summary.weight = static_cast<double>(cells.rows());
    if (!summary.has_nan) summary.samples = AddSamples(sought, step, &summary.has_nan, &samples);
  }
  outputs[0] = Value(std::move(here));
  outputs[1] = Value(std::move(rows_of_ranks));
  HEDDLE_ASSIGN_OR_RETURN(outputs[2], samples.ToMatrix());
  HEDDLE_ASSIGN_OR_RETURN(outputs[3], summary.ToRow());
  return OkStatus();
}

Status SendWindows(const StageCall& call, const ColumnOfRanks& column, const RanksOfTotal& ranks,
                   std::span<Value> outputs) {
  const Matrix& summaries = call.Received(3).matrix();
  RankedTotals totals{.is_weighted = WeightsOf(call, column) != nullptr};
  std::vector<int64_t> samples;
  std::vector<double> weights;
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    const Summary summary = Summary::OfRow(summaries.data() + rank * summaries.columns());
    if (summary.no_count) return CheckCount(column.name, *summary.no_count);
    samples.push_back(summary.samples);
    weights.push_back(summary.weight);
    totals.total += summary.weight;
    totals.has_nan |= summary.has_nan;
  }
  if (totals.total == 0) return FailedPrecondition("{}: all weights are 0", column.name);
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], totals.ToRow());
  outputs[1] = call.Received(0);
  if (totals.has_nan) {
    HEDDLE_ASSIGN_OR_RETURN(const Value nothing, ElementRows(kKeys).ToMatrix());
    std::fill_n(outputs.begin() + 2, call.ranks(), nothing);
    return OkStatus();
  }
  if (!totals.is_exact()) return SendAll(call, outputs);
  const PlaceBounds bounds(totals.order(), kKeys, call.Received(2).matrix(), samples, weights);
  return SendBetween(call, totals, bounds, ranks(totals.total), outputs);
}

}  // namespace

Status FindWindows(const StageCall& call, const ColumnOfRanks& column, const RanksOfTotal& ranks,
                   std::span<Value> outputs) {
  const Value* const weights = WeightsOf(call, column);
  const Shape of_weights =
      weights == nullptr ? Shape() : call.input_infos[static_cast<size_t>(column.weights)].shape;
  HEDDLE_RETURN_IF_ERROR(CheckRankedSizes(column.name,
                                          {call.rows.Length(), call.inputs[0]->matrix().columns()},
                                          weights == nullptr ? nullptr : &of_weights));
  switch (call.stage) {
    case 0: return Draw(call, column, outputs);
    case 1: return Narrow(call, ranks, outputs);
    case 2: return SampleColumn(call, column, ranks, outputs);
    default: return SendWindows(call, column, ranks, outputs);
  }
}

WindowReader WindowsOf(const StageCall& call, const RankedTotals& totals) {
  return WindowReader(totals.order(), kKeys, call.Parts(2));
}

RankedColumn ColumnOf(const MergedWindow& all) {
  RankedColumn column{.weights = all.weights()};
  for (const GlobalElement& element : all.elements()) column.values.push_back(element.keys[0]);
  for (const double weight : column.weights) column.total += weight;
  return column;
}

}  // namespace heddle::ops
