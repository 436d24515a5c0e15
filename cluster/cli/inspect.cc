// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cluster/cli/file_options.h"
#include "cluster/cli/report.h"
#include "cluster/cli/script_input.h"
#include "cluster/cli/verb.h"
#include "core/text/double_text.h"
#include "core/text/utf8.h"
#include "ops/io/exchange/inspect_file.h"

namespace heddle::cluster::cli {
namespace {

using Json = nlohmann::ordered_json;
using ops::ColumnFacts;
using ops::FileFacts;

constexpr size_t kMostShown = 40;  // columns in the text; the object has all
constexpr size_t kMostWidth = 24;  // of a cell in it

constexpr Option kOptions[] = {
    {"format", Option::Kind::kValue, "NAME", "what it is, where that cannot be seen"},
    {"header", Option::Kind::kValue, "BOOL", "whether line 1 of a csv file holds names: TRUE or FALSE"},
    {"sep", Option::Kind::kValue, "TEXT", "what separates the fields of a csv file"},
    {"dataset", Option::Kind::kValue, "NAME", "which of the arrays of the file"},
    {"transposed", Option::Kind::kFlag, "", "with rows and columns of an array exchanged"},
    {"rows", Option::Kind::kValue, "N", "rows to show (default 5)"},
    {"whole", Option::Kind::kFlag, "", "look at all of it, not at the first 64 MB"},
    {"memory", Option::Kind::kValue, "SIZE", "most memory of the process"},
    {"json", Option::Kind::kFlag, "", "print one JSON object"}};

bool HasRange(const ColumnFacts& column) { return column.least <= column.greatest; }

std::string Number(double number) {
  std::string text;
  AppendDouble(number, &text);
  return text;
}

// The least or greatest number of a column: an integer where all are.
std::string Limit(const ColumnFacts& column, double number) {
  if (!HasRange(column)) return "";
  const bool is_integer = column.kind() == "int" && ops::IsExactInteger(number);
  return is_integer ? std::to_string(static_cast<int64_t>(number)) : Number(number);
}

Json JsonOfLimit(const ColumnFacts& column, double number) {
  // JSON has no infinite numbers.
  if (!std::isfinite(number)) return Number(number);
  if (column.kind() == "int" && ops::IsExactInteger(number)) return static_cast<int64_t>(number);
  return number;
}

std::string Short(const std::string& text) {
  const std::string shown = EscapeForTerminal(text);
  return shown.size() <= kMostWidth ? shown : std::string(CutAtCharacter(shown, kMostWidth - 3)) + "...";
}

std::string Size(int64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  if (bytes < 10'000'000) return fmt::format("{} kB", bytes / 1000);
  return fmt::format("{} MB", bytes / 1'000'000);
}

// Columns of texts side by side, as wide as their widest.
std::string Aligned(const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& line : lines)
    for (size_t i = 0; i < line.size(); ++i) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], line[i].size());
    }
  std::string text;
  for (const std::vector<std::string>& line : lines) {
    std::string row = " ";
    for (size_t i = 0; i < line.size(); ++i) row += fmt::format(" {:<{}} ", line[i], widths[i]);
    text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string ColumnTable(const FileFacts& facts) {
  std::vector<std::vector<std::string>> lines = {{"column", "name", "type", "missing", "least", "greatest"}};
  for (size_t i = 0; i < std::min(facts.facts.size(), kMostShown); ++i) {
    const ColumnFacts& column = facts.facts[i];
    lines.push_back({std::to_string(i + 1), Short(column.name), std::string(column.kind()),
                     std::to_string(column.missing), Limit(column, column.least),
                     Limit(column, column.greatest)});
  }
  std::string text = Aligned(lines);
  if (facts.columns > static_cast<int64_t>(kMostShown))
    text += fmt::format("  and {} more columns\n", facts.columns - static_cast<int64_t>(kMostShown));
  return text;
}

std::string ToText(const FileFacts& facts) {
  std::string text = fmt::format("{}: {} ({}), {}\n", EscapeForTerminal(facts.path), Name(facts.format),
                                 facts.why, Size(facts.bytes));
  text += fmt::format("{} of {} row{} and {} column{}", facts.is_frame ? "frame" : "matrix", facts.rows,
                      facts.rows == 1 ? "" : "s", facts.columns, facts.columns == 1 ? "" : "s");
  const double cells = static_cast<double>(facts.rows_looked_at) * static_cast<double>(facts.columns);
  if (facts.nonzeros != kUnknown && cells > 0)
    text += fmt::format(", {} non-zeros{} ({:.3g} of all cells)", facts.nonzeros,
                        facts.looked_at_all ? "" : " in the rows looked at",
                        static_cast<double>(facts.nonzeros) / cells);
  text += "\n";
  if (facts.format == ops::FileFormat::kCsv)
    text += fmt::format("{} ({}), fields are separated by {}\n",
                        facts.header ? "names in line 1" : "no names", facts.why_header,
                        facts.separator.empty()   ? "blanks"
                        : facts.separator == "\t" ? "tabs"
                                                  : "'" + EscapeForTerminal(facts.separator) + "'");
  if (!facts.column_groups.empty()) text += fmt::format("stored by column groups: {}\n", facts.column_groups);
  if (!facts.looked_at_all)
    text += fmt::format("of these only the first {} rows were looked at (--whole looks at all)\n",
                        facts.rows_looked_at);
  text += "\n" + ColumnTable(facts);
  if (!facts.first_rows.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const std::vector<std::string>& row : facts.first_rows) {
      rows.emplace_back();
      for (size_t i = 0; i < std::min(row.size(), kMostShown); ++i) rows.back().push_back(Short(row[i]));
    }
    text += "\nfirst rows:\n" + Aligned(rows);
  }
  if (!facts.warnings.empty()) text += "\n";
  for (const std::string& warning : facts.warnings) text += "warning: " + EscapeForTerminal(warning) + "\n";
  if (facts.how_to_read.empty())
    return text + "\nno call of read() gives it: " + EscapeForTerminal(facts.why_not_read) + "\n";
  return text + "\nread it: " + EscapeForTerminal(facts.how_to_read) + "\n";
}

Json ToJson(const ColumnFacts& column) {
  Json json = {{"name", column.name},         {"type", column.kind()},         {"missing", column.missing},
               {"integers", column.integers}, {"fractions", column.fractions}, {"booleans", column.booleans},
               {"dates", column.dates},       {"texts", column.texts},         {"nan", column.nan},
               {"infinite", column.infinite}, {"zeros", column.zeros}};
  if (HasRange(column)) {
    json["least"] = JsonOfLimit(column, column.least);
    json["greatest"] = JsonOfLimit(column, column.greatest);
  }
  return json;
}

std::string ToJson(const FileFacts& facts) {
  Json json = {{"file", facts.path},
               {"bytes", facts.bytes},
               {"format", Name(facts.format)},
               {"why", facts.why},
               {"data_type", facts.is_frame ? "frame" : "matrix"},
               {"rows", facts.rows},
               {"columns", facts.columns}};
  if (facts.nonzeros != kUnknown) json["nonzeros"] = facts.nonzeros;
  if (facts.format == ops::FileFormat::kCsv) {
    json["header"] = facts.header;
    json["separator"] = facts.separator;
  }
  if (!facts.column_groups.empty()) json["column_groups"] = facts.column_groups;
  json["rows_looked_at"] = facts.rows_looked_at;
  json["metadata"] = facts.has_metadata;
  json["schema"] = Json::array();
  for (const ColumnFacts& column : facts.facts) json["schema"].push_back(ToJson(column));
  json["first_rows"] = facts.first_rows;
  json["warnings"] = facts.warnings;
  json["read"] = facts.how_to_read.empty() ? Json() : Json(facts.how_to_read);
  if (facts.how_to_read.empty()) json["why_not_read"] = facts.why_not_read;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<FileFacts> Inspect(const Arguments& arguments) {
  HEDDLE_RETURN_IF_ERROR(LimitMemoryOfFiles(arguments));
  if (arguments.positional().size() != 1)
    return Usage("inspect takes one file{}", arguments.positional().empty() ? "" : ", not several");
  ops::InspectOptions options;
  if (const auto format = arguments.Value("format")) {
    HEDDLE_ASSIGN_OR_RETURN(options.format, ReadFormat("format", *format));
  }
  HEDDLE_ASSIGN_OR_RETURN(options.header, ReadHeader(arguments));
  options.separator = arguments.Value("sep");
  options.dataset = arguments.Value("dataset");
  options.transposed = arguments.Has("transposed");
  if (arguments.Has("whole")) options.bytes_looked_at = INT64_MAX;
  HEDDLE_ASSIGN_OR_RETURN(options.rows_shown, arguments.Integer("rows", options.rows_shown, 0, 1'000'000));
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(WorkingDirectory());
  return ops::InspectFile(arguments.positional()[0], options, *files);
}

int Run(const Arguments& arguments) {
  const Result<FileFacts> facts = Inspect(arguments);
  if (!facts.ok()) return ReportOutcome(arguments, facts.status());
  PrintOutput(arguments.Has("json") ? ToJson(*facts) : ToText(*facts));
  return 0;
}

}  // namespace

const Verb kInspectVerb = {"inspect",
                           "tell what is in a file of data, and what looks wrong in it",
                           "inspect [OPTIONS] FILE",
                           std::vector<Option>(std::begin(kOptions), std::end(kOptions)),
                           "heddle inspect data.csv",
                           Run,
                           /*takes_words=*/true};

}  // namespace heddle::cluster::cli
