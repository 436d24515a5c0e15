// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "core/text/double_text.h"
#include "ops/transform/encoders.h"

namespace heddle::ops {
namespace {

std::string ModeOf(const ColumnInput& input) {
  const std::vector<int64_t> counts = CountsForMode(input);
  const auto keys = static_cast<size_t>(
      std::count_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; }));
  const int64_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  std::string mode;
  uint64_t first_bucket = std::numeric_limits<uint64_t>::max();
  for (size_t k = 0; k < counts.size() && most > 0; ++k) {
    if (counts[k] != most) continue;
    std::string text = input.distinct->TextOf(input.cells, static_cast<int64_t>(k));
    const uint64_t bucket = JavaBucketOf(text, keys);
    if (bucket >= first_bucket) continue;
    first_bucket = bucket;
    mode = std::move(text);
  }
  return mode;
}

}  // namespace

Result<MeanParts> SumForMean(const ColumnInput& input) {
  std::vector<double> numbers(static_cast<size_t>(input.cells.rows()));
  HEDDLE_RETURN_IF_ERROR(NumbersOf(input, numbers));
  MeanParts parts;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (input.IsMissing(static_cast<int64_t>(i))) continue;
    parts.sum.Add(numbers[i]);
    ++parts.count;
  }
  return parts;
}

std::string TextOfMean(const MeanParts& parts) {
  if (parts.count == 0) return {};
  return FormatDouble(parts.sum.Rounded() / static_cast<double>(parts.count));
}

std::vector<int64_t> CountsForMode(const ColumnInput& input) {
  std::vector<int64_t> counts(static_cast<size_t>(input.distinct->count()));
  for (size_t i = 0; i < input.distinct->numbers.size(); ++i)
    if (!input.IsReplaced(static_cast<int64_t>(i))) ++counts[static_cast<size_t>(input.distinct->numbers[i])];
  return counts;
}

Status FitImpute(const ColumnInput& input, ColumnMetadata* metadata) {
  if (!input.spec.impute) return OkStatus();
  switch (*input.spec.impute) {
    case ImputeMethod::kMean: {
      HEDDLE_ASSIGN_OR_RETURN(const MeanParts parts, SumForMean(input));
      metadata->imputed = TextOfMean(parts);
      return OkStatus();
    }
    case ImputeMethod::kMode: metadata->imputed = ModeOf(input); return OkStatus();
    case ImputeMethod::kConstant: metadata->imputed = input.spec.constant; return OkStatus();
  }
  HEDDLE_CHECK(false, "every method of impute has a value");
}

}  // namespace heddle::ops
