// SPDX-License-Identifier: Apache-2.0
// libsvm: "label index:value index:value ..." per row, indexes from 1. The label becomes the last column.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <limits>
#include <vector>

#include "core/text/utf8.h"
#include "ops/formats/fields.h"
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

bool IsSeparator(char c) { return c == ' ' || c == ',' || IsBlank(c); }

// The line without its comment and the separators around it.
std::string_view Content(std::string_view line) {
  line = line.substr(0, line.find('#'));
  while (!line.empty() && IsSeparator(line.front())) line.remove_prefix(1);
  while (!line.empty() && IsSeparator(line.back())) line.remove_suffix(1);
  return line;
}

// The characters up to the next separator; the separators behind it are skipped.
std::string_view TakeWord(std::string_view* line) {
  size_t end = 0;
  while (end < line->size() && !IsSeparator((*line)[end])) ++end;
  const std::string_view word = line->substr(0, end);
  while (end < line->size() && IsSeparator((*line)[end])) ++end;
  line->remove_prefix(end);
  return word;
}

// Takes the text between an index and its value, blanks around it or not. False if it is not there.
bool TakeColon(std::string_view* line, std::string_view colon) {
  const auto skip_blanks = [&] {
    while (!line->empty() && IsBlank(line->front())) line->remove_prefix(1);
  };
  if (!line->starts_with(colon)) skip_blanks();
  if (!line->starts_with(colon)) return false;
  line->remove_prefix(colon.size());
  skip_blanks();
  return true;
}

// Takes "index:value" as most are written; false leaves it to TakePair.
bool TakePlainPair(std::string_view* line, std::string_view colon, int64_t* index, double* value) {
  const char* const end = line->data() + line->size();
  auto [at, error] = std::from_chars(line->data(), end, *index);
  if (error != std::errc() || colon.size() != 1 || at == end || *at != colon[0]) return false;
  ++at;
  if (!TakePlainNumber(&at, end, value) || (at != end && !IsSeparator(*at))) return false;
  while (at != end && IsSeparator(*at)) ++at;
  line->remove_prefix(static_cast<size_t>(at - line->data()));
  return true;
}

// Takes "index:value". False if that is not there.
bool TakePair(std::string_view* line, std::string_view colon, int64_t* index, double* value) {
  if (TakePlainPair(line, colon, index, value)) return true;
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), *index);
  if (error != std::errc()) return false;
  line->remove_prefix(static_cast<size_t>(end - line->data()));
  if (!TakeColon(line, colon)) return false;
  const std::optional<double> number = ParseNumber(TakeWord(line));
  *value = number.value_or(0);
  return number.has_value();
}

// Takes "qid:N", which says to which query of a ranking a row belongs: nothing of the matrix.
bool TakeQuery(std::string_view* line) {
  std::string_view rest = *line;
  if (!rest.starts_with("qid")) return false;
  rest.remove_prefix(3);
  int64_t query = 0;
  if (!TakeColon(&rest, ":")) return false;
  const std::string_view word = TakeWord(&rest);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), query);
  if (error != std::errc() || end != word.data() + word.size()) return false;
  *line = rest;
  return true;
}

Status Malformed(const ReadOptions& options, int64_t line_number, std::string_view word) {
  return DataLoss("cannot read '{}': line {}: '{}' is not index{}value", options.path, line_number,
                  CutAtCharacter(word, 40), options.index_separator)
      .WithNote("a libsvm line is: label index:value index:value ..., indexes from 1");
}

// One row: its entries by ascending column and its label.
Status ParseRow(const ReadOptions& options, std::string_view line, int64_t line_number,
                std::vector<Entry>* entries, double* label) {
  entries->clear();
  const std::string_view first = TakeWord(&line);
  const std::optional<double> value = ParseNumber(first);
  if (!value)
    return DataLoss("cannot read '{}': line {}: the label '{}' is not a number", options.path, line_number,
                    CutAtCharacter(first, 40));
  *label = *value;
  TakeQuery(&line);
  bool ascending = true;
  while (!line.empty()) {
    std::string_view pair = line;
    int64_t index = 0;
    double cell = 0;
    if (!TakePair(&line, options.index_separator, &index, &cell) || index < 1 ||
        index >= std::numeric_limits<int32_t>::max())
      return Malformed(options, line_number, TakeWord(&pair));
    if (cell == 0) continue;
    if (!entries->empty() && entries->back().column >= index - 1) ascending = false;
    entries->push_back({static_cast<int32_t>(index - 1), cell});
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

// Calls visit(entries, label) for every row of a chunk, in order, until it says false. `lines` counts the
// lines taken, those without a row too.
template <typename Visit>
Status VisitRows(const ReadOptions& options, std::string_view chunk, int64_t lines_before, int64_t* lines,
                 const Visit& visit) {
  std::vector<Entry> entries;
  for (*lines = 0; !chunk.empty();) {
    const std::string_view line = Content(TakeLine(&chunk));
    ++*lines;
    if (line.empty()) continue;
    double label = 0;
    HEDDLE_RETURN_IF_ERROR(ParseRow(options, line, lines_before + *lines, &entries, &label));
    if (!visit(entries, label)) return OkStatus();
  }
  return OkStatus();
}

// Calls body(chunk number, text of the chunk, line count) for every wanted chunk, in parallel; keeps the
// first failure of the file.
template <typename Wanted, typename Body>
Status VisitChunks(const ReadOptions& options, const TextFile& text, const std::vector<int64_t>& offsets,
                   const std::vector<int64_t>& lines, const Wanted& wanted, const Body& body) {
  FirstFailure failure;
  ParallelFor(static_cast<int64_t>(offsets.size()) - 1, 1, [&](int64_t begin, int64_t end) {
    CountedBytes buffer;
    for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
      if (IsCancelled(options.cancelled)) return;
      if (!wanted(c)) continue;
      const Result<std::string_view> piece = text.Read(offsets[c], offsets[c + 1] - offsets[c], &buffer);
      if (!piece.ok()) return failure.Add(lines[c], piece.status());
      int64_t taken = 0;
      if (const Status status = body(c, *piece, &taken); !status.ok())
        return failure.Add(lines[c] + taken, status);
    }
  });
  if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
  return failure.status();
}

}  // namespace

bool LooksLikeLibsvm(std::string_view line, std::string_view index_separator) {
  line = Content(line);
  if (!ParseNumber(TakeWord(&line))) return false;
  TakeQuery(&line);
  if (line.empty()) return false;
  int64_t index = 0;
  double value = 0;
  while (!line.empty())
    if (!TakePair(&line, index_separator, &index, &value)) return false;
  return true;
}

Result<FileSummary> SummarizeLibsvm(const ReadOptions& options, const TextFile& text) {
  FileSummary summary;
  HEDDLE_ASSIGN_OR_RETURN(LineChunks chunks, CutLines(text, 0));
  const size_t count = chunks.offsets.size();
  std::vector<int64_t> rows(count, 0), widest(count, 0), stored(count, 0);
  HEDDLE_RETURN_IF_ERROR(VisitChunks(
      options, text, chunks.offsets, chunks.lines, [](size_t) { return true; },
      [&](size_t c, std::string_view chunk, int64_t* lines) {
        return VisitRows(options, chunk, chunks.lines[c], lines,
                         [&](const std::vector<Entry>& entries, double label) {
                           if (!entries.empty())
                             widest[c] = std::max<int64_t>(widest[c], entries.back().column + 1);
                           stored[c] += static_cast<int64_t>(entries.size()) + (label != 0);
                           ++rows[c + 1];
                           return true;
                         });
      }));
  for (size_t c = 1; c < count; ++c) rows[c] += rows[c - 1];
  if (rows.back() == 0) return DataLoss("cannot read '{}': it holds no data", options.path);
  summary.chunk_offsets = std::move(chunks.offsets);
  summary.chunk_lines = std::move(chunks.lines);
  summary.chunk_rows = std::move(rows);
  const int64_t features = *std::max_element(widest.begin(), widest.end());
  if (options.columns != kUnknown && options.columns < features)
    return DataLoss("cannot read '{}': it has index {}, cols={} was asked for", options.path, features,
                    options.columns);
  if (options.rows != kUnknown && options.rows != summary.chunk_rows.back())
    return DataLoss("cannot read '{}': rows={} was asked for, the file has {}", options.path, options.rows,
                    summary.chunk_rows.back());
  summary.shape = {summary.chunk_rows.back(), (options.columns != kUnknown ? options.columns : features) + 1};
  summary.stored = 0;
  for (int64_t in_chunk : stored) summary.stored += in_chunk;
  summary.format = ChooseFormat(summary.shape, summary.stored);
  return summary;
}

Result<Matrix> ReadLibsvm(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
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
  const auto keep = [&](const std::vector<Entry>& entries, double label, Piece* piece) {
    if (!entries.empty() && entries.back().column >= columns - 1) fits = false;
    for (const Entry& entry : entries) {
      piece->indexes.push_back(entry.column);
      piece->values.push_back(entry.value);
    }
    if (label != 0) {
      piece->indexes.push_back(static_cast<int32_t>(columns - 1));
      piece->values.push_back(label);
    }
    piece->row_sizes.push_back(static_cast<int64_t>(entries.size()) + (label != 0));
  };
  HEDDLE_RETURN_IF_ERROR(VisitChunks(
      options, text, summary.chunk_offsets, summary.chunk_lines,
      [&](size_t c) {
        return std::max(row_begin, summary.chunk_rows[c]) < std::min(row_end, summary.chunk_rows[c + 1]);
      },
      [&](size_t c, std::string_view chunk, int64_t* lines) {
        int64_t row = summary.chunk_rows[c];
        const int64_t end = std::min(row_end, summary.chunk_rows[c + 1]);
        HEDDLE_RETURN_IF_ERROR(VisitRows(options, chunk, summary.chunk_lines[c], lines,
                                         [&](const std::vector<Entry>& entries, double label) {
                                           if (row >= row_begin) keep(entries, label, &pieces[c]);
                                           return ++row < end;
                                         }));
        return row == end ? OkStatus() : ItChanged(options);
      }));
  if (!fits) return ItChanged(options);
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
