// SPDX-License-Identifier: Apache-2.0
// libsvm, also called svmlight: "label index:value index:value ..." per row. Indexes begin at 1, or at 0
// where the file has an index 0 or zero_based= says so. The label becomes the last column.
#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>
#include <vector>

#include "core/text/utf8.h"
#include "ops/io/formats/chunk_looks.h"
#include "ops/io/formats/entry_rows.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/read_chunks.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

// The largest index: columns of sparse matrices are 32-bit numbers, and there is one more for the label.
constexpr int64_t kMostIndex = std::numeric_limits<int32_t>::max() - 1;

struct Row {
  double label = 0;
  std::vector<Entry> entries;  // Their columns are indexes as the file has them, ascending.
  bool has_index_0 = false;    // also where the cell is 0
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
  const char* at = line->data();
  const char* const end = at + line->size();
  if (!TakePlainInteger(&at, end, index) || colon.size() != 1 || at == end || *at != colon[0]) return false;
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

constexpr char kForm[] = "a libsvm line is: label index:value index:value ...";

Status Malformed(const ReadOptions& options, int64_t line_number, std::string_view word) {
  return DataLoss("cannot read '{}': line {}: '{}' is not index{}value", options.path, line_number,
                  ShownInLine(word, 40), options.index_separator)
      .WithNote(kForm);
}

Status CheckIndex(const ReadOptions& options, int64_t line_number, int64_t index) {
  if (index > kMostIndex)
    return DataLoss("cannot read '{}': line {}: index {} is too large, it is {} at most", options.path,
                    line_number, index, kMostIndex);
  if (index < 0)
    return DataLoss("cannot read '{}': line {}: index {} is negative", options.path, line_number, index);
  if (index == 0 && options.zero_based == false)
    return DataLoss("cannot read '{}': line {}: index 0, and zero_based=FALSE says that they begin at 1",
                    options.path, line_number);
  return OkStatus();
}

// The first word of a line: its label. Several labels, or none, are what other programs write for tasks that
// have no such thing as the label.
Status TakeLabel(const ReadOptions& options, int64_t line_number, std::string_view* line, double* label) {
  const std::string_view all = *line;
  const std::string_view first = TakeWord(line);
  const std::optional<double> value = ParseNumber(first);
  if (!value) {
    std::string_view rest = all;
    int64_t index = 0;
    double cell = 0;
    if (TakePair(&rest, options.index_separator, &index, &cell))
      return DataLoss("cannot read '{}': line {}: it has no label, it begins with '{}'", options.path,
                      line_number, ShownInLine(first, 40))
          .WithNote(kForm);
    return DataLoss("cannot read '{}': line {}: the label '{}' is not a number", options.path, line_number,
                    ShownInLine(first, 40));
  }
  *label = *value;
  // "1,3 2:0.5": a number behind a comma that is no index.
  if (first.size() == all.size() || all[first.size()] != ',') return OkStatus();
  std::string_view rest = *line, pair = *line;
  const std::string_view second = TakeWord(&rest);
  int64_t index = 0;
  double cell = 0;
  if (ParseNumber(second) && !TakePair(&pair, options.index_separator, &index, &cell))
    return DataLoss("cannot read '{}': line {}: it has several labels, '{}' and '{}'; a row has one",
                    options.path, line_number, ShownInLine(first, 40), ShownInLine(second, 40));
  return OkStatus();
}

Status ParseRow(const ReadOptions& options, std::string_view line, int64_t line_number, Row* row) {
  row->entries.clear();
  row->has_index_0 = false;
  HEDDLE_RETURN_IF_ERROR(TakeLabel(options, line_number, &line, &row->label));
  TakeQuery(&line);
  bool ascending = true;
  while (!line.empty()) {
    std::string_view pair = line;
    int64_t index = 0;
    double cell = 0;
    if (!TakePair(&line, options.index_separator, &index, &cell))
      return Malformed(options, line_number, TakeWord(&pair));
    HEDDLE_RETURN_IF_ERROR(CheckIndex(options, line_number, index));
    row->has_index_0 |= index == 0;
    if (cell == 0) continue;
    if (!row->entries.empty() && row->entries.back().column >= index) ascending = false;
    row->entries.push_back({static_cast<int32_t>(index), cell});
  }
  if (ascending) return OkStatus();
  std::stable_sort(row->entries.begin(), row->entries.end(),
                   [](const Entry& a, const Entry& b) { return a.column < b.column; });
  for (size_t i = 1; i < row->entries.size(); ++i)
    if (row->entries[i].column == row->entries[i - 1].column)
      return DataLoss("cannot read '{}': line {}: index {} is given twice", options.path, line_number,
                      row->entries[i].column);
  return OkStatus();
}

// Calls visit(row) for every row of a chunk, in order, until it says false. `lines` counts the
// lines taken, those without a row too.
template <typename Visit>
Status VisitRows(const ReadOptions& options, std::string_view chunk, int64_t lines_before, int64_t* lines,
                 const Visit& visit) {
  Row row;
  for (*lines = 0; !chunk.empty();) {
    const std::string_view line = Content(TakeLine(&chunk));
    ++*lines;
    if (line.empty()) continue;
    HEDDLE_RETURN_IF_ERROR(ParseRow(options, line, lines_before + *lines, &row));
    if (!visit(row)) return OkStatus();
  }
  return OkStatus();
}

bool LooksLikePair(std::string_view line, std::string_view index_separator) {
  int64_t index = 0;
  double value = 0;
  return TakePair(&line, index_separator, &index, &value);
}

int64_t StoredOf(const Row& row) { return static_cast<int64_t>(row.entries.size()) + (row.label != 0); }

}  // namespace

bool LooksLikeLibsvm(std::string_view line, std::string_view index_separator) {
  line = Content(line);
  // SystemDS has commas between label and pairs, "1,2:0.5"; several labels, "1,3 2:0.5", which the reader
  // refuses by name, are followed by a blank.
  const auto is_behind_comma = [&line] { return line.data()[-1] == ','; };
  int labels = 0;
  do {
    if (!ParseNumber(TakeWord(&line))) return false;
    ++labels;
  } while (is_behind_comma() && !LooksLikePair(line, index_separator));
  if (labels > 1 && is_behind_comma()) return false;
  TakeQuery(&line);
  if (line.empty()) return false;
  int64_t index = 0;
  double value = 0;
  while (!line.empty())
    if (!TakePair(&line, index_separator, &index, &value)) return false;
  return true;
}

Result<FileSummary> SummarizeLibsvm(const ReadOptions& options, const TextFile& text, ChunkLooks& looks) {
  FileSummary summary;
  struct ChunkRows {
    int64_t rows = 0;
    int64_t stored = 0;
    int64_t last_index = 0;
    int64_t has_index_0 = 0;  // 1: it has one.
  };
  const auto look_at_chunk = [&](size_t, std::string_view chunk, int64_t lines_before, ChunkRows* found,
                                 int64_t* lines) {
    return VisitRows(options, chunk, lines_before, lines, [&](const Row& row) {
      if (!row.entries.empty())
        found->last_index = std::max<int64_t>(found->last_index, row.entries.back().column);
      found->has_index_0 |= row.has_index_0 ? 1 : 0;
      found->stored += StoredOf(row);
      ++found->rows;
      return true;
    });
  };
  HEDDLE_ASSIGN_OR_RETURN(ChunkLooks::Lines<ChunkRows> looked,
                          looks.LookAtLines<ChunkRows>(options, text, 0, 0, look_at_chunk));
  summary.chunk_offsets = std::move(looked.chunks.offsets);
  summary.chunk_lines = std::move(looked.chunks.lines);
  summary.chunk_rows.push_back(0);
  summary.chunk_stored.push_back(0);
  int64_t last_index = 0, has_index_0 = 0;
  for (const ChunkRows& chunk : looked.records) {
    summary.chunk_rows.push_back(summary.chunk_rows.back() + chunk.rows);
    summary.chunk_stored.push_back(summary.chunk_stored.back() + chunk.stored);
    last_index = std::max(last_index, chunk.last_index);
    has_index_0 |= chunk.has_index_0;
  }
  summary.stored = summary.chunk_stored.back();
  if (summary.chunk_rows.back() == 0) return DataLoss("cannot read '{}': it holds no data", options.path);
  summary.first_index = options.zero_based.value_or(has_index_0 != 0) ? 0 : 1;
  const int64_t features = std::max<int64_t>(0, last_index - summary.first_index + 1);
  if (options.columns != kUnknown && options.columns < features)
    return DataLoss("cannot read '{}': it has index {}, and indexes begin at {}; cols={} was asked for",
                    options.path, last_index, summary.first_index, options.columns);
  if (options.rows != kUnknown && options.rows != summary.chunk_rows.back())
    return DataLoss("cannot read '{}': rows={} was asked for, the file has {}", options.path, options.rows,
                    summary.chunk_rows.back());
  summary.shape = {summary.chunk_rows.back(), (options.columns != kUnknown ? options.columns : features) + 1};
  summary.format = ChooseFormat(summary.shape, summary.stored);
  return summary;
}

Result<Matrix> ReadLibsvm(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                          int64_t row_begin, int64_t row_end) {
  const auto label_column = static_cast<int32_t>(summary.shape.columns - 1);
  return ReadEntryRows(
      options, summary, text, row_begin, row_end,
      [&](size_t c, std::string_view chunk, int64_t* lines, const auto& take) -> Status {
        bool fits = true;
        HEDDLE_RETURN_IF_ERROR(VisitRows(options, chunk, summary.chunk_lines[c], lines, [&](Row& row) {
          for (Entry& entry : row.entries) entry.column -= static_cast<int32_t>(summary.first_index);
          // The label would be below an index that the first look has not met.
          fits = row.entries.empty() || row.entries.back().column < label_column;
          if (row.label != 0) row.entries.push_back({label_column, row.label});
          return fits && take(row.entries);
        }));
        return fits ? OkStatus() : ItChanged(options);
      });
}

}  // namespace heddle::ops
