// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "ops/base/parallel.h"
#include "ops/transform/encoders.h"
#include "ops/transform/key_table.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainRows = int64_t{1} << 16;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The code of each distinct cell: where its text stands among the tokens, from 1, of several places the
// first; NaN of one that is no token.
std::vector<double> CodesOfDistinct(const ColumnInput& input, const std::vector<std::string>& tokens) {
  const DistinctCells& distinct = *input.distinct;
  std::vector<double> codes(static_cast<size_t>(distinct.count()), kNan);
  const auto is_token = [&](size_t k, const std::string& token) {
    return input.cells.storage() == ColumnStorage::kTexts
               ? input.cells.TextAt(distinct.first_rows[k]) == token
               : distinct.TextOf(input.cells, static_cast<int64_t>(k)) == token;
  };
  // Tokens that were found in this column are its distinct cells in their order; no table is needed then.
  size_t known = 0;
  for (; known < std::min(codes.size(), tokens.size()) && is_token(known, tokens[known]); ++known)
    codes[known] = static_cast<double>(known + 1);
  if (known == codes.size()) return codes;
  KeyTable<std::string_view> places;
  for (size_t i = 0; i < tokens.size(); ++i)
    places.NumberOf(tokens[i], HashOf(std::string_view(tokens[i])), static_cast<int64_t>(i));
  for (; known < codes.size(); ++known) {
    const std::string text = distinct.TextOf(input.cells, static_cast<int64_t>(known));
    const int32_t number = places.Find(text, HashOf(std::string_view(text)));
    if (number >= 0) codes[known] = static_cast<double>(places.rows()[static_cast<size_t>(number)] + 1);
  }
  return codes;
}

}  // namespace

void FitTokens(const ColumnInput& input, ColumnMetadata* metadata) {
  for (int64_t k = 0; k < input.distinct->count(); ++k)
    metadata->tokens.push_back(input.distinct->TextOf(input.cells, k));
  AddConstant(input.spec, metadata);
}

void AddConstant(const ColumnSpec& spec, ColumnMetadata* metadata) {
  if (spec.impute != ImputeMethod::kConstant || !spec.HasTokens()) return;
  std::vector<std::string> constants;
  if (spec.encoder == Encoder::kBagOfWords)
    constants = WordsOf(spec.constant);
  else if (!spec.constant.empty())
    constants = {spec.constant};
  std::vector<std::string>& tokens = metadata->tokens;
  for (std::string& constant : constants)
    if (std::find(tokens.begin(), tokens.end(), constant) == tokens.end())
      tokens.push_back(std::move(constant));
}

Status Recode(const ColumnInput& input, const ColumnMetadata& metadata, std::span<double> codes) {
  const std::vector<std::string>& tokens = metadata.tokens;
  std::vector<double> code_of_number = CodesOfDistinct(input, tokens);
  double replacement = kNan;
  if (input.spec.impute && metadata.imputed)
    if (const auto found = std::find(tokens.begin(), tokens.end(), *metadata.imputed); found != tokens.end())
      replacement = static_cast<double>(found - tokens.begin() + 1);
  for (size_t k = 0; k < code_of_number.size(); ++k)
    if (input.IsReplaced(input.distinct->first_rows[k])) code_of_number[k] = replacement;
  ParallelFor(static_cast<int64_t>(codes.size()), kGrainRows, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const int32_t number = input.distinct->numbers[i];
      codes[i] = number < 0 ? replacement : code_of_number[static_cast<size_t>(number)];
    }
  });
  return OkStatus();
}

}  // namespace heddle::ops
