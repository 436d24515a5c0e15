// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text/double_text.h"
#include "ops/transform/encoders.h"

namespace heddle::ops {
namespace {

// Kahan's summation with Neumaier's correction: error of one rounding, whatever the number of rows.
Result<std::string> MeanOf(const ColumnInput& input) {
  std::vector<double> numbers(static_cast<size_t>(input.cells.rows()));
  HEDDLE_RETURN_IF_ERROR(NumbersOf(input, numbers));
  double sum = 0, lost = 0;
  int64_t count = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (input.IsMissing(static_cast<int64_t>(i))) continue;
    const double x = numbers[i], next = sum + x;
    lost += std::abs(sum) >= std::abs(x) ? (sum - next) + x : (x - next) + sum;
    sum = next;
    ++count;
  }
  if (count == 0) return std::string();
  // An infinite sum has lost infinitely much.
  return FormatDouble((std::isfinite(lost) ? sum + lost : sum) / static_cast<double>(count));
}

std::string ModeOf(const ColumnInput& input) {
  std::vector<int64_t> counts(static_cast<size_t>(input.distinct->count()));
  for (size_t i = 0; i < input.distinct->numbers.size(); ++i)
    if (!input.IsReplaced(static_cast<int64_t>(i))) ++counts[static_cast<size_t>(input.distinct->numbers[i])];
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

Status FitImpute(const ColumnInput& input, ColumnMetadata* metadata) {
  if (!input.spec.impute) return OkStatus();
  switch (*input.spec.impute) {
    case ImputeMethod::kMean: {
      HEDDLE_ASSIGN_OR_RETURN(metadata->imputed, MeanOf(input));
      return OkStatus();
    }
    case ImputeMethod::kMode: metadata->imputed = ModeOf(input); return OkStatus();
    case ImputeMethod::kConstant: metadata->imputed = input.spec.constant; return OkStatus();
  }
  HEDDLE_CHECK(false, "every method of impute has a value");
}

}  // namespace heddle::ops
