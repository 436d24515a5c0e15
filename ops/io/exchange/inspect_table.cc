// SPDX-License-Identifier: Apache-2.0
#include "ops/io/exchange/inspect_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text/utf8.h"
#include "ops/io/formats/csv/csv_frame_rows.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/records.h"

namespace heddle::ops {
namespace {

constexpr size_t kMostWarnings = 8;  // of one kind

// How often something was met, and where first.
struct Met {
  int64_t times = 0;
  int64_t line = 0;
  void Add(int64_t at) {
    if (times++ == 0) line = at;
  }
};

std::string_view Plural(int64_t count) { return count == 1 ? "" : "s"; }

// SystemDS writes what it knows of the columns of a frame in lines before the rows.
bool IsToldOfColumns(std::string_view line) { return line.starts_with("#Meta\u00b7"); }

class TableInspector {
 public:
  TableInspector(const ReadOptions& read, const InspectOptions& options, FileFacts* facts)
      : read_(read), options_(options), facts_(*facts) {}

  Status Run(Files& files) {
    HEDDLE_ASSIGN_OR_RETURN(const TextFile text, OpenText(read_, files));
    const QuoteGrammar grammar = QuoteGrammar::OfFields(read_);
    RecordReader reader(text, grammar);
    bool is_first = facts_.header;
    for (std::string_view record; reader.offset() < options_.bytes_looked_at && reader.Next(&record);
         line_ = reader.lines()) {
      LookAtRecord(record);
      if (is_first) {
        TakeNames(record);
        is_first = false;
      } else if (!IsToldOfColumns(record)) {
        TakeRow(record);
      }
    }
    HEDDLE_RETURN_IF_ERROR(reader.status());
    facts_.rows_looked_at = facts_.rows = rows_;
    facts_.looked_at_all = reader.offset() >= text.size();
    if (!facts_.looked_at_all) {
      ChunkLooks looks;
      HEDDLE_ASSIGN_OR_RETURN(const RecordChunks rest,
                              CutRecords(read_, text, reader.offset(), grammar, looks));
      facts_.rows += rest.records.back();
    }
    Finish();
    facts_.columns = fields_;
    return OkStatus();
  }

 private:
  void TakeNames(std::string_view record) {
    const int64_t columns = CountFields(LineBody(record, read_), read_);
    FieldCutter fields(LineBody(record, read_), read_);
    std::string room;
    for (std::string_view field; fields.Next(&field); ++fields_) {
      LookAtQuotes(field, columns);
      if (fields_ >= FileFacts::kMostColumns) continue;
      names_.emplace_back(ContentOf(field, &room));
      looks_.emplace_back();
    }
  }

  void TakeRow(std::string_view record) {
    if (IsBlankLine(record, read_)) {
      ++open_blank_lines_;  // At the end they mean nothing.
      if (const int64_t row = rows_ + blank_lines_++; row < options_.rows_shown)
        blank_rows_shown_.push_back(row);
      return;
    }
    if (open_blank_lines_ > 0) blank_.Add(line_ + 1 - open_blank_lines_);
    open_blank_lines_ = 0;
    ++rows_;
    const int64_t row = fields_ <= 1 ? rows_ + blank_lines_ : rows_;
    FieldCutter fields(LineBody(record, read_), read_);
    std::string room;
    int64_t count = 0;
    const bool is_first = rows_ == 1 && !facts_.header;
    const int64_t columns = is_first ? CountFields(LineBody(record, read_), read_) : 0;
    const bool is_shown = static_cast<int64_t>(facts_.first_rows.size()) < options_.rows_shown;
    if (is_shown) facts_.first_rows.emplace_back();
    for (std::string_view field; fields.Next(&field); ++count) {
      LookAtQuotes(field, columns);
      Field cell = {.text = ContentOf(field, &room), .quoted = IsQuoted(field)};
      if (IsMissing(field, read_)) cell = {};
      if (count < FileFacts::kMostColumns) {
        while (static_cast<int64_t>(looks_.size()) <= count) looks_.emplace_back();
        looks_[static_cast<size_t>(count)].Add(cell, row);
        if (is_shown) facts_.first_rows.back().emplace_back(cell.text);
      } else {
        others_.Add(cell, row);
      }
    }
    if (fields_ == 0) fields_ = count;
    if (count != fields_) {
      ragged_.Add(line_ + 1);
      if (ragged_.times == 1) fields_of_ragged_ = count;
    }
  }

  // Programs that write every field in quotes say nothing of types by them. `columns` counts those of the
  // first line, for its fields; else 0.
  void LookAtQuotes(std::string_view field, int64_t columns) {
    if (field.empty() || any_without_quotes_) return;
    if (!IsQuoted(field)) {
      any_without_quotes_ = true;
    } else if (!any_needless_quotes_) {
      std::string room;
      const std::string_view text = ContentOf(field, &room);
      any_needless_quotes_ = !NeedsQuotes(text, read_.separator) &&
                             !(columns > 0 && MisleadsGuess(text, read_.separator, columns));
    }
  }

  void LookAtRecord(std::string_view record) {
    ++(record.ends_with('\r') ? with_carriage_return_ : without_);
    if (!IsUtf8(record)) foreign_.Add(line_ + 1);
  }

  // In a frame of one column a blank line is a missing cell, wherever it stands.
  void TakeBlankRows() {
    facts_.facts[0].missing += blank_lines_;
    facts_.rows += blank_lines_;
    facts_.rows_looked_at += blank_lines_;
    std::vector<std::vector<std::string>>& shown = facts_.first_rows;
    for (const int64_t row : blank_rows_shown_)
      shown.insert(shown.begin() + row, std::vector<std::string>(1));
    if (static_cast<int64_t>(shown.size()) > options_.rows_shown)
      shown.resize(static_cast<size_t>(options_.rows_shown));
    blank_ = {};
  }

  void Finish() {
    if (facts_.is_frame && fields_ == 0 && blank_lines_ > 0) {
      fields_ = 1;
      looks_.emplace_back();
    }
    const bool all_quoted = any_needless_quotes_ && !any_without_quotes_;
    const Quotes quotes = all_quoted ? Quotes::kNothing : Quotes::kTextsOfColumn;
    const ColumnFacts others = others_.Facts(quotes);
    for (size_t i = 0; i < looks_.size(); ++i) {
      facts_.facts.push_back(looks_[i].Facts(quotes));
      std::string& name = facts_.facts.back().name;
      if (i < names_.size()) name = names_[i];
      if (name.empty()) name = fmt::format("C{}", i + 1);
    }
    const bool has_texts = std::any_of(facts_.facts.begin(), facts_.facts.end(),
                                       [](const ColumnFacts& column) { return column.HasTexts(); });
    facts_.is_frame |= has_texts || others.HasTexts();
    if (facts_.is_frame && MayRowsBeBlank(static_cast<size_t>(fields_))) TakeBlankRows();
    int64_t cells = 0;
    facts_.nonzeros = 0;
    const auto count = [&](const ColumnFacts& column) {
      cells += column.cells();
      facts_.nonzeros += column.numbers() - column.zeros;
    };
    for (const ColumnFacts& column : facts_.facts) count(column);
    count(others);
    if (facts_.is_frame) facts_.nonzeros = kUnknown;
    Warn();
  }

  void Warn() {
    std::vector<std::string>& warnings = facts_.warnings;
    if (ragged_.times > 0)
      warnings.push_back(fmt::format("{} line{} not the {} field{} of the first: line {} has {}",
                                     ragged_.times, ragged_.times == 1 ? " has" : "s have", fields_,
                                     Plural(fields_), ragged_.line, fields_of_ragged_));
    if (blank_.times > 0)
      warnings.push_back(fmt::format("blank lines between rows, the first is line {}", blank_.line));
    if (foreign_.times > 0)
      warnings.push_back(fmt::format("{} line{} no UTF-8, the first is line {}: Latin-1?", foreign_.times,
                                     foreign_.times == 1 ? " is" : "s are", foreign_.line));
    if (with_carriage_return_ > 0 && without_ > 1)
      warnings.push_back(fmt::format("{} lines end with CR LF, {} with LF", with_carriage_return_, without_));
    else if (with_carriage_return_ > 0)
      warnings.push_back("lines end with CR LF, as Windows writes them");
    const ColumnFacts* const last = facts_.facts.empty() ? nullptr : &facts_.facts.back();
    if (last != nullptr && fields_ > 1 && static_cast<int64_t>(facts_.facts.size()) == fields_ && rows_ > 0 &&
        last->missing == last->cells())
      warnings.push_back(fmt::format("column {} is empty: every line ends with a separator", fields_));
    WarnOfColumns(&facts_);
  }

  const ReadOptions& read_;
  const InspectOptions& options_;
  FileFacts& facts_;
  std::vector<std::string> names_;
  std::vector<ColumnLook> looks_;
  ColumnLook others_;  // Columns beyond those that have facts of their own.
  int64_t line_ = 0;   // Lines before the record that is looked at.
  int64_t rows_ = 0, fields_ = 0, fields_of_ragged_ = 0;  // Rows without blank lines.
  int64_t blank_lines_ = 0, open_blank_lines_ = 0;        // Where rows begin; those behind the last row.
  std::vector<int64_t> blank_rows_shown_;  // Which rows they are in a frame of one column, ascending.
  int64_t with_carriage_return_ = 0, without_ = 0;
  bool any_without_quotes_ = false, any_needless_quotes_ = false;
  Met ragged_, blank_, foreign_;
};

}  // namespace

Status InspectTable(const ReadOptions& read, const InspectOptions& options, Files& files, FileFacts* facts) {
  return TableInspector(read, options, facts).Run(files);
}

void WarnOfColumns(FileFacts* facts) {
  std::map<std::string, size_t> seen;
  std::map<std::string_view, size_t> told;
  const auto warn = [&](std::string_view kind, std::string text) {
    if (told[kind]++ < kMostWarnings) facts->warnings.push_back(std::move(text));
  };
  for (size_t i = 0; i < facts->facts.size(); ++i) {
    const ColumnFacts& column = facts->facts[i];
    const std::string what = column.name == fmt::format("C{}", i + 1)
                                 ? fmt::format("column {}", i + 1)
                                 : fmt::format("column {} ({})", i + 1, EscapeForTerminal(column.name));
    if (const auto [first, is_new] = seen.emplace(column.name, i); !is_new)
      warn("names", fmt::format("columns {} and {} are both called '{}'", first->second + 1, i + 1,
                                EscapeForTerminal(column.name)));
    if (column.kind() == "mixed") {
      const int64_t words = column.cells() - column.missing - column.numbers();
      warn("mixed",
           fmt::format("{} has {} number{} and {} text{}: '{}' in row {}, '{}' in row {}", what,
                       column.numbers(), Plural(column.numbers()), words, Plural(words), column.first_number,
                       column.row_of_number, column.first_text, column.row_of_text));
    }
    if (column.quoted_numbers > 0)
      warn("quoted", fmt::format("{} has {} number{} in quotes", what, column.quoted_numbers,
                                 Plural(column.quoted_numbers)));
    if (column.kind() == "date")
      warn("dates", fmt::format("{} has dates, which are read as texts: '{}'", what, column.first_text));
    if (column.inexact > 0)
      warn("digits",
           fmt::format("{} has {} whole number{} that a double does not hold, which lose{} digits: {}", what,
                       column.inexact, Plural(column.inexact), column.inexact == 1 ? "s" : "",
                       column.first_inexact));
    if (column.LostZeros() > 0)
      warn("zeros in front",
           fmt::format("{} has {} number{} with zeros in front, which are lost: {}", what,
                       column.zeros_in_front, Plural(column.zeros_in_front), column.first_zeros_in_front));
    if (column.nan > 0) warn("nan", fmt::format("{} has {} NaN", what, column.nan));
    if (column.infinite > 0)
      warn("infinite",
           fmt::format("{} has {} infinite number{}", what, column.infinite, Plural(column.infinite)));
  }
  for (const auto& [kind, times] : told)
    if (times > kMostWarnings)
      facts->warnings.push_back(fmt::format("and {} more such warnings ({})", times - kMostWarnings, kind));
}

}  // namespace heddle::ops
