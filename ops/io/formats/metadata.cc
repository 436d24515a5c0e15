// SPDX-License-Identifier: Apache-2.0
// The .mtd beside a file (language reference 4.3).
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/text/double_text.h"
#include "ops/io/files/text_file.h"
#include "ops/io/formats/options.h"
#include "ops/text/lenient_json.h"

namespace heddle::ops {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostBytes = int64_t{16} << 20;

// What the value of a field must be.
enum class FieldKind : uint8_t { kText, kCount, kFlag, kMissingTexts, kSchema, kAnything };

struct MetadataField {
  std::string_view name;
  FieldKind kind;
};

// Those that say nothing about a matrix or scalar of numbers may hold any JSON: older programs wrote objects.
constexpr std::array<MetadataField, 21> kFields = {{
    {"data_type", FieldKind::kText},
    {"value_type", FieldKind::kText},
    {"schema", FieldKind::kSchema},
    {"rows", FieldKind::kCount},
    {"cols", FieldKind::kCount},
    {"nnz", FieldKind::kCount},
    {"rows_in_block", FieldKind::kAnything},
    {"cols_in_block", FieldKind::kAnything},
    {"format", FieldKind::kText},
    {"header", FieldKind::kFlag},
    {"sep", FieldKind::kText},
    {"fill", FieldKind::kFlag},
    {"default", FieldKind::kText},
    {"naStrings", FieldKind::kMissingTexts},
    {"sparse", FieldKind::kAnything},
    {"indSep", FieldKind::kText},
    {"dataset", FieldKind::kText},
    {"description", FieldKind::kAnything},
    {"author", FieldKind::kAnything},
    {"created", FieldKind::kAnything},
    {"privacy", FieldKind::kAnything},
}};

// Some writers put numbers and booleans in quotes.
std::optional<Scalar> ToCount(const Json& value) {
  if (value.is_number_integer()) return Scalar(value.get<int64_t>());
  const std::optional<double> number = value.is_string()   ? ParseDouble(value.get_ref<const std::string&>())
                                       : value.is_number() ? value.get<double>()
                                                           : std::optional<double>();
  // Doubles count exactly up to 2^53.
  if (!number || *number != static_cast<double>(TruncateToInteger(*number)) || *number > 0x1p53)
    return std::nullopt;
  return Scalar(TruncateToInteger(*number));
}

std::optional<Scalar> ToFlag(const Json& value) {
  if (value.is_boolean()) return Scalar(value.get<bool>());
  const std::string word = value.is_string() ? Lower(value.get_ref<const std::string&>()) : "";
  if (word != "true" && word != "false") return std::nullopt;
  return Scalar(word == "true");
}

std::optional<Scalar> ToPlain(const Json& value) {
  if (value.is_string()) return Scalar(value.get<std::string>());
  if (value.is_boolean()) return Scalar(value.get<bool>());
  if (value.is_number_integer()) return Scalar(value.get<int64_t>());
  if (value.is_number()) return Scalar(value.get<double>());
  return std::nullopt;
}

// One text, in which U+00B7 may stand between several, or an array of texts.
std::optional<Scalar> ToMissingTexts(const Json& value) {
  if (!value.is_array()) return ToPlain(value);
  std::string joined;
  for (const Json& text : value) {
    if (!text.is_string()) return std::nullopt;
    joined += (joined.empty() ? "" : "\u00b7") + text.get_ref<const std::string&>();
  }
  return Scalar(joined);
}

std::optional<Scalar> ToScalar(const Json& value, FieldKind kind) {
  switch (kind) {
    case FieldKind::kCount: return ToCount(value);
    case FieldKind::kFlag: return ToFlag(value);
    case FieldKind::kMissingTexts: return ToMissingTexts(value);
    case FieldKind::kText:
    case FieldKind::kSchema:
    case FieldKind::kAnything: break;
  }
  return ToPlain(value);
}

std::string_view Wanted(FieldKind kind) {
  if (kind == FieldKind::kCount) return "a whole number";
  if (kind == FieldKind::kFlag) return "true or false";
  return kind == FieldKind::kMissingTexts ? "a text or an array of texts" : "a plain value";
}

}  // namespace

Status ReadMetadata(Files& files, ReadOptions* options) {
  const std::string path = options->path + ".mtd";
  if (!files.Exists(path)) return OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path, kMostBytes, files));
  const Json json = Json::parse(StrictJson(text), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return DataLoss("cannot read '{}': it is not a JSON object", path);
  for (const auto& [name, value] : json.items()) {
    const auto field =
        std::find_if(kFields.begin(), kFields.end(),
                     [&name = name](const MetadataField& known) { return known.name == name; });
    if (field == kFields.end())
      return DataLoss("cannot read '{}': '{}' is not a name of DML metadata", path, name);
    if (field->kind == FieldKind::kAnything || value.is_null()) continue;
    // Only frames have one that means something.
    if (field->kind == FieldKind::kSchema && !value.is_string()) continue;
    const std::optional<Scalar> scalar = ToScalar(value, field->kind);
    if (!scalar) return DataLoss("cannot read '{}': '{}' is not {}", path, name, Wanted(field->kind));
    if (Status status = ApplyReadOption(name, *scalar, options); !status.ok())
      return Status(status.code() == StatusCode::kUnimplemented ? status.code() : StatusCode::kDataLoss,
                    fmt::format("cannot read '{}': {}", path, status.message()));
  }
  return OkStatus();
}

FileType FileTypeInMetadata(std::string_view metadata) {
  const Json json = Json::parse(StrictJson(metadata), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {};
  ReadOptions options;
  for (const char* name : {"data_type", "value_type"}) {
    const auto value = json.find(name);
    if (value == json.end() || !value->is_string()) continue;
    if (!ApplyReadOption(name, Scalar(value->get<std::string>()), &options).ok()) return {};
  }
  return {options.data_type, options.value_type};
}

}  // namespace heddle::ops
