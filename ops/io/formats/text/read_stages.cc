// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/read_stages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/programs/distribution.h"
#include "ops/io/files/file_versions.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/records.h"
#include "ops/io/formats/text/cell_exchange.h"

namespace heddle::ops {
namespace {

// Bytes that the ranks parse together when each reads for itself the chunks with cells of its rows.
int64_t BytesOfOwnReads(const FileSummary& summary, int64_t ranks) {
  const std::vector<int64_t> cuts =
      Distribution::SplitRows(summary.shape.rows, static_cast<int32_t>(ranks)).split.cuts;
  int64_t bytes = 0;
  for (size_t chunk = 0; chunk < summary.chunk_row_ranges.size(); ++chunk) {
    const RowRange& rows = summary.chunk_row_ranges[chunk];
    int64_t readers = 0;
    for (size_t rank = 0; rank + 1 < cuts.size(); ++rank)
      readers += cuts[rank] < cuts[rank + 1] && rows.begin < cuts[rank + 1] && rows.end > cuts[rank];
    bytes += readers * (summary.chunk_offsets[chunk + 1] - summary.chunk_offsets[chunk]);
  }
  return bytes;
}

// About the most bytes that a rank holds: cells that it has parsed, sorts and gets, and its rows of them.
double BytesOfExchange(const FileSummary& summary, int64_t ranks) {
  constexpr double kSent = 3 * 2 * sizeof(double), kOfEntry = sizeof(double) + sizeof(int32_t);
  const auto cells = static_cast<double>(summary.stored);
  const double matrix = summary.format == Format::kSparse
                            ? kOfEntry * cells
                            : sizeof(double) * static_cast<double>(summary.shape.Cells());
  return (kSent * cells + matrix) / static_cast<double>(ranks);
}

}  // namespace

bool SendsCells(const Node& read) { return read.FindAttribute(kSendsCells) != nullptr; }

bool ShouldSendCells(const Node& read, const std::string& path, int64_t ranks, int64_t memory_bytes,
                     Files& files) {
  constexpr double kUnknownMemory = double{1 << 30} * 4;
  const Result<ReadOptions> options = ResolveReadOptions(read, path, files);
  if (!options.ok() || options->data_type != DataType::kMatrix) return false;
  const Result<FileSummary> summary = Summarize(*options, files);
  if (!summary.ok() || summary->chunk_row_ranges.empty() || !CanExchangeCells(summary->shape, ranks))
    return false;
  const int64_t bytes = summary->chunk_offsets.back() - summary->chunk_offsets.front();
  if (2 * BytesOfOwnReads(*summary, ranks) <= 3 * bytes) return false;
  const double memory = memory_bytes > 0 ? static_cast<double>(memory_bytes) : kUnknownMemory;
  return BytesOfExchange(*summary, ranks) <= memory / 2;
}

Result<FileSummary> SummaryAsPlanned(const Node& read, const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(FileSummary summary, Summarize(options, files));
  const ValueInfo found = options.data_type == DataType::kFrame
                              ? ValueInfo::OfFrame(summary.shape.rows, summary.schema)
                              : ValueInfo::OfMatrix(summary.shape, summary.format);
  const ValueInfo& expected = read.info;
  const bool same_schema =
      !found.IsFrame() || (expected.schema != nullptr && *found.schema == *expected.schema);
  if (found.data_type != expected.data_type || found.shape != expected.shape ||
      found.format != expected.format || !same_schema)
    return DataLoss("cannot read '{}': it changed while the script ran", options.path);
  return summary;
}

Status CheckUnchanged(const std::string& path, Files& files) {
  return files.versions() == nullptr ? OkStatus() : files.versions()->CheckUnchanged(path);
}

namespace {

constexpr Reach kCells[] = {Reach::kParts};
constexpr Stage kReadStages[] = {{.outputs = kCells, .reads_inputs = true}, {.reads_inputs = true}};

bool Applies(const Node& node, std::span<const ValueInfo>) { return SendsCells(node); }

Status SendShare(const StageCall& call, const std::string& path, std::span<Value> outputs) {
  Files& files = *call.context.files;
  HEDDLE_ASSIGN_OR_RETURN(ReadOptions options, ResolveReadOptions(call.node, path, files));
  options.cancelled = call.context.cancelled;
  HEDDLE_ASSIGN_OR_RETURN(const FileSummary summary, SummaryAsPlanned(call.node, options, files));
  HEDDLE_ASSIGN_OR_RETURN(const TextFile text, OpenText(options, files));
  if (summary.text_bytes != text.size()) return ItChanged(options);
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Matrix> cells,
                          CellsByRank(options, summary, text, {call.rank, call.ranks()}, call.rows.cuts));
  for (size_t rank = 0; rank < cells.size(); ++rank) outputs[rank] = Value(std::move(cells[rank]));
  return CheckUnchanged(path, files);
}

Status RunReadStage(const StageCall& call, std::span<Value> outputs) {
  const std::string path = call.inputs[0]->scalar().ToText();
  if (call.stage == 0) return SendShare(call, path, outputs);
  const ReadOptions options{.path = path, .cancelled = call.context.cancelled};
  const Shape shape = {call.rows.End(call.rank) - call.rows.Begin(call.rank), call.node.info.shape.columns};
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, JoinCells(options, shape, call.node.info.format, call.Parts(0)));
  outputs[0] = Value(std::move(rows));
  return OkStatus();
}

}  // namespace

const StagedForm kStagedRead = {
    .stages = kReadStages, .result = StagedResult::kSameRows, .applies = Applies, .run = RunReadStage};

}  // namespace heddle::ops
