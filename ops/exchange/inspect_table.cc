// SPDX-License-Identifier: Apache-2.0
#include "ops/exchange/inspect_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text/utf8.h"
#include "ops/files/text_file.h"
#include "ops/formats/fields.h"
#include "ops/formats/lines.h"

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

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

// SystemDS writes what it knows of the columns of a frame in lines before the rows.
bool IsToldOfColumns(std::string_view line) { return line.starts_with("#Meta\u00b7"); }

class TableInspector {
 public:
  TableInspector(const ReadOptions& read, const InspectOptions& options, FileFacts* facts)
      : read_(read), options_(options), facts_(*facts) {}

  Status Run(Files& files) {
    HEDDLE_ASSIGN_OR_RETURN(const TextFile text, TextFile::Open(read_.path, files));
    LineReader reader(text);
    bool is_first = facts_.header;
    for (std::string_view line; reader.offset() < options_.bytes_looked_at && reader.Next(&line);) {
      ++line_;
      if (is_first) {
        TakeNames(line);
        is_first = false;
      } else if (!IsToldOfColumns(line)) {
        TakeRow(line);
      }
    }
    HEDDLE_RETURN_IF_ERROR(reader.status());
    facts_.rows_looked_at = facts_.rows = rows_;
    facts_.looked_at_all = reader.offset() >= text.size();
    if (!facts_.looked_at_all) HEDDLE_RETURN_IF_ERROR(CountRest(text, reader.offset()));
    facts_.columns = fields_;
    Finish();
    return OkStatus();
  }

 private:
  void TakeNames(std::string_view line) {
    LookAtLine(line);
    FieldReader fields = ReaderOf(line);
    for (Field field; fields.Next(&field); ++fields_)
      if (fields_ < FileFacts::kMostColumns) facts_.facts.emplace_back().name = std::string(field.text);
  }

  void TakeRow(std::string_view line) {
    LookAtLine(line);
    if (IsBlankLine(line, read_)) {
      ++open_blank_lines_;  // At the end they mean nothing.
      return;
    }
    if (open_blank_lines_ > 0) blank_.Add(line_ - open_blank_lines_);
    open_blank_lines_ = 0;
    ++rows_;
    FieldReader fields = ReaderOf(line);
    int64_t count = 0;
    const bool is_shown = static_cast<int64_t>(facts_.first_rows.size()) < options_.rows_shown;
    if (is_shown) facts_.first_rows.emplace_back();
    for (Field field; fields.Next(&field); ++count) {
      if (IsMissing(field.text, read_)) field.text = {};
      if (count < FileFacts::kMostColumns) {
        while (static_cast<int64_t>(facts_.facts.size()) <= count) facts_.facts.emplace_back();
        facts_.facts[static_cast<size_t>(count)].Add(field, rows_);
        if (is_shown) facts_.first_rows.back().emplace_back(field.text);
      } else {
        others_.Add(field, rows_);
      }
    }
    has_separators_in_quotes_ |= fields.met_separator_in_quotes();
    if (fields_ == 0) fields_ = count;
    if (count != fields_) {
      ragged_.Add(line_);
      if (ragged_.times == 1) fields_of_ragged_ = count;
    }
  }

  FieldReader ReaderOf(std::string_view line) const {
    return {LineBody(line, read_), read_.separator, read_.any_blanks};
  }

  void LookAtLine(std::string_view line) {
    ++(line.ends_with('\r') ? with_carriage_return_ : without_);
    if (!IsUtf8(line)) foreign_.Add(line_);
  }

  // The lines of a part of the file that is not looked at.
  Status CountRest(const TextFile& text, int64_t begin) {
    constexpr int64_t kPiece = 1 << 20;
    CountedBytes buffer;
    bool ends_in_line = false;
    for (int64_t at = begin; at < text.size(); at += kPiece) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string_view piece,
                              text.Read(at, std::min(kPiece, text.size() - at), &buffer));
      facts_.rows += std::count(piece.begin(), piece.end(), '\n');
      ends_in_line = !piece.ends_with('\n');
    }
    facts_.rows += ends_in_line;
    return OkStatus();
  }

  void Finish() {
    for (size_t i = 0; i < facts_.facts.size(); ++i)
      if (facts_.facts[i].name.empty()) facts_.facts[i].name = fmt::format("C{}", i + 1);
    const bool has_texts = std::any_of(facts_.facts.begin(), facts_.facts.end(),
                                       [](const ColumnFacts& column) { return column.HasTexts(); });
    facts_.is_frame |= has_texts || others_.HasTexts() || has_separators_in_quotes_;
    int64_t cells = 0;
    facts_.nonzeros = 0;
    const auto count = [&](const ColumnFacts& column) {
      cells += column.cells();
      facts_.nonzeros += column.numbers() - column.zeros;
    };
    for (const ColumnFacts& column : facts_.facts) count(column);
    count(others_);
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
  ColumnFacts others_;  // Columns beyond those that have facts of their own.
  int64_t line_ = 0, rows_ = 0, fields_ = 0, open_blank_lines_ = 0, fields_of_ragged_ = 0;
  int64_t with_carriage_return_ = 0, without_ = 0;
  bool has_separators_in_quotes_ = false;
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
