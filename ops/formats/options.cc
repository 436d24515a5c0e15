// SPDX-License-Identifier: Apache-2.0
// What the script, the .mtd beside a file, and the file's own beginning say about its format.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/double_text.h"
#include "ops/formats/file_format.h"
#include "ops/formats/lines.h"

namespace heddle::ops {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 4> kFormatNames = {"text", "mm", "csv", "libsvm"};
// Fields that DML metadata may have; those without an effect here are accepted and ignored.
constexpr std::array<std::string_view, 20> kMetadataFields = {
    "data_type",     "value_type", "schema",      "rows",   "cols",    "nnz",     "rows_in_block",
    "cols_in_block", "format",     "header",      "sep",    "fill",    "default", "naStrings",
    "sparse",        "indSep",     "description", "author", "created", "privacy"};

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// naStrings joins several texts with U+00B7.
std::vector<std::string> SplitMissingTexts(std::string_view text) {
  std::vector<std::string> parts;
  constexpr std::string_view kDot = "\u00b7";
  while (!text.empty()) {
    const size_t end = text.find(kDot);
    parts.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + kDot.size());
  }
  return parts;
}

Status ApplyOption(std::string_view name, const Scalar& value, ReadOptions* options) {
  if (name == "format") {
    HEDDLE_ASSIGN_OR_RETURN(options->format, ParseFileFormat(value.ToText()));
  } else if (name == "data_type") {
    const std::optional<DataType> type = ParseDataType(Lower(value.ToText()));
    if (!type)
      return InvalidArgument("read: data_type is matrix, frame, scalar or list, not '{}'", value.ToText());
    if (*type == DataType::kFrame || *type == DataType::kList)
      return Unimplemented("read of a {} is part of DML but Heddle does not run it yet", Name(*type));
    options->data_type = *type;
  } else if (name == "value_type") {
    const std::string text = Lower(value.ToText());
    const std::optional<ValueType> type = text == "int" ? ValueType::kInteger : ParseValueType(text);
    if (!type)
      return InvalidArgument("read: value_type is double, int, string or boolean, not '{}'", value.ToText());
    options->value_type = *type;
  } else if (name == "rows" || name == "cols" || name == "nnz") {
    const int64_t count = value.AsInteger();
    int64_t& field = name == "rows" ? options->rows : name == "cols" ? options->columns : options->nonzeros;
    if (count < 0) return OkStatus();
    if (field != kUnknown && field != count && name != "nnz")
      return InvalidArgument("read: {}={} contradicts '{}.mtd', which says {}", name, count, options->path,
                             field);
    field = count;
  } else if (name == "header") {
    options->header = value.AsBoolean();
  } else if (name == "sep") {
    options->separator = value.ToText();
  } else if (name == "fill") {
    options->fill = value.AsBoolean();
  } else if (name == "default") {
    options->default_value =
        value.IsString() ? ParseDouble(value.AsString()).value_or(NAN) : value.AsDouble();
  } else if (name == "naStrings") {
    options->missing_texts = SplitMissingTexts(value.ToText());
  } else if (name == "indSep") {
    options->index_separator = value.ToText();
  }
  return OkStatus();
}

Status ReadMetadata(Files& files, ReadOptions* options) {
  const std::string path = options->path + ".mtd";
  if (!files.Exists(path)) return OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, files.Open(path));
  const Json json = Json::parse(file->bytes(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return DataLoss("cannot read '{}': it is not a JSON object", path);
  for (const auto& [name, value] : json.items()) {
    if (std::find(kMetadataFields.begin(), kMetadataFields.end(), name) == kMetadataFields.end())
      return DataLoss("cannot read '{}': '{}' is not a name of DML metadata", path, name);
    Scalar scalar;
    if (value.is_string())
      scalar = value.get<std::string>();
    else if (value.is_boolean())
      scalar = value.get<bool>();
    else if (value.is_number_integer())
      scalar = value.get<int64_t>();
    else if (value.is_number())
      scalar = value.get<double>();
    else
      return DataLoss("cannot read '{}': '{}' has no plain value", path, name);
    // Some writers put numbers and booleans in quotes.
    if (scalar.IsString() && (name == "rows" || name == "cols" || name == "nnz"))
      scalar = ParseDouble(scalar.AsString()).value_or(-1);
    if (scalar.IsString() && (name == "header" || name == "fill")) scalar = scalar.AsBoolean();
    if (Status status = ApplyOption(name, scalar, options); !status.ok())
      return Status(status.code() == StatusCode::kUnimplemented ? status.code() : StatusCode::kDataLoss,
                    fmt::format("cannot read '{}': {}", path, status.message()));
  }
  return OkStatus();
}

bool IsNumber(std::string_view field) { return ParseDouble(field).has_value(); }

// The separator of a table without metadata: a comma, semicolon or tab where the first line has one, else
// blanks.
std::string SniffSeparator(std::string_view line) {
  for (const char* separator : {",", ";", "\t"})
    if (line.find(separator) != std::string_view::npos) return separator;
  return line.find(' ') != std::string_view::npos ? " " : ",";
}

bool LooksLikeLibsvm(std::string_view line, std::string_view index_separator) {
  // label, then index:value pairs only, at least one
  bool first = true;
  int pairs = 0;
  while (!line.empty()) {
    const size_t end = line.find_first_of(" ,\t");
    const std::string_view word = line.substr(0, end);
    line = end == std::string_view::npos ? std::string_view() : line.substr(end + 1);
    if (word.empty()) continue;
    if (first) {
      if (!IsNumber(word)) return false;
      first = false;
      continue;
    }
    const size_t colon = word.find(index_separator);
    if (colon == std::string_view::npos || !IsNumber(word.substr(0, colon)) ||
        !IsNumber(word.substr(colon + index_separator.size())))
      return false;
    ++pairs;
  }
  return pairs > 0;
}

bool HasSuffix(const std::string& path, std::string_view suffix) {
  std::string lower = Lower(path);
  if (lower.ends_with(".gz")) lower.resize(lower.size() - 3);
  return lower.ends_with(suffix);
}

Status SniffContent(Files& files, ReadOptions* options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, files.Open(options->path));
  std::string_view rest = file->bytes();
  const std::string_view first = Trim(TakeLine(&rest));
  const std::string_view second = Trim(TakeLine(&rest));
  if (!options->format) {
    if (first.starts_with("%%MatrixMarket"))
      options->format = FileFormat::kMatrixMarket;
    else if (HasSuffix(options->path, ".csv") || HasSuffix(options->path, ".tsv"))
      options->format = FileFormat::kCsv;
    else if (LooksLikeLibsvm(first, options->index_separator))
      options->format = FileFormat::kLibsvm;
    else if (HasSuffix(options->path, ".ijv"))
      options->format = FileFormat::kText;
    else
      options->format = FileFormat::kCsv;
  }
  if (*options->format == FileFormat::kCsv) {
    if (options->separator.empty()) options->separator = SniffSeparator(first);
    if (!options->header) {
      // A first line of words above a line that starts with a number.
      const auto field = [&](std::string_view line) {
        return Trim(line.substr(0, line.find(options->separator)));
      };
      const bool words = !first.empty() && !field(first).empty() && !IsNumber(field(first)) &&
                         std::find(options->missing_texts.begin(), options->missing_texts.end(),
                                   field(first)) == options->missing_texts.end();
      options->header = words && !second.empty() && IsNumber(field(second));
    }
  }
  return OkStatus();
}

}  // namespace

std::string_view Name(FileFormat format) { return kFormatNames[static_cast<size_t>(format)]; }

Result<FileFormat> ParseFileFormat(std::string_view name) {
  const std::string lower = Lower(name);
  for (size_t i = 0; i < kFormatNames.size(); ++i)
    if (kFormatNames[i] == lower) return static_cast<FileFormat>(i);
  if (lower == "matrixmarket" || lower == "mtx") return FileFormat::kMatrixMarket;
  for (std::string_view known :
       {"binary", "compressed", "proto", "parquet", "jsonl", "hdf5", "cog", "delta", "federated"})
    if (lower == known)
      return Unimplemented(
          "format '{}' is part of DML but Heddle does not read or write it yet; use csv, text, mm or libsvm",
          lower);
  return InvalidArgument("unknown file format '{}'; Heddle reads and writes csv, text, mm and libsvm", name);
}

Result<ReadOptions> ResolveReadOptions(const Node& node, const std::string& path, Files& files) {
  ReadOptions options;
  options.path = path;
  if (path.empty()) return NotFound("cannot read '': the path is empty");
  HEDDLE_RETURN_IF_ERROR(ReadMetadata(files, &options));
  const bool described = options.format.has_value();
  for (const auto& [name, value] : node.attributes)
    HEDDLE_RETURN_IF_ERROR(ApplyOption(name, value, &options));
  if (options.data_type == DataType::kScalar) return options;  // one line, no format
  // With a format given, DML's defaults hold; without one the file itself is asked.
  if (options.format == FileFormat::kCsv && (described || node.FindAttribute("format") != nullptr)) {
    if (options.separator.empty()) options.separator.assign(1, ',');
    if (!options.header) options.header = false;
    return options;
  }
  if (!options.format || *options.format == FileFormat::kCsv)
    HEDDLE_RETURN_IF_ERROR(SniffContent(files, &options));
  return options;
}

Result<WriteOptions> ResolveWriteOptions(const Node& node) {
  WriteOptions options;
  for (const auto& [name, value] : node.attributes) {
    if (name == "format") {
      HEDDLE_ASSIGN_OR_RETURN(options.format, ParseFileFormat(value.ToText()));
    } else if (name == "sep") {
      options.separator = value.ToText();
    } else if (name == "indSep") {
      options.index_separator = value.ToText();
    } else if (name == "header") {
      options.header = value.AsBoolean();
    } else if (name == "sparse") {
      options.sparse = value.AsBoolean();
    } else if (name == "description") {
      options.description = value.ToText();
    }
  }
  return options;
}

}  // namespace heddle::ops
