// SPDX-License-Identifier: Apache-2.0
// What a file is whose format nobody says.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/text/utf8.h"
#include "ops/io/files/packing.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/format_table.h"
#include "ops/io/formats/json_line.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/matrix_market.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/records.h"

namespace heddle::ops {
namespace {

// Lines that are looked at: a table whose first hundred lines look like cells is an error anyway.
constexpr size_t kLinesLookedAt = 100;
constexpr size_t kBytesLookedAt =
    1 << 18;  // and the line that goes beyond, so that there are two in any case

struct Beginning {
  std::string text;                // Whole lines, and
  std::vector<std::string> lines;  // each without its newline; none where the file is empty.
  std::string_view first() const { return lines.empty() ? std::string_view() : std::string_view(lines[0]); }
};

Result<Beginning> ReadBeginning(const std::string& path, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const TextFile text, TextFile::Open(path, files));
  Beginning beginning;
  LineReader reader(text);
  for (std::string_view line; beginning.lines.size() < kLinesLookedAt && reader.Next(&line);) {
    beginning.lines.emplace_back(line);
    beginning.text.append(line).push_back('\n');
    if (beginning.text.size() > kBytesLookedAt && beginning.lines.size() > 1) break;
  }
  HEDDLE_RETURN_IF_ERROR(reader.status());
  return beginning;
}

// The first records, when the separator is known. One that goes on behind what is looked at is cut there.
std::vector<std::string_view> FirstRecords(const Beginning& beginning, const ReadOptions& options,
                                           size_t most) {
  const QuoteGrammar grammar = QuoteGrammar::OfFields(options);
  std::vector<std::string_view> records;
  for (std::string_view rest = beginning.text; !rest.empty() && records.size() < most;)
    records.push_back(TakeRecord(&rest, grammar));
  return records;
}

// The format of a file that is no text: its first bytes tell, or those that its format looks at.
Result<std::optional<FileFormat>> FormatByMark(const std::string& path, Files& files) {
  constexpr int64_t kBytesOfMarks = 16;
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, files.Open(path));
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view beginning,
                          file->Read(0, std::min(file->size(), kBytesOfMarks), &buffer));
  if (IsBinaryOfSystemDs(beginning)) return std::optional(FileFormat::kBinary);
  if (const FormatEntry* const entry = FindFormatByMark(beginning); entry != nullptr)
    return std::optional(entry->format);
  for (const FormatEntry& entry : FormatTable()) {
    if (entry.is_one == nullptr) continue;
    HEDDLE_ASSIGN_OR_RETURN(const bool is_one, entry.is_one(path, *file));
    if (is_one) return std::optional(entry.format);
  }
  return std::optional<FileFormat>();
}

bool HasSuffix(const std::string& path, std::string_view suffix) {
  return Lower(WithoutPackedEnding(path)).ends_with(suffix);
}

bool BeginsWithLibsvm(const Beginning& beginning, const ReadOptions& options) {
  // Comments may come first, and rows of zeros, which are a label alone.
  for (const std::string_view line : beginning.lines) {
    const std::string_view content = Trim(line.substr(0, line.find('#')));
    if (content.empty() || ParseNumber(content)) continue;
    return LooksLikeLibsvm(content, options.index_separator);
  }
  return false;
}

// Whether each line is "row column value" with blanks between; `repeats` tells whether two lines have one row
// and column. A line of tabs alone is a row of empty fields.
bool LooksLikeCells(const Beginning& beginning, bool* repeats) {
  bool any = false;
  std::set<std::pair<int64_t, int64_t>> places;
  for (const std::string_view line : beginning.lines) {
    std::string_view rest = Trim(line);
    if (rest.empty() && line.find('\t') != std::string::npos) return false;
    if (rest.empty() || rest.front() == '%') continue;
    int64_t row = 0, column = 0;
    if (!TakeInteger(&rest, &row) || !TakeInteger(&rest, &column)) return false;
    const std::optional<double> value = ParseFortranNumber(TakeBlankWord(&rest));
    if (!value || !Trim(rest).empty()) return false;
    // "0 0 0" is how a matrix without cells is written.
    const bool empty = row == 0 && column == 0 && *value == 0 && beginning.lines.size() == 1;
    if ((row < 1 || column < 1) && !empty) return false;
    *repeats |= !places.emplace(row, column).second;
    any = true;
  }
  return any;
}

// The name says it, or each line is an object.
bool LooksLikeJsonl(const Beginning& beginning, const std::string& path) {
  const FormatEntry* const named = FindFormatByEnding(path);
  if (named != nullptr) return named->format == FileFormat::kJsonl;
  if (beginning.lines.empty()) return false;
  for (const std::string_view line : beginning.lines) {
    JsonLine json(line);
    std::string_view name;
    JsonValue value;
    if (Trim(line).empty()) continue;
    if (json.Begin() != '{') return false;
    while (json.Next(&name, &value)) {
    }
    if (!json.fault().empty()) return false;
  }
  return !Trim(beginning.first()).empty();
}

// "row column text", as a frame in format text has it.
bool LooksLikeFrameCell(std::string_view line) {
  std::string_view rest = line;
  int64_t row = 0, column = 0;
  // Rows -1 and -2 tell of columns (ops/io/formats/text/text_frame.cc).
  return TakeInteger(&rest, &row) && TakeInteger(&rest, &column) && (row >= 1 || row == -1 || row == -2) &&
         column >= 1 && rest.starts_with(' ');
}

bool LooksLikeFrameCells(const Beginning& beginning) {
  const QuoteGrammar grammar = QuoteGrammar::OfCells();
  for (std::string_view rest = beginning.text; !rest.empty();)
    if (!LooksLikeFrameCell(TakeRecord(&rest, grammar))) return false;
  return !beginning.text.empty();
}

// "row column value" lines are a table of three columns, too. DML takes every file without a format for
// cells. Where tabs, the name of the file, one size without the other or a cell that comes twice speak for a
// table, nothing is guessed.
Result<FileFormat> ChooseCellsOrTable(const Beginning& beginning, const ReadOptions& options) {
  if (!options.separator.empty() || options.header) return FileFormat::kCsv;  // Only tables have these.
  bool repeats = false;
  if (!LooksLikeCells(beginning, &repeats)) return FileFormat::kCsv;
  const bool table_by_name = HasSuffix(options.path, ".csv") || HasSuffix(options.path, ".tsv") ||
                             beginning.first().find('\t') != std::string_view::npos;
  if (options.columns != kUnknown && options.columns != 3) return FileFormat::kText;
  const bool has_rows = options.rows != kUnknown, has_columns = options.columns != kUnknown;
  if (!table_by_name && has_rows && has_columns) return FileFormat::kText;
  if (!table_by_name && !has_rows && !has_columns && !repeats) return FileFormat::kText;
  return DataLoss("cannot read '{}': its lines are cells (row column value) or rows of a table of 3 columns",
                  options.path)
      .WithNote("say which: format=\"text\" for cells, format=\"csv\", sep=\"" +
                std::string(beginning.first().find('\t') != std::string_view::npos ? "\\t" : " ") +
                "\" for a table");
}

// Octave's own first line is a mark; others leave it out.
bool LooksLikeOctave(const Beginning& beginning) {
  return beginning.lines.size() > 1 && beginning.lines[0].starts_with("# name: ") &&
         beginning.lines[1].starts_with("# type: ");
}

Status ChooseFormatOf(const Beginning& beginning, ReadOptions* options) {
  options->guessed = true;
  const bool named_table = HasSuffix(options->path, ".csv") || HasSuffix(options->path, ".tsv");
  if (IsMatrixMarketBanner(beginning.first())) {
    options->format = FileFormat::kMatrixMarket;
  } else if (LooksLikeOctave(beginning)) {
    options->format = FileFormat::kOctave;
  } else if (!named_table && BeginsWithLibsvm(beginning, *options)) {
    options->format = FileFormat::kLibsvm;
  } else if (HasSuffix(options->path, ".ijv")) {
    options->format = FileFormat::kText;
  } else if (LooksLikeJsonl(beginning, options->path)) {
    options->format = FileFormat::kJsonl;
  } else {
    HEDDLE_ASSIGN_OR_RETURN(options->format, ChooseCellsOrTable(beginning, *options));
  }
  return OkStatus();
}

// The separator of a table: a comma, semicolon or tab where its first line that is not blank has one outside
// of quotes, else any number of blanks.
void GuessSeparator(std::string_view text, ReadOptions* options) {
  std::string bare;  // The first line without what is in quotes.
  bool is_quoted = false;
  for (const char c : text) {
    if (c == '"') is_quoted = !is_quoted;
    if (c == '\n' && !is_quoted) {
      // Lines of blanks alone tell nothing; a line of tabs is a row of empty fields.
      if (!Trim(bare).empty() || bare.find('\t') != std::string::npos) break;
      bare.clear();
      continue;
    }
    if (!is_quoted) bare.push_back(c);
  }
  for (const char separator : kGuessedSeparators) {
    if (bare.find(separator) == std::string::npos) continue;
    options->separator = separator;
    return;
  }
  options->any_blanks = Trim(bare).find(' ') != std::string_view::npos;
  options->separator = options->any_blanks ? " " : ",";
}

bool IsNumber(std::string_view content, const ReadOptions& options) {
  return ParseCell(content).has_value() || IsMissing(content, options);
}

// A field by its number, from 1; 0: there is none.
struct NumberedField {
  int64_t number = 0;
  std::string_view text;
};

// The first field of the first line that is taken for a name, for a number, and that is a number in quotes
// above one without.
struct FirstLine {
  NumberedField name, plain, quoted;
};

FirstLine LookAtFirstLine(const std::vector<std::string_view>& records, const ReadOptions& options) {
  FirstLine found;
  FieldCutter above(LineBody(records.empty() ? "" : records[0], options), options);
  FieldCutter below(LineBody(records.size() > 1 ? records[1] : "", options), options);
  std::string_view field, under;
  std::string room;
  for (int64_t number = 1; above.Next(&field); ++number) {
    const bool has_under = below.Next(&under);
    const std::string_view content = Trim(ContentOf(field, &room));
    if (content.empty()) continue;  // says nothing
    if (!IsNumber(content, options) && !IsMissing(field, options)) {
      if (found.name.number == 0) found.name = {number, field};
    } else if (IsQuoted(field) && has_under && !IsQuoted(under) && ParseNumber(under)) {
      if (found.quoted.number == 0) found.quoted = {number, field};
    } else if (found.plain.number == 0) {
      found.plain = {number, field};
    }
  }
  return found;
}

// Names are found only where nothing in the first line is a number. Years as names, or a word among numbers,
// may mean either.
Status GuessHeader(const Beginning& beginning, ReadOptions* options) {
  const std::vector<std::string_view> records = FirstRecords(beginning, *options, 2);
  const FirstLine found = LookAtFirstLine(records, *options);
  constexpr char kRemedy[] = "say header=TRUE if line 1 holds names, header=FALSE if it holds data";
  if (found.name.number > 0 && found.plain.number > 0)
    return DataLoss("cannot read '{}': line 1 has a name, field {}, '{}', and a number, field {}, '{}'",
                    options->path, found.name.number, ShownInLine(found.name.text, 40), found.plain.number,
                    ShownInLine(found.plain.text, 40))
        .WithNote(kRemedy)
        .WithNote("texts that mean a missing value go into naStrings=");
  if (found.name.number == 0 && found.quoted.number > 0)
    return DataLoss("cannot read '{}': line 1, field {}: {} may be a name, it has quotes that line 2 has not",
                    options->path, found.quoted.number, ShownInLine(found.quoted.text, 40))
        .WithNote(kRemedy);
  options->header = found.name.number > 0;
  if (!*options->header || records.size() < 2 || IsBlankLine(records[1], *options)) return OkStatus();
  // Names of some of the columns only would be those of the wrong ones.
  const int64_t names = CountFields(LineBody(records[0], *options), *options);
  const int64_t fields = CountFields(LineBody(records[1], *options), *options);
  if (names == fields) return OkStatus();
  return DataLoss("cannot read '{}': its first line has {} names, the next one {} fields", options->path,
                  names, fields)
      .WithNote("say header=TRUE to skip the first line as it is")
      .WithNote("write.table() of R gives names of rows a column without a name: write.csv() names it");
}

}  // namespace

Status GuessFormat(Files& files, ReadOptions* options) {
  if (!options->format) {
    HEDDLE_ASSIGN_OR_RETURN(options->format, FormatByMark(options->path, files));
    if (options->format) {
      options->guessed = true;
      return OkStatus();
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(const Beginning beginning, ReadBeginning(options->path, files));
  if (!options->format) HEDDLE_RETURN_IF_ERROR(ChooseFormatOf(beginning, options));
  if (*options->format != FileFormat::kCsv) return OkStatus();
  if (options->separator.empty()) GuessSeparator(beginning.text, options);
  return options->header ? OkStatus() : GuessHeader(beginning, options);
}

Status GuessFrameFormat(Files& files, ReadOptions* options) {
  options->guessed = true;
  HEDDLE_ASSIGN_OR_RETURN(options->format, FormatByMark(options->path, files));
  if (options->format) return OkStatus();
  options->format = FileFormat::kCsv;
  if (!options->separator.empty() || options->header) return OkStatus();  // Only tables have these.
  HEDDLE_ASSIGN_OR_RETURN(const Beginning beginning, ReadBeginning(options->path, files));
  if (LooksLikeJsonl(beginning, options->path)) {
    options->format = FileFormat::kJsonl;
  } else if (LooksLikeFrameCells(beginning)) {
    options->format = FileFormat::kText;
  }
  return OkStatus();
}

}  // namespace heddle::ops
