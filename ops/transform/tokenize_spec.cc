// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "core/text/utf8.h"
#include "ops/text/java_text.h"
#include "ops/transform/spec_json.h"
#include "ops/transform/tokenizer.h"

namespace heddle::ops {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kExample = "{algo: split, out: count, tokenize_col: 2, id_cols: [1]}";
constexpr std::array<std::string_view, 8> kKeys = {
    "algo", "algo_params", "out", "out_params", "tokenize_col", "id_cols", "format_wide", "apply_padding"};
constexpr int64_t kMostFeatures = (int64_t{1} << 31) - 1;

// Reads the keys of a spec one after the other.
class TokenizeSpecReader {
 public:
  TokenizeSpecReader(std::string_view op, const Json& json) : op_(op), json_(json) {}

  Result<TokenizeSpec> Read() {
    HEDDLE_RETURN_IF_ERROR(CheckKeys(json_, kKeys, "a spec"));
    HEDDLE_RETURN_IF_ERROR(ReadAlgorithm());
    HEDDLE_RETURN_IF_ERROR(ReadOutput());
    HEDDLE_RETURN_IF_ERROR(ReadColumns());
    HEDDLE_RETURN_IF_ERROR(ReadFlag(json_, "format_wide", &spec_.wide));
    HEDDLE_RETURN_IF_ERROR(ReadFlag(json_, "apply_padding", &spec_.padded));
    if (spec_.wide && spec_.output == TokenOutput::kCount)
      return InvalidArgument("{}: counts of tokens have no wide format", op_)
          .WithNote("out: position and out: hash have one");
    return std::move(spec_);
  }

 private:
  Status CheckKeys(const Json& object, std::span<const std::string_view> known,
                   std::string_view where) const {
    std::string names;
    for (const std::string_view key : known) names.append(names.empty() ? "" : ", ").append(key);
    for (const auto& [key, value] : object.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        return InvalidArgument("{}: '{}' is no key of {}", op_, ShownInLine(key, 40), where)
            .WithNote("the keys are " + names);
    return OkStatus();
  }

  // The object of parameters; an empty one where there is none.
  Result<Json> Parameters(std::string_view key, std::span<const std::string_view> known) const {
    const auto found = json_.find(key);
    if (found == json_.end() || found->is_null()) return Json(Json::object());
    if (!found->is_object()) return InvalidArgument("{}: '{}' of the spec is not an object", op_, key);
    HEDDLE_RETURN_IF_ERROR(CheckKeys(*found, known, fmt::format("'{}'", key)));
    return *found;
  }

  Status ReadAlgorithm() {
    static constexpr std::array<std::string_view, 4> kParameters = {"regex", "min_gram", "max_gram",
                                                                    "ngram_type"};
    HEDDLE_ASSIGN_OR_RETURN(const std::string algorithm, Word(json_, "algo"));
    if (algorithm != "split" && algorithm != "ngram")
      return InvalidArgument("{}: '{}' is no algorithm", op_, ShownInLine(algorithm, 40))
          .WithNote("'algo' of the spec is split or ngram");
    spec_.ngrams = algorithm == "ngram";
    HEDDLE_ASSIGN_OR_RETURN(const Json parameters, Parameters("algo_params", kParameters));
    HEDDLE_RETURN_IF_ERROR(ReadSeparator(parameters));
    HEDDLE_RETURN_IF_ERROR(ReadNumber(parameters, "min_gram", 1, INT32_MAX, &spec_.min_gram));
    HEDDLE_RETURN_IF_ERROR(ReadNumber(parameters, "max_gram", 1, INT32_MAX, &spec_.max_gram));
    const auto type = parameters.find("ngram_type");
    if (type == parameters.end()) return OkStatus();
    const std::string name = LowerLetters(TextOfJson(*type));
    if (name != "token" && name != "document")
      return InvalidArgument("{}: 'ngram_type' of the spec is '{}', neither token nor document", op_,
                             ShownInLine(name, 40));
    spec_.ngrams_of_letters = name == "token";
    return OkStatus();
  }

  Status ReadSeparator(const Json& parameters) {
    const auto found = parameters.find("regex");
    if (found == parameters.end() || TextOfJson(*found) == "\\s+") return OkStatus();
    const std::string regex = TextOfJson(*found);
    Result<JavaRegex> separator = JavaRegex::Parse(ToUtf16(regex));
    if (!separator.ok())
      return InvalidArgument("{}: 'regex' of the spec: {}", op_, separator.status().message());
    spec_.separator = *std::move(separator);
    return OkStatus();
  }

  Status ReadOutput() {
    static constexpr std::array<std::string_view, 2> kParameters = {"sort_alpha", "num_features"};
    HEDDLE_ASSIGN_OR_RETURN(const std::string output, Word(json_, "out"));
    if (output == "count")
      spec_.output = TokenOutput::kCount;
    else if (output == "position")
      spec_.output = TokenOutput::kPosition;
    else if (output == "hash")
      spec_.output = TokenOutput::kHash;
    else
      return InvalidArgument("{}: '{}' is no output", op_, ShownInLine(output, 40))
          .WithNote("'out' of the spec is count, position or hash");
    HEDDLE_ASSIGN_OR_RETURN(const Json parameters, Parameters("out_params", kParameters));
    HEDDLE_RETURN_IF_ERROR(ReadFlag(parameters, "sort_alpha", &spec_.sorted));
    return ReadNumber(parameters, "num_features", 1, kMostFeatures, &spec_.features);
  }

  Status ReadColumns() {
    if (!json_.contains("tokenize_col")) return Missing("tokenize_col");
    HEDDLE_RETURN_IF_ERROR(ReadNumber(json_, "tokenize_col", 1, INT32_MAX, &spec_.text_column));
    --spec_.text_column;
    const auto ids = json_.find("id_cols");
    if (ids == json_.end()) return Missing("id_cols");
    if (!ids->is_array()) return InvalidArgument("{}: 'id_cols' of the spec is not a list", op_);
    for (const Json& id : *ids) {
      const std::optional<int64_t> number = WholeNumberOfJson(id);
      if (!number || *number < 1)
        return InvalidArgument("{}: '{}' in 'id_cols' of the spec is no number of a column", op_,
                               ShownJson(id))
            .WithNote("columns are counted from 1");
      spec_.id_columns.push_back(*number - 1);
    }
    return OkStatus();
  }

  Status Missing(std::string_view key) const {
    return InvalidArgument("{}: the spec has no '{}'", op_, key).WithNote(fmt::format("{} is one", kExample));
  }
  Result<std::string> Word(const Json& object, std::string_view key) const {
    const auto found = object.find(key);
    if (found == object.end()) return Missing(key);
    return TextOfJson(*found);
  }
  Status ReadNumber(const Json& object, std::string_view key, int64_t least, int64_t most,
                    int64_t* to) const {
    const auto found = object.find(key);
    if (found == object.end()) return OkStatus();
    const std::optional<int64_t> number = WholeNumberOfJson(*found);
    if (!number || *number < least || *number > most)
      return InvalidArgument("{}: '{}' of the spec is {}, which is not a number from {} to {}", op_, key,
                             ShownJson(*found), least, most);
    *to = *number;
    return OkStatus();
  }
  Status ReadFlag(const Json& object, std::string_view key, bool* to) const {
    const auto found = object.find(key);
    if (found == object.end()) return OkStatus();
    const std::optional<bool> flag = FlagOfJson(*found);
    if (!flag) return InvalidArgument("{}: '{}' of the spec is not true or false", op_, key);
    *to = *flag;
    return OkStatus();
  }

  const std::string_view op_;
  const Json& json_;
  TokenizeSpec spec_;
};

}  // namespace

Result<TokenizeSpec> ParseTokenizeSpec(std::string_view op, std::string_view text) {
  HEDDLE_ASSIGN_OR_RETURN(const Json json, ParseSpecJson(op, text, kExample));
  return TokenizeSpecReader(op, json).Read();
}

}  // namespace heddle::ops
