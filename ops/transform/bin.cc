// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/base/parallel.h"
#include "ops/transform/encoders.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainRows = int64_t{1} << 14;

// The numbers that bins are made of.
Result<std::vector<double>> CountedNumbers(const ColumnInput& input) {
  std::vector<double> numbers(static_cast<size_t>(input.cells.rows()));
  HEDDLE_RETURN_IF_ERROR(NumbersOf(input, numbers));
  for (size_t i = 0; i < numbers.size(); ++i)
    if (input.IsMissing(static_cast<int64_t>(i))) numbers[i] = 0;
  std::erase_if(numbers, [](double x) { return std::isnan(x); });
  return numbers;
}

}  // namespace

Status FitBins(const ColumnInput& input, ColumnMetadata* metadata) {
  HEDDLE_ASSIGN_OR_RETURN(std::vector<double> numbers, CountedNumbers(input));
  if (numbers.empty())
    return FailedPrecondition("{}: column {} has no number to make bins of", input.op, input.name);
  const auto count = static_cast<size_t>(input.spec.bins);
  if (input.spec.bin_method == BinMethod::kEqualWidth) {
    const auto [min, max] = std::minmax_element(numbers.begin(), numbers.end());
    const double low = *min, high = *max;
    const size_t bins = low == high ? 1 : count;
    const auto bound = [&](size_t i) {
      return low + static_cast<double>(i) * (high - low) / static_cast<double>(bins);
    };
    for (size_t i = 0; i < bins; ++i) {
      metadata->lower.push_back(bound(i));
      metadata->upper.push_back(bound(i + 1));
    }
    return OkStatus();
  }
  std::sort(numbers.begin(), numbers.end());
  // As doubles: the products would be exact up to 2^53, more than there are cells.
  const auto n = static_cast<double>(numbers.size()), k = static_cast<double>(count);
  double lower = numbers.front();
  for (size_t i = 1; i <= count; ++i) {
    const auto rank = static_cast<size_t>(std::ceil(static_cast<double>(i) * n / k));
    const double upper = i == count ? numbers.back() : numbers[std::max<size_t>(rank, 1) - 1];
    metadata->lower.push_back(lower);
    metadata->upper.push_back(upper);
    lower = upper;
  }
  return OkStatus();
}

Status Bin(const ColumnInput& input, const ColumnMetadata& metadata, std::span<double> codes) {
  HEDDLE_RETURN_IF_ERROR(PassThrough(input, metadata, codes));
  const std::vector<double>& upper = metadata.upper;
  const double low = metadata.lower.front(), width = upper.back() - low;
  const auto bins = static_cast<double>(upper.size());
  const bool equal_width = input.spec.bin_method == BinMethod::kEqualWidth;
  ParallelFor(static_cast<int64_t>(codes.size()), kGrainRows, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      double& x = codes[i];
      if (std::isnan(x)) continue;
      const double bin =
          equal_width
              ? (width == 0 ? 1 : std::ceil((x - low) / width * bins))
              : static_cast<double>(std::lower_bound(upper.begin(), upper.end(), x) - upper.begin() + 1);
      x = bin >= 1 ? std::min(bin, bins) : 1;  // 1 for NaN, of bounds that are infinite.
    }
  });
  return OkStatus();
}

}  // namespace heddle::ops
