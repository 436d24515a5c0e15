// SPDX-License-Identifier: Apache-2.0
#include "ops/transform/spec.h"

#include <algorithm>
#include <array>
#include <functional>

#include "core/text/utf8.h"
#include "ops/transform/spec_json.h"

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
    case Encoder::kWordEmbedding: return "word_embedding";
    case Encoder::kBagOfWords: return "bag_of_words";
  }
  HEDDLE_CHECK(false, "every encoder has a name");
}

// Reads the keys of a spec into the columns that they speak of. Without a schema the columns are those that
// the spec speaks of, in this order.
class SpecReader {
 public:
  SpecReader(std::string_view op, const Json& json, const Schema* schema)
      : op_(op), json_(json), schema_(schema) {
    if (schema != nullptr) spec_.columns.resize(schema->types.size());
  }

  Result<TransformSpec> Read() {
    HEDDLE_RETURN_IF_ERROR(CheckKeys());
    if (const auto ids = json_.find("ids"); ids != json_.end()) {
      const std::optional<bool> by_number = FlagOfJson(*ids);
      if (!by_number) return InvalidArgument("{}: 'ids' of the spec is not true or false", op_);
      spec_.by_name = !*by_number;
    }
    for (const Encoder encoder : {Encoder::kRecode, Encoder::kWordEmbedding, Encoder::kBagOfWords})
      HEDDLE_RETURN_IF_ERROR(ForColumns(
          NameOf(encoder), [&](ColumnSpec& column, int64_t j) { return SetEncoder(encoder, j, &column); }));
    HEDDLE_RETURN_IF_ERROR(ForObjects("bin", [&](ColumnSpec& column, int64_t j, const Json& object) {
      return ReadBin(object, j, &column);
    }));
    HEDDLE_RETURN_IF_ERROR(ReadHash());
    // A column needs codes for its dummies.
    HEDDLE_RETURN_IF_ERROR(ForColumns("dummycode", [&](ColumnSpec& column, int64_t j) -> Status {
      if (column.encoder == Encoder::kPassThrough) column.encoder = Encoder::kRecode;
      if (column.IsOneColumn() || column.dummycode) {
        column.dummycode = true;
        return OkStatus();
      }
      return InvalidArgument("{}: column {} has no codes to make dummies of, it has '{}'", op_, ColumnName(j),
                             NameOf(column.encoder));
    }));
    HEDDLE_RETURN_IF_ERROR(ForColumns("omit", [&](ColumnSpec& column, int64_t) {
      column.omit = true;
      return OkStatus();
    }));
    HEDDLE_RETURN_IF_ERROR(ForObjects("impute", [&](ColumnSpec& column, int64_t j, const Json& object) {
      return ReadImpute(object, j, &column);
    }));
    HEDDLE_RETURN_IF_ERROR(ReadFunction());
    return std::move(spec_);
  }

 private:
  Status CheckKeys() const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
        return InvalidArgument("{}: '{}' is no key of a spec", op_, ShownInLine(key, 40))
            .WithNote(
                "the keys are ids, recode, dummycode, bin, hash, K, impute, omit, word_embedding, "
                "bag_of_words and udf");
    }
    return OkStatus();
  }

  // The number of the column from 0; that of a column beyond the last is not one.
  Result<int64_t> ColumnOf(std::string_view key, const Json& value) {
    if (spec_.by_name) {
      const std::string name = TextOfJson(value);
      if (schema_ == nullptr) return NumberOfMentioned(name);
      for (int64_t j = 0; j < schema_->columns(); ++j)
        if (schema_->NameOf(j) == name) return j;
      return InvalidArgument("{}: the frame has no column '{}', which '{}' of the spec names", op_,
                             ShownJson(value), key)
          .WithNote(value.is_number() ? "with ids: true in the spec, columns are counted from 1"
                                      : NoteOfNames());
    }
    const std::optional<int64_t> id = WholeNumberOfJson(value);
    if (!id || *id < 1)
      return InvalidArgument("{}: '{}' in '{}' of the spec is no number of a column", op_, ShownJson(value),
                             key)
          .WithNote(id ? "columns are counted from 1" : "a spec without ids: true names columns");
    return schema_ == nullptr ? NumberOfMentioned(std::to_string(*id)) : *id - 1;
  }
  int64_t NumberOfMentioned(const std::string& name) {
    const auto found = std::find(mentioned_.begin(), mentioned_.end(), name);
    if (found != mentioned_.end()) return found - mentioned_.begin();
    mentioned_.push_back(name);
    spec_.columns.emplace_back();
    return static_cast<int64_t>(mentioned_.size()) - 1;
  }
  std::string ColumnName(int64_t j) const {
    return schema_ != nullptr ? schema_->NameOf(j) : mentioned_[static_cast<size_t>(j)];
  }
  std::string NoteOfNames() const {
    constexpr int64_t kMost = 8;
    std::string names;
    for (int64_t j = 0; j < std::min(schema_->columns(), kMost); ++j)
      names.append(j == 0 ? "" : ", ").append(ShownInLine(schema_->NameOf(j), 40));
    return fmt::format("its columns are {}{}", names, schema_->columns() > kMost ? ", ..." : "");
  }

  Result<const Json*> List(const Json& object, std::string_view key) const {
    static const auto* const kNone = new Json(Json::array());
    const auto found = object.find(key);
    if (found == object.end()) return kNone;
    if (!found->is_array()) return InvalidArgument("{}: '{}' of the spec is not a list", op_, key);
    return &*found;
  }

  Status ForColumns(std::string_view key, const std::function<Status(ColumnSpec&, int64_t)>& read) {
    HEDDLE_ASSIGN_OR_RETURN(const Json* const list, List(json_, key));
    return ForColumnsOf(*list, key, read);
  }
  Status ForColumnsOf(const Json& list, std::string_view key,
                      const std::function<Status(ColumnSpec&, int64_t)>& read) {
    for (const Json& value : list) {
      HEDDLE_ASSIGN_OR_RETURN(const int64_t j, ColumnOf(key, value));
      if (IsColumn(j)) HEDDLE_RETURN_IF_ERROR(read(spec_.columns[static_cast<size_t>(j)], j));
    }
    return OkStatus();
  }
  bool IsColumn(int64_t j) const { return j < static_cast<int64_t>(spec_.columns.size()); }

  // Objects that name a column by "id" or "name" and say more about it.
  Status ForObjects(std::string_view key,
                    const std::function<Status(ColumnSpec&, int64_t, const Json&)>& read) {
    HEDDLE_ASSIGN_OR_RETURN(const Json* const list, List(json_, key));
    const std::string_view by = spec_.by_name ? "name" : "id";
    for (const Json& object : *list) {
      if (!object.is_object() || !object.contains(by))
        return InvalidArgument("{}: an element of '{}' of the spec is not an object with '{}'", op_, key, by)
            .WithNote(spec_.by_name ? "with ids: true in the spec, columns are given by 'id'"
                                    : "without ids: true in the spec, columns are given by 'name'");
      HEDDLE_ASSIGN_OR_RETURN(const int64_t j, ColumnOf(key, object.at(by)));
      if (IsColumn(j)) HEDDLE_RETURN_IF_ERROR(read(spec_.columns[static_cast<size_t>(j)], j, object));
    }
    return OkStatus();
  }

  Status SetEncoder(Encoder encoder, int64_t j, ColumnSpec* column) const {
    if (column->encoder != Encoder::kPassThrough && column->encoder != encoder)
      return InvalidArgument("{}: column {} has two encoders, {} and {}", op_, ColumnName(j),
                             NameOf(column->encoder), NameOf(encoder))
          .WithNote("a column has one of recode, bin, hash, word_embedding and bag_of_words");
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
      const std::optional<int64_t> count = WholeNumberOfJson(*bins);
      if (!count || *count < 1 || *count >= kMostCodes)
        return InvalidArgument("{}: numbins of column {} is {}, which is no number of bins", op_,
                               ColumnName(j), ShownJson(*bins));
      column->bins = *count;
    }
    return OkStatus();
  }

  Status ReadHash() {
    const auto values = json_.find("K");
    const std::optional<int64_t> count = values == json_.end() ? std::nullopt : WholeNumberOfJson(*values);
    return ForColumns("hash", [&](ColumnSpec& column, int64_t j) -> Status {
      if (values == json_.end())
        return InvalidArgument("{}: column {} is hashed, but the spec has no K", op_, ColumnName(j))
            .WithNote("K is the number of codes: hash: [1], K: 100");
      if (!count || *count < 1 || *count >= kMostCodes)
        return InvalidArgument("{}: K of the spec is {}, which is no number of codes", op_,
                               ShownJson(*values));
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
    if (column->impute == ImputeMethod::kMean && column->HasTokens())
      return InvalidArgument("{}: the tokens of column {} have no mean", op_, ColumnName(j))
          .WithNote("impute it by global_mode or constant");
    if (column->impute != ImputeMethod::kConstant) return OkStatus();
    const auto value = object.find("value");
    if (value == object.end())
      return InvalidArgument("{}: the constant for column {} is missing", op_, ColumnName(j))
          .WithNote("it is the 'value' beside 'method'");
    column->constant = TextOfJson(*value);
    return OkStatus();
  }

  Status ReadFunction() {
    const auto udf = json_.find("udf");
    if (udf == json_.end()) return OkStatus();
    const bool is_object = udf->is_object();
    if (!is_object || !udf->contains("name") || !udf->at("name").is_string() || !udf->contains("ids"))
      return InvalidArgument("{}: 'udf' of the spec is not an object with 'name' and 'ids'", op_)
          .WithNote("udf: {name: scale, ids: [1, 2]} calls scale() with each of these columns");
    spec_.function = udf->at("name").get<std::string>();
    HEDDLE_ASSIGN_OR_RETURN(const Json* const list, List(*udf, "ids"));
    return ForColumnsOf(*list, "udf", [](ColumnSpec& column, int64_t) {
      column.function = true;
      return OkStatus();
    });
  }

  Result<std::string> Method(std::string_view key, const Json& object, int64_t j) const {
    const auto method = object.find("method");
    if (method == object.end())
      return InvalidArgument("{}: '{}' of column {} has no 'method'", op_, key, ColumnName(j));
    return LowerLetters(TextOfJson(*method));
  }
  Status UnknownMethod(std::string_view key, const Json& object, int64_t j) const {
    return InvalidArgument("{}: '{}' is no method of '{}', which column {} has", op_,
                           ShownJson(object.at("method")), key, ColumnName(j));
  }

  const std::string_view op_;
  const Json& json_;
  const Schema* const schema_;
  std::vector<std::string> mentioned_;  // Without a schema: names or numbers of the columns.
  TransformSpec spec_;
};

Result<TransformSpec> Parse(std::string_view op, std::string_view text, const Schema* schema) {
  HEDDLE_ASSIGN_OR_RETURN(const Json json,
                          ParseSpecJson(op, text, "{ids: true, recode: [1, 3], dummycode: [3]}"));
  return SpecReader(op, json, schema).Read();
}

}  // namespace

bool TransformSpec::HasOmit() const {
  return std::any_of(columns.begin(), columns.end(), [](const ColumnSpec& c) { return c.omit; });
}

bool TransformSpec::HasOneColumnEach() const {
  return std::all_of(columns.begin(), columns.end(), [](const ColumnSpec& c) { return c.IsOneColumn(); });
}

Result<TransformSpec> ParseTransformSpec(std::string_view op, std::string_view text, const Schema& schema) {
  return Parse(op, text, &schema);
}

Status CheckTransformSpec(std::string_view op, std::string_view text) {
  return Parse(op, text, nullptr).status();
}

std::optional<ColumnFunction> ColumnFunctionOf(std::string_view text) {
  const Result<TransformSpec> spec = Parse("transformencode", text, nullptr);
  if (!spec.ok() || spec->function.empty()) return std::nullopt;
  return ColumnFunction{spec->function,
                        std::count_if(spec->columns.begin(), spec->columns.end(),
                                      [](const ColumnSpec& column) { return column.function; })};
}

}  // namespace heddle::ops
