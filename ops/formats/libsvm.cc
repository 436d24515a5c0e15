// SPDX-License-Identifier: Apache-2.0
// libsvm: "label index:value index:value ..." per row, indexes from 1. The label becomes the last column.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <limits>
#include <mutex>
#include <vector>

#include "core/double_text.h"
#include "ops/formats/lines.h"
#include "ops/formats/readers.h"
#include "ops/kernel.h"
#include "ops/parallel.h"

namespace heddle::ops {
namespace {

struct Entry {
  int32_t column;  // from 0
  double value;
};

bool IsSeparator(char c) { return c == ' ' || c == ',' || c == '\t' || c == '\r'; }

std::string_view TakeWord(std::string_view* line) {
  size_t begin = 0;
  while (begin < line->size() && IsSeparator((*line)[begin])) ++begin;
  size_t end = begin;
  while (end < line->size() && !IsSeparator((*line)[end])) ++end;
  const std::string_view word = line->substr(begin, end - begin);
  line->remove_prefix(end);
  return word;
}

Status Malformed(const ReadOptions& options, int64_t line_number, std::string_view word) {
  return DataLoss("cannot read '{}': line {}: '{}' is not index{}value", options.path, line_number,
                  word.substr(0, 40), options.index_separator)
      .WithNote("a libsvm line is: label index:value index:value ..., indexes from 1");
}

// One row: its entries by ascending column and its label.
Status ParseRow(const ReadOptions& options, std::string_view line, int64_t line_number,
                std::vector<Entry>* entries, double* label) {
  entries->clear();
  const std::string_view first = TakeWord(&line);
  const std::optional<double> value = ParseDouble(first);
  if (!value)
    return DataLoss("cannot read '{}': line {}: the label '{}' is not a number", options.path, line_number,
                    first.substr(0, 40));
  *label = *value;
  bool ascending = true;
  for (std::string_view word = TakeWord(&line); !word.empty(); word = TakeWord(&line)) {
    const size_t colon = word.find(options.index_separator);
    if (colon == std::string_view::npos) return Malformed(options, line_number, word);
    int64_t index = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + colon, index);
    if (error != std::errc() || end != word.data() + colon || index < 1 ||
        index >= std::numeric_limits<int32_t>::max())
      return Malformed(options, line_number, word);
    const std::optional<double> cell = ParseDouble(word.substr(colon + options.index_separator.size()));
    if (!cell) return Malformed(options, line_number, word);
    if (*cell == 0) continue;
    if (!entries->empty() && entries->back().column >= index - 1) ascending = false;
    entries->push_back({static_cast<int32_t>(index - 1), *cell});
  }
  if (!ascending) {
    std::stable_sort(entries->begin(), entries->end(),
                     [](const Entry& a, const Entry& b) { return a.column < b.column; });
    for (size_t i = 1; i < entries->size(); ++i)
      if ((*entries)[i].column == (*entries)[i - 1].column)
        return DataLoss("cannot read '{}': line {}: index {} is given twice", options.path, line_number,
                        (*entries)[i].column + 1);
  }
  return OkStatus();
}

// Runs parse(row, entries, label) over the rows of each chunk; keeps the first failure of the file.
template <typename Visit>
Status VisitRows(const ReadOptions& options, const FileSummary& summary, std::string_view text,
                 int64_t row_begin, int64_t row_end, const Visit& visit) {
  std::mutex mutex;
  int64_t failed_row = std::numeric_limits<int64_t>::max();
  Status failure;
  ParallelFor(static_cast<int64_t>(summary.chunk_rows.size()) - 1, 1, [&](int64_t begin, int64_t end) {
    std::vector<Entry> entries;
    for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
      if (IsCancelled(options.cancelled)) return;
      std::string_view rest =
          text.substr(static_cast<size_t>(summary.chunk_offsets[c]),
                      static_cast<size_t>(summary.chunk_offsets[c + 1] - summary.chunk_offsets[c]));
      for (int64_t row = summary.chunk_rows[c]; row < std::min(row_end, summary.chunk_rows[c + 1]); ++row) {
        const std::string_view line = TakeLine(&rest);
        if (row < row_begin) continue;
        double label = 0;
        if (const Status status = ParseRow(options, line, row + 1, &entries, &label); !status.ok()) {
          const std::lock_guard lock(mutex);
          if (row < failed_row) {
            failed_row = row;
            failure = status;
          }
          break;
        }
        visit(c, row, entries, label);
      }
    }
  });
  if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
  return failure;
}

}  // namespace

Result<FileSummary> SummarizeLibsvm(const ReadOptions& options, std::string_view text) {
  FileSummary summary;
  LineChunks chunks = CutLines(text);
  if (chunks.rows.back() == 0) return DataLoss("cannot read '{}': it holds no data", options.path);
  summary.chunk_offsets = std::move(chunks.offsets);
  summary.chunk_rows = std::move(chunks.rows);
  const int64_t rows = summary.chunk_rows.back();
  std::vector<int64_t> widest(summary.chunk_rows.size(), 0);
  std::vector<int64_t> stored(summary.chunk_rows.size(), 0);
  HEDDLE_RETURN_IF_ERROR(
      VisitRows(options, summary, text, 0, rows,
                [&](size_t chunk, int64_t, const std::vector<Entry>& entries, double label) {
                  if (!entries.empty())
                    widest[chunk] = std::max<int64_t>(widest[chunk], entries.back().column + 1);
                  stored[chunk] += static_cast<int64_t>(entries.size()) + (label != 0);
                }));
  const int64_t features = *std::max_element(widest.begin(), widest.end());
  if (options.columns != kUnknown && options.columns < features)
    return DataLoss("cannot read '{}': it has index {}, cols={} was asked for", options.path, features,
                    options.columns);
  if (options.rows != kUnknown && options.rows != rows)
    return DataLoss("cannot read '{}': rows={} was asked for, the file has {}", options.path, options.rows,
                    rows);
  summary.shape = {rows, (options.columns != kUnknown ? options.columns : features) + 1};
  summary.stored = 0;
  for (int64_t count : stored) summary.stored += count;
  summary.format = ChooseFormat(summary.shape, summary.stored);
  return summary;
}

Result<Matrix> ReadLibsvm(const ReadOptions& options, const FileSummary& summary, std::string_view text,
                          int64_t row_begin, int64_t row_end) {
  const int64_t columns = summary.shape.columns;
  // Chunks parse into pieces of their own; the pieces are then laid one after the other.
  struct Piece {
    std::vector<int32_t> indexes;
    std::vector<double> values;
    std::vector<int64_t> row_sizes;
  };
  std::vector<Piece> pieces(summary.chunk_rows.size());
  std::atomic<bool> fits = true;
  HEDDLE_RETURN_IF_ERROR(
      VisitRows(options, summary, text, row_begin, row_end,
                [&](size_t chunk, int64_t, const std::vector<Entry>& entries, double label) {
                  Piece& piece = pieces[chunk];
                  if (!entries.empty() && entries.back().column >= columns - 1) fits = false;
                  for (const Entry& entry : entries) {
                    piece.indexes.push_back(entry.column);
                    piece.values.push_back(entry.value);
                  }
                  if (label != 0) {
                    piece.indexes.push_back(static_cast<int32_t>(columns - 1));
                    piece.values.push_back(label);
                  }
                  piece.row_sizes.push_back(static_cast<int64_t>(entries.size()) + (label != 0));
                }));
  if (!fits) return DataLoss("cannot read '{}': it changed while it was read", options.path);
  int64_t stored = 0;
  for (const Piece& piece : pieces) stored += static_cast<int64_t>(piece.values.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix sparse, Matrix::Sparse(row_end - row_begin, columns, stored));
  int64_t* offsets = sparse.mutable_row_offsets();
  int64_t at = 0;
  int64_t row = 0;
  offsets[0] = 0;
  for (const Piece& piece : pieces) {
    if (piece.values.empty() && piece.row_sizes.empty()) continue;
    std::copy(piece.indexes.begin(), piece.indexes.end(), sparse.mutable_column_indexes() + at);
    std::copy(piece.values.begin(), piece.values.end(), sparse.mutable_values() + at);
    at += static_cast<int64_t>(piece.values.size());
    for (int64_t size : piece.row_sizes) {
      offsets[row + 1] = offsets[row] + size;
      ++row;
    }
  }
  return summary.format == Format::kSparse ? Result<Matrix>(std::move(sparse)) : ToDense(sparse);
}

}  // namespace heddle::ops
