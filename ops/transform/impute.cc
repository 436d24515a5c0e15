// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/double_text.h"
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
  const auto most = std::max_element(counts.begin(), counts.end());
  return most == counts.end() || *most == 0 ? "" : input.distinct->TextOf(input.cells, most - counts.begin());
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
