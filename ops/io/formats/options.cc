// SPDX-License-Identifier: Apache-2.0
// The options of read() and write(), by name.
#include "ops/io/formats/options.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/text/utf8.h"
#include "core/values/sizes.h"
#include "ops/base/whole_number.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/format_table.h"
#include "ops/io/formats/lines.h"

namespace heddle::ops {
namespace {

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

std::optional<ValueType> ParseReadValueType(std::string_view text) {
  const std::string lower = Lower(text);
  return lower == "int" ? ValueType::kInteger : ParseValueType(lower);
}

}  // namespace

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// TRUE or FALSE, also as a text: metadata of others have them in quotes.
Status TakeFlag(std::string_view op, std::string_view name, const Scalar& value, bool* flag) {
  const std::string text = Lower(value.ToText());
  if (value.IsString() && text != "true" && text != "false")
    return InvalidArgument("{}: {} is TRUE or FALSE, not '{}'", op, name, value.ToText());
  *flag = value.IsString() ? text == "true" : value.AsBoolean();
  return OkStatus();
}

Status ApplyReadOption(std::string_view name, const Scalar& value, ReadOptions* options) {
  if (name == "format") {
    HEDDLE_ASSIGN_OR_RETURN(options->format, ParseFileFormat(value.ToText()));
  } else if (name == "data_type") {
    const std::optional<DataType> type = ParseDataType(Lower(value.ToText()));
    if (!type)
      return InvalidArgument("read: data_type is matrix, frame, scalar or list, not '{}'", value.ToText());
    if (options->data_type_said && options->data_type != *type)
      return InvalidArgument("read: data_type={} contradicts '{}.mtd', which says {}", Name(*type),
                             options->path, Name(options->data_type));
    options->data_type = *type;
    options->data_type_said = true;
  } else if (name == "value_type") {
    const std::optional<ValueType> type = ParseReadValueType(value.ToText());
    if (type == ValueType::kUnknown) return OkStatus();  // of a list
    if (!type)
      return InvalidArgument("read: value_type is double, int, string or boolean, not '{}'", value.ToText());
    options->value_type = *type;
  } else if (name == "schema") {
    // What the metadata says holds, as in SystemDS.
    if (options->schema.empty()) options->schema = value.ToText();
  } else if (name == "rows" || name == "cols" || name == "nnz") {
    const std::optional<int64_t> given = WholeNumber(value);
    if (!given || *given > kMostLength)
      return InvalidArgument("read: {}={} is not a number that a matrix can have", name, value.ToText());
    const int64_t count = *given;
    int64_t& field = name == "rows" ? options->rows : name == "cols" ? options->columns : options->nonzeros;
    if (count < 0) return OkStatus();
    if (field != kUnknown && field != count && name != "nnz")
      return InvalidArgument("read: {}={} contradicts '{}.mtd', which says {}", name, count, options->path,
                             field);
    field = count;
  } else if (name == "header") {
    HEDDLE_RETURN_IF_ERROR(TakeFlag("read", name, value, &options->header.emplace()));
  } else if (name == "sep") {
    options->separator = value.ToText();
  } else if (name == "fill") {
    HEDDLE_RETURN_IF_ERROR(TakeFlag("read", name, value, &options->fill));
  } else if (name == "default") {
    const std::optional<double> number =
        value.IsString() ? ParseNumber(value.AsString()) : std::optional<double>(value.AsDouble());
    if (!number) return InvalidArgument("read: default is a number, not '{}'", value.ToText());
    options->default_value = *number;
  } else if (name == "naStrings") {
    options->missing_texts = SplitMissingTexts(value.ToText());
  } else if (name == "indSep") {
    options->index_separator = value.ToText();
  } else if (name == "zero_based") {
    HEDDLE_RETURN_IF_ERROR(TakeFlag("read", name, value, &options->zero_based.emplace()));
  } else if (name == "dataset") {
    options->dataset = value.ToText();
  } else if (name == "transposed") {
    HEDDLE_RETURN_IF_ERROR(TakeFlag("read", name, value, &options->transposed));
  }
  return OkStatus();
}

DataType FindDataTypeOfFile(std::string_view name) {
  const DataType type = ParseDataType(Lower(name)).value_or(DataType::kUnknown);
  return type == DataType::kTuple ? DataType::kUnknown : type;
}

FileType FileTypeOf(const Node& node) {
  FileType type;
  if (const Scalar* said = node.FindAttribute("data_type"); said != nullptr)
    type.data_type = ParseDataType(Lower(said->ToText())).value_or(DataType::kMatrix);
  if (const Scalar* said = node.FindAttribute("value_type"); said != nullptr)
    type.value_type = ParseReadValueType(said->ToText()).value_or(ValueType::kDouble);
  return type;
}

Result<std::vector<ColumnType>> ParseSchema(std::string_view text) {
  static constexpr std::pair<std::string_view, ColumnType> kNames[] = {
      {"string", ColumnType::kString},      {"double", ColumnType::kFloat64},
      {"fp64", ColumnType::kFloat64},       {"fp32", ColumnType::kFloat32},
      {"float", ColumnType::kFloat32},      {"int", ColumnType::kInteger64},
      {"int64", ColumnType::kInteger64},    {"int32", ColumnType::kInteger32},
      {"boolean", ColumnType::kBoolean},    {"bool", ColumnType::kBoolean},
      {"character", ColumnType::kCharacter}};
  std::vector<ColumnType> types;
  while (!Trim(text).empty()) {
    const size_t end = text.find(',');
    const std::string name = Lower(Trim(text.substr(0, end)));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const auto found = std::find_if(std::begin(kNames), std::end(kNames),
                                    [&](const auto& known) { return known.first == name; });
    if (found == std::end(kNames))
      return InvalidArgument("read: '{}' in the schema is no type of a column", name)
          .WithNote(
              "types are STRING, FP64, FP32, INT64, INT32, BOOLEAN and CHARACTER, or string, double, int "
              "and boolean");
    types.push_back(found->second);
  }
  if (types.empty()) return InvalidArgument("read: the schema names no type");
  return types;
}

Result<std::vector<ColumnType>> ColumnTypesOf(const ReadOptions& options, size_t columns) {
  if (options.schema.empty()) return std::vector<ColumnType>(columns, ColumnType::kString);
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ColumnType> types, ParseSchema(options.schema));
  if (types.size() == 1) types.assign(columns, types[0]);
  if (types.size() == columns) return types;
  return DataLoss("cannot read '{}': the schema has {} types, the file has {} columns", options.path,
                  types.size(), columns);
}

Status CheckSaidTypes(const ReadOptions& options, const Schema& found) {
  if (options.schema.empty()) return OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<ColumnType> said,
                          ColumnTypesOf(options, static_cast<size_t>(found.columns())));
  if (said == found.types) return OkStatus();
  return DataLoss("cannot read '{}': its columns have the types {}, the schema says others", options.path,
                  Schema{found.types, {}}.ToText());
}

namespace {

Status CheckFormatHolds(const ReadOptions& options) {
  if (!options.format) return OkStatus();
  const FormatEntry& entry = EntryOf(*options.format);
  const bool frame = options.data_type == DataType::kFrame;
  if (options.transposed && !entry.turns_arrays)
    return InvalidArgument("read: transposed= is of arrays, '{}' is in format '{}'", options.path, entry.name)
        .WithNote("t() transposes a matrix");
  if (frame ? entry.ReadsFrames() : entry.ReadsMatrices()) return OkStatus();
  const Status fault =
      InvalidArgument("read: no {} can be in format '{}'", frame ? "frame" : "matrix", entry.name);
  if (!frame)
    return fault.WithNote("it holds frames: say data_type=\"frame\", as.matrix() makes a matrix of one");
  return fault.WithNote("formats of frames are " + NamesOfFormats(DataType::kFrame));
}

}  // namespace

Result<ReadOptions> ResolveReadOptions(const Node& node, const std::string& path, Files& files) {
  ReadOptions options;
  options.path = path;
  if (path.empty()) return NotFound("cannot read '': the path is empty");
  HEDDLE_RETURN_IF_ERROR(ReadMetadata(files, &options));
  if (options.data_type == DataType::kList)
    return DataLoss("cannot read '{}': it is a list", path).WithNote("say data_type=\"list\"");
  const bool described = options.format.has_value();
  if (const Scalar* transposed = node.FindAttribute("transposed"); transposed != nullptr) {
    // Metadata tell the sizes in the file, the script those of what it gets.
    HEDDLE_RETURN_IF_ERROR(ApplyReadOption("transposed", *transposed, &options));
    if (options.transposed) std::swap(options.rows, options.columns);
  }
  for (const auto& [name, value] : node.attributes)
    HEDDLE_RETURN_IF_ERROR(ApplyReadOption(name, value, &options));
  if (options.data_type == DataType::kScalar) return options;  // one line, no format
  if (options.data_type == DataType::kFrame) {
    if (!options.format) HEDDLE_RETURN_IF_ERROR(GuessFrameFormat(files, &options));
    HEDDLE_RETURN_IF_ERROR(CheckFormatHolds(options));
    if (options.separator.empty()) options.separator.assign(1, ',');
    if (!options.header) options.header = false;
    if (!options.schema.empty()) HEDDLE_RETURN_IF_ERROR(ParseSchema(options.schema).status());
    return options;
  }
  // With a format given, DML's defaults hold; without one the file itself is asked.
  if (options.format == FileFormat::kCsv && (described || node.FindAttribute("format") != nullptr)) {
    if (options.separator.empty()) options.separator.assign(1, ',');
    if (!options.header) options.header = false;
    return options;
  }
  if (!options.format || *options.format == FileFormat::kCsv)
    HEDDLE_RETURN_IF_ERROR(GuessFormat(files, &options));
  HEDDLE_RETURN_IF_ERROR(CheckFormatHolds(options));
  return options;
}

Status CheckSeparators(const WriteOptions& options) {
  const bool is_libsvm = options.format == FileFormat::kLibsvm;
  if (!is_libsvm && options.format != FileFormat::kCsv) return OkStatus();
  const auto check = [](std::string_view name, std::string_view separator) {
    constexpr std::string_view kOfValues =
        "0123456789.+-EeNaInfityrulse";  // -1.5E-7, NaN, Infinity, true, false
    if (separator.empty()) return InvalidArgument("write: {} is empty: nothing would separate fields", name);
    if (separator.find_first_of(std::string_view("\"\n\r\0", 4)) != std::string_view::npos)
      return InvalidArgument("write: {} has a quote, a line end or a zero byte, which separate no fields",
                             name);
    if (separator.find_first_not_of(kOfValues) != std::string_view::npos) return OkStatus();
    return InvalidArgument("write: {}='{}' may be in a number or truth value: fields could not be told apart",
                           name, separator);
  };
  HEDDLE_RETURN_IF_ERROR(check("sep", options.separator));
  if (!is_libsvm) return OkStatus();
  HEDDLE_RETURN_IF_ERROR(check("indSep", options.index_separator));
  if (options.separator != options.index_separator) return OkStatus();
  return InvalidArgument("write: sep and indSep are both '{}': cells could not be told apart",
                         options.separator);
}

namespace {

Result<int64_t> TakeParts(const Scalar& value) {
  constexpr int64_t kMostParts = 100'000;  // Their numbers have five digits.
  const std::optional<int64_t> parts = WholeNumber(value);
  if (parts && *parts >= 1 && *parts <= kMostParts) return *parts;
  return InvalidArgument("write: parts is a number of files from 1 to {}, not {}", kMostParts,
                         ShownInLine(value.ToText(), 40));
}

}  // namespace

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
      HEDDLE_RETURN_IF_ERROR(TakeFlag("write", name, value, &options.header));
    } else if (name == "sparse") {
      HEDDLE_RETURN_IF_ERROR(TakeFlag("write", name, value, &options.sparse));
    } else if (name == "dataset") {
      options.dataset = value.ToText();
    } else if (name == "compression") {
      HEDDLE_RETURN_IF_ERROR(SetCompression(value.ToText(), &options));
    } else if (name == "parts") {
      HEDDLE_ASSIGN_OR_RETURN(options.parts, TakeParts(value));
    } else if (name == "description") {
      options.description = value.ToText();
    }
  }
  HEDDLE_RETURN_IF_ERROR(CheckSeparators(options));
  // A format that only the run tells is an input.
  const bool is_said =
      node.FindAttribute("format") != nullptr || node.inputs.size() < 3 || node.inputs[2] == kNoNode;
  if (is_said) HEDDLE_RETURN_IF_ERROR(CheckCompression(options.format, options));
  return options;
}

Status SetCompression(const std::string& text, WriteOptions* options) {
  const std::string lower = Lower(text);
  for (const Packing packing : {Packing::kNone, Packing::kGzip, Packing::kZstd})
    if (lower == Name(packing)) options->packing = packing;
  options->by_groups = lower == "groups";
  if (options->by_groups) options->packing = Packing::kNone;
  if (!options->packing)
    return InvalidArgument("write: compression is none, gzip, zstd or groups, not '{}'", text);
  return OkStatus();
}

Status CheckCompression(FileFormat format, const WriteOptions& options) {
  if (!options.by_groups || format == FileFormat::kBinary) return OkStatus();
  return InvalidArgument("write: compression=\"groups\" is of format=\"binary\", not of '{}'",
                         EntryOf(format).name);
}

}  // namespace heddle::ops
