// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "ops/parallel.h"
#include "ops/transform/encoders.h"
#include "ops/transform/key_table.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainRows = int64_t{1} << 16;

}  // namespace

void FitTokens(const ColumnInput& input, ColumnMetadata* metadata) {
  for (int64_t k = 0; k < input.distinct->count(); ++k)
    metadata->tokens.push_back(input.distinct->TextOf(input.cells, k));
  if (input.spec.impute != ImputeMethod::kConstant || input.spec.constant.empty()) return;
  if (std::find(metadata->tokens.begin(), metadata->tokens.end(), input.spec.constant) ==
      metadata->tokens.end())
    metadata->tokens.push_back(input.spec.constant);
}

Status Recode(const ColumnInput& input, const ColumnMetadata& metadata, std::span<double> codes) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  KeyTable<std::string_view> tokens;  // Of one that comes twice the first place counts.
  for (size_t i = 0; i < metadata.tokens.size(); ++i) {
    const std::string_view token = metadata.tokens[i];
    tokens.NumberOf(token, HashOf(token), static_cast<int64_t>(i));
  }
  const auto find = [&](std::string_view token) {
    const int32_t number = tokens.Find(token, HashOf(token));
    return number < 0 ? kNan : static_cast<double>(tokens.rows()[static_cast<size_t>(number)] + 1);
  };
  const double replacement = input.spec.impute && metadata.imputed ? find(*metadata.imputed) : kNan;
  std::vector<double> code_of_number(static_cast<size_t>(input.distinct->count()));
  for (size_t k = 0; k < code_of_number.size(); ++k) {
    const auto number = static_cast<int64_t>(k);
    code_of_number[k] = input.IsReplaced(input.distinct->first_rows[k])
                            ? replacement
                            : find(input.distinct->TextOf(input.cells, number));
  }
  ParallelFor(static_cast<int64_t>(codes.size()), kGrainRows, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const int32_t number = input.distinct->numbers[i];
      codes[i] = number < 0 ? replacement : code_of_number[static_cast<size_t>(number)];
    }
  });
  return OkStatus();
}

}  // namespace heddle::ops
