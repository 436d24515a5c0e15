// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/spec.h"

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/double_text.h"
#include "core/utf8.h"
#include "ops/transform/spec_text.h"

namespace heddle::ops {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostCodes = int64_t{1} << 31;
constexpr std::array<std::string_view, 11> kKeys = {"K",      "bag_of_words", "bin",           "dummycode",
                                                    "hash",   "ids",          "impute",        "omit",
                                                    "recode", "udf",          "word_embedding"};

std::string_view NameOf(Encoder encoder) {
  switch (encoder) {
    case Encoder::kPassThrough: return "pass-through";
    case Encoder::kRecode: return "recode";
    case Encoder::kBin: return "bin";
    case Encoder::kHash: return "hash";
  }
  HEDDLE_CHECK(false, "every encoder has a name");
}

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Shown(const Json& value) { return std::string(CutAtCharacter(TextOf(value), 40)); }

std::optional<int64_t> WholeNumber(const Json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  const std::optional<double> number = value.is_string()   ? ParseDouble(value.get_ref<const std::string&>())
                                       : value.is_number() ? value.get<double>()
                                                           : std::optional<double>();
  if (!number || !(*number >= -0x1p53 && *number <= 0x1p53)) return std::nullopt;
  const auto whole = static_cast<int64_t>(*number);
  return static_cast<double>(whole) == *number ? std::optional(whole) : std::nullopt;
}

// Reads the keys of a spec into the columns that they speak of.
class SpecReader {
 public:
  SpecReader(std::string_view op, const Json& json, const Schema& schema)
      : op_(op), json_(json), schema_(schema) {
    spec_.columns.resize(schema.types.size());
  }

  Result<TransformSpec> Read() {
    HEDDLE_RETURN_IF_ERROR(CheckKeys());
    if (const auto ids = json_.find("ids"); ids != json_.end()) {
      if (!ids->is_boolean()) return InvalidArgument("{}: 'ids' of the spec is not true or false", op_);
      spec_.by_name = !ids->get<bool>();
    }
    HEDDLE_RETURN_IF_ERROR(ForColumns(
        "recode", [&](ColumnSpec& column, int64_t j) { return SetEncoder(Encoder::kRecode, j, &column); }));
    HEDDLE_RETURN_IF_ERROR(ForObjects("bin", [&](ColumnSpec& column, int64_t j, const Json& object) {
      return ReadBin(object, j, &column);
    }));
    HEDDLE_RETURN_IF_ERROR(ReadHash());
    // A column needs codes for its dummies.
    HEDDLE_RETURN_IF_ERROR(ForColumns("dummycode", [&](ColumnSpec& column, int64_t) {
      column.dummycode = true;
      if (column.encoder == Encoder::kPassThrough) column.encoder = Encoder::kRecode;
      return OkStatus();
    }));
    HEDDLE_RETURN_IF_ERROR(ForColumns("omit", [&](ColumnSpec& column, int64_t) {
      column.omit = true;
      return OkStatus();
    }));
    HEDDLE_RETURN_IF_ERROR(ForObjects("impute", [&](ColumnSpec& column, int64_t j, const Json& object) {
      return ReadImpute(object, j, &column);
    }));
    return std::move(spec_);
  }

 private:
  Status CheckKeys() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
        return InvalidArgument("{}: '{}' is no key of a spec", op_, CutAtCharacter(key, 40))
            .WithNote(
                "the keys are ids, recode, dummycode, bin, hash, K, impute, omit, word_embedding, "
                "bag_of_words and udf");
      if (key == "udf" || key == "word_embedding" || key == "bag_of_words")
        return Unimplemented("{}: the encoder '{}' does not run yet", op_, key);
    }
    return OkStatus();
  }

  // The number of the column from 0; that of a column beyond the last is not one.
  Result<int64_t> ColumnOf(std::string_view key, const Json& value) const {
    if (!spec_.by_name) {
      const std::optional<int64_t> id = WholeNumber(value);
      if (!id || *id < 1)
        return InvalidArgument("{}: '{}' in '{}' of the spec is no number of a column", op_, Shown(value),
                               key)
            .WithNote(id ? "columns are counted from 1" : "a spec without ids: true names columns");
      return *id - 1;
    }
    const std::string name = TextOf(value);
    for (int64_t j = 0; j < schema_.columns(); ++j)
      if (schema_.NameOf(j) == name) return j;
    return InvalidArgument("{}: the frame has no column '{}', which '{}' of the spec names", op_,
                           Shown(value), key)
        .WithNote(value.is_number() ? "with ids: true in the spec, columns are counted from 1"
                                    : NoteOfNames());
  }
  std::string NoteOfNames() const {
    constexpr int64_t kMost = 8;
    std::string names;
    for (int64_t j = 0; j < std::min(schema_.columns(), kMost); ++j)
      names.append(j == 0 ? "" : ", ").append(CutAtCharacter(schema_.NameOf(j), 40));
    return fmt::format("its columns are {}{}", names, schema_.columns() > kMost ? ", ..." : "");
  }

  Result<const Json*> List(std::string_view key) const {
    static const auto* const kNone = new Json(Json::array());
    const auto found = json_.find(key);
    if (found == json_.end()) return kNone;
    if (!found->is_array()) return InvalidArgument("{}: '{}' of the spec is not a list", op_, key);
    return &*found;
  }

  Status ForColumns(std::string_view key, const std::function<Status(ColumnSpec&, int64_t)>& read) {
    HEDDLE_ASSIGN_OR_RETURN(const Json* const list, List(key));
    for (const Json& value : *list) {
      HEDDLE_ASSIGN_OR_RETURN(const int64_t j, ColumnOf(key, value));
      if (j < schema_.columns()) HEDDLE_RETURN_IF_ERROR(read(spec_.columns[static_cast<size_t>(j)], j));
    }
    return OkStatus();
  }

  // Objects that name a column by "id" or "name" and say more about it.
  Status ForObjects(std::string_view key,
                    const std::function<Status(ColumnSpec&, int64_t, const Json&)>& read) {
    HEDDLE_ASSIGN_OR_RETURN(const Json* const list, List(key));
    const std::string_view by = spec_.by_name ? "name" : "id";
    for (const Json& object : *list) {
      if (!object.is_object() || !object.contains(by))
        return InvalidArgument("{}: an element of '{}' of the spec is not an object with '{}'", op_, key, by)
            .WithNote(spec_.by_name ? "with ids: true in the spec, columns are given by 'id'"
                                    : "without ids: true in the spec, columns are given by 'name'");
      HEDDLE_ASSIGN_OR_RETURN(const int64_t j, ColumnOf(key, object.at(by)));
      if (j < schema_.columns())
        HEDDLE_RETURN_IF_ERROR(read(spec_.columns[static_cast<size_t>(j)], j, object));
    }
    return OkStatus();
  }

  Status SetEncoder(Encoder encoder, int64_t j, ColumnSpec* column) const {
    if (column->encoder != Encoder::kPassThrough && column->encoder != encoder)
      return InvalidArgument("{}: column {} has two encoders, {} and {}", op_, schema_.NameOf(j),
                             NameOf(column->encoder), NameOf(encoder))
          .WithNote("a column is recoded, binned or hashed");
    column->encoder = encoder;
    return OkStatus();
  }

  Status ReadBin(const Json& object, int64_t j, ColumnSpec* column) const {
    HEDDLE_RETURN_IF_ERROR(SetEncoder(Encoder::kBin, j, column));
    HEDDLE_ASSIGN_OR_RETURN(const std::string method, Method("bin", object, j));
    if (method == "equi-width")
      column->bin_method = BinMethod::kEqualWidth;
    else if (method == "equi-height" || method == "equi-height-approx")
      column->bin_method = BinMethod::kEqualHeight;
    else
      return UnknownMethod("bin", object, j).WithNote("the methods are equi-width and equi-height");
    if (const auto bins = object.find("numbins"); bins != object.end()) {
      const std::optional<int64_t> count = WholeNumber(*bins);
      if (!count || *count < 1 || *count >= kMostCodes)
        return InvalidArgument("{}: numbins of column {} is {}, which is no number of bins", op_,
                               schema_.NameOf(j), Shown(*bins));
      column->bins = *count;
    }
    return OkStatus();
  }

  Status ReadHash() {
    const auto values = json_.find("K");
    const std::optional<int64_t> count = values == json_.end() ? std::nullopt : WholeNumber(*values);
    return ForColumns("hash", [&](ColumnSpec& column, int64_t j) -> Status {
      if (values == json_.end())
        return InvalidArgument("{}: column {} is hashed, but the spec has no K", op_, schema_.NameOf(j))
            .WithNote("K is the number of codes: hash: [1], K: 100");
      if (!count || *count < 1 || *count >= kMostCodes)
        return InvalidArgument("{}: K of the spec is {}, which is no number of codes", op_, Shown(*values));
      column.hash_values = *count;
      return SetEncoder(Encoder::kHash, j, &column);
    });
  }

  Status ReadImpute(const Json& object, int64_t j, ColumnSpec* column) const {
    HEDDLE_ASSIGN_OR_RETURN(const std::string method, Method("impute", object, j));
    if (method == "global_mean")
      column->impute = ImputeMethod::kMean;
    else if (method == "global_mode")
      column->impute = ImputeMethod::kMode;
    else if (method == "constant")
      column->impute = ImputeMethod::kConstant;
    else
      return UnknownMethod("impute", object, j)
          .WithNote("the methods are global_mean, global_mode and constant");
    if (column->impute == ImputeMethod::kMean && column->encoder == Encoder::kRecode)
      return InvalidArgument("{}: column {} is recoded, its tokens have no mean", op_, schema_.NameOf(j))
          .WithNote("impute it by global_mode or constant");
    if (column->impute != ImputeMethod::kConstant) return OkStatus();
    const auto value = object.find("value");
    if (value == object.end())
      return InvalidArgument("{}: the constant for column {} is missing", op_, schema_.NameOf(j))
          .WithNote("it is the 'value' beside 'method'");
    column->constant = TextOf(*value);
    return OkStatus();
  }

  Result<std::string> Method(std::string_view key, const Json& object, int64_t j) const {
    const auto method = object.find("method");
    if (method == object.end())
      return InvalidArgument("{}: '{}' of column {} has no 'method'", op_, key, schema_.NameOf(j));
    std::string name = TextOf(*method);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return name;
  }
  Status UnknownMethod(std::string_view key, const Json& object, int64_t j) const {
    return InvalidArgument("{}: '{}' is no method of '{}', which column {} has", op_,
                           Shown(object.at("method")), key, schema_.NameOf(j));
  }

  const std::string_view op_;
  const Json& json_;
  const Schema& schema_;
  TransformSpec spec_;
};

}  // namespace

bool TransformSpec::HasDummycode() const {
  return std::any_of(columns.begin(), columns.end(), [](const ColumnSpec& c) { return c.dummycode; });
}

bool TransformSpec::HasOmit() const {
  return std::any_of(columns.begin(), columns.end(), [](const ColumnSpec& c) { return c.omit; });
}

Result<TransformSpec> ParseTransformSpec(std::string_view op, std::string_view text, const Schema& schema) {
  const Json json = Json::parse(QuoteWords(text), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return InvalidArgument("{}: the spec is not a JSON object: '{}'", op, CutAtCharacter(text, 60))
        .WithNote("{ids: true, recode: [1, 3], dummycode: [3]} is one");
  return SpecReader(op, json, schema).Read();
}

}  // namespace heddle::ops
