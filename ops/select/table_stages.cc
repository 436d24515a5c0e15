// SPDX-License-Identifier: Apache-2.0
#include "ops/select/table_stages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ops/base/arguments.h"
#include "ops/frame/part_failures.h"
#include "ops/frame/row_pieces.h"
#include "ops/select/table_entries.h"

namespace heddle::ops {
namespace {

enum Input { kA, kB, kW, kD1, kD2 };
enum OfRead { kSums, kSize, kReport };

bool IsMatrixIn(std::span<const ValueInfo> inputs, size_t i) {
  return i < inputs.size() && inputs[i].IsMatrix();
}

// Entries travel as rows: row, column, panel, weight.
Result<Value> MatrixOf(std::span<const TableEntry> entries) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Dense(static_cast<int64_t>(entries.size()), 4));
  double* out = matrix.mutable_data();
  for (const TableEntry& entry : entries) {
    *out++ = static_cast<double>(entry.row);
    *out++ = static_cast<double>(entry.column);
    *out++ = static_cast<double>(entry.panel);
    *out++ = entry.weight;
  }
  return Value(std::move(matrix));
}

std::vector<TableEntry> EntriesOf(const Matrix& matrix) {
  std::vector<TableEntry> entries(static_cast<size_t>(matrix.rows()));
  const double* in = matrix.data();
  for (TableEntry& entry : entries) {
    entry = {static_cast<int64_t>(in[0]), static_cast<int32_t>(in[1]), static_cast<int64_t>(in[2]), in[3]};
    in += 4;
  }
  return entries;
}

const Value* Given(const StageCall& call, size_t i) {
  return i < call.inputs.size() ? call.inputs[i] : nullptr;
}

// Whether sums are exact in every order: counts.
bool CountsOnes(const StageCall& call, const Value* weights) {
  if (IsMatrixIn(call.input_infos, kW)) return false;
  return weights == nullptr || weights->scalar().AsDouble() == 1;
}

// The sums of this rank's rows by cell and panel, the size that they ask for, and the first key that is none:
// ranks have the rows in their order, so that of several the first rank's is the one that a whole run meets.
Status Read(const StageCall& call, std::span<Value> outputs) {
  const KernelCall as_call = call.WholeCall();
  Shape shape;
  HEDDLE_ASSIGN_OR_RETURN(shape.rows, GivenSize(as_call, kD1, "the number of rows", kUnknown));
  HEDDLE_ASSIGN_OR_RETURN(shape.columns, GivenSize(as_call, kD2, "the number of columns", kUnknown));
  const Matrix& a = call.inputs[kA]->matrix();
  HEDDLE_ASSIGN_OR_RETURN(const TableInput b, TableInput::Of(a, Given(call, kB), false, 1));
  HEDDLE_ASSIGN_OR_RETURN(const TableInput w, TableInput::Of(a, Given(call, kW), true, 1));
  const TableRows rows{
      .first = call.rows.Begin(call.rank),
      .total = call.rows.Length(),
      .has_all_keys = BooleanAttribute(call.node, "keep.rows", false) && !IsMatrixIn(call.input_infos, kW)};
  Result<std::vector<TableEntry>> read = ReadEntries(a, b, w, rows, call.context.cancelled, &shape);
  const PartFailure bad_key{.status = read.status(),
                            .is_of_data = read.status().code() != StatusCode::kCancelled};
  HEDDLE_ASSIGN_OR_RETURN(outputs[kReport], ReportOf({&bad_key, 1}));
  if (!read.ok()) {
    read = std::vector<TableEntry>();
    shape = {0, 0};
  }
  std::vector<TableEntry> entries = *std::move(read);
  SortEntries(&entries, shape);
  const bool counts_ones = CountsOnes(call, Given(call, kW));
  CombineEntries(counts_ones, &entries);
  HEDDLE_ASSIGN_OR_RETURN(outputs[kSums], MatrixOf(entries));
  HEDDLE_ASSIGN_OR_RETURN(Matrix size, Matrix::Dense(1, 3));
  size.mutable_data()[0] = static_cast<double>(shape.rows);
  size.mutable_data()[1] = static_cast<double>(shape.columns);
  size.mutable_data()[2] = counts_ones ? 1 : 0;
  outputs[kSize] = Value(std::move(size));
  return OkStatus();
}

// Sums go to the rank that has the row of the table; the size of the table is the largest that is asked for.
Status Send(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_RETURN_IF_ERROR(FirstReportedFailure(call.Received(kReport)));
  const Matrix& sizes = call.Received(kSize).matrix();
  Shape shape{0, 0};
  for (int64_t rank = 0; rank < sizes.rows(); ++rank) {
    shape.rows = std::max(shape.rows, static_cast<int64_t>(sizes.At(rank, 0)));
    shape.columns = std::max(shape.columns, static_cast<int64_t>(sizes.At(rank, 1)));
  }
  const Split cuts = call.result_rows.cuts.empty() ? Distribution::SplitRows(shape.rows, call.ranks()).split
                                                   : call.result_rows;
  const std::vector<TableEntry> entries = EntriesOf(call.Received(kSums).matrix());
  auto begin = entries.begin();
  for (int32_t rank = 0; rank < call.ranks(); ++rank) {
    const auto end = std::partition_point(
        begin, entries.end(), [&](const TableEntry& entry) { return entry.row < cuts.End(rank); });
    HEDDLE_ASSIGN_OR_RETURN(outputs[static_cast<size_t>(rank)], MatrixOf({begin, end}));
    begin = end;
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix own, Matrix::Dense(1, 4));
  own.mutable_data()[0] = static_cast<double>(cuts.Begin(call.rank));
  own.mutable_data()[1] = static_cast<double>(cuts.End(call.rank));
  own.mutable_data()[2] = static_cast<double>(shape.columns);
  own.mutable_data()[3] = sizes.At(0, 2);
  outputs[static_cast<size_t>(call.ranks())] = Value(std::move(own));
  return OkStatus();
}

Status Add(const StageCall& call, std::span<Value> outputs) {
  const Matrix& own = call.Received(1).matrix();
  const auto first = static_cast<int64_t>(own.At(0, 0));
  const Shape shape{static_cast<int64_t>(own.At(0, 1)) - first, static_cast<int64_t>(own.At(0, 2))};
  HEDDLE_ASSIGN_OR_RETURN(const Value sums, JoinRows(call.Parts(0)));
  std::vector<TableEntry> entries = EntriesOf(sums.matrix());
  for (TableEntry& entry : entries) entry.row -= first;
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], TableOf(std::move(entries), shape, call.node.info.format,
                                              own.At(0, 3) != 0, call.context.cancelled));
  return OkStatus();
}

Status RunStage(const StageCall& call, std::span<Value> outputs) {
  switch (call.stage) {
    case 0: return Read(call, outputs);
    case 1: return Send(call, outputs);
    default: return Add(call, outputs);
  }
}

// Keys and weights beside the rows of A.
bool HasRowsOfA(const Node&, std::span<const ValueInfo> inputs) {
  if (!IsMatrixIn(inputs, kA) || !inputs[kA].IsSized()) return false;
  return std::all_of(inputs.begin() + kB, inputs.begin() + std::min<std::ptrdiff_t>(std::ssize(inputs), kD1),
                     [&](const ValueInfo& info) {
                       return !info.IsMatrix() ||
                              (info.IsSized() && info.shape.rows == inputs[kA].shape.rows);
                     });
}
bool IsSized(const Node& node, std::span<const ValueInfo> inputs) {
  return node.info.IsSized() && HasRowsOfA(node, inputs);
}
bool IsUnsized(const Node& node, std::span<const ValueInfo> inputs) {
  return !node.info.IsSized() && HasRowsOfA(node, inputs);
}

// At most all entries.
double MovedBytes(const Node& node, std::span<const ValueInfo> inputs, const RankGrid&) {
  const double cells = static_cast<double>(inputs[kA].shape.Cells());
  return 32 * (node.info.IsSized() ? std::min(cells, static_cast<double>(node.info.shape.Cells())) : cells);
}

constexpr Reach kReadOutputs[] = {Reach::kHere, Reach::kAll, Reach::kAll},
                kSumsAndOwn[] = {Reach::kParts, Reach::kHere};
constexpr Stage kStages[] = {{.outputs = kReadOutputs, .reads_inputs = true}, {.outputs = kSumsAndOwn}, {}};
constexpr StagedForm kUnsized = {.stages = kStages,
                                 .result = StagedResult::kUneven,
                                 .needs_granules = true,
                                 .applies = IsUnsized,
                                 .moved_bytes = MovedBytes,
                                 .run = RunStage};

}  // namespace

InputUse TableInputUse(const Node&, std::span<const ValueInfo> inputs, int i) {
  return i < kD1 && inputs[static_cast<size_t>(i)].IsMatrix() ? InputUse::kRows : InputUse::kWhole;
}

constexpr StagedForm kTableStaged = {.stages = kStages,
                                     .result = StagedResult::kRows,
                                     .needs_granules = true,
                                     .other = &kUnsized,
                                     .applies = IsSized,
                                     .moved_bytes = MovedBytes,
                                     .run = RunStage};

}  // namespace heddle::ops
