// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/base/parallel.h"
#include "ops/transform/encoders.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainRows = int64_t{1} << 14;

}  // namespace

Result<std::vector<double>> BinnedNumbers(const ColumnInput& input) {
  std::vector<double> numbers(static_cast<size_t>(input.cells.rows()));
  HEDDLE_RETURN_IF_ERROR(NumbersOf(input, numbers));
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (input.IsMissing(static_cast<int64_t>(i))) numbers[i] = 0;
    numbers[i] += 0.0;  // -0.0 becomes 0.0: sorted, the two would have no order.
  }
  std::erase_if(numbers, [](double x) { return std::isnan(x); });
  return numbers;
}

std::vector<int64_t> HeightPlaces(const ColumnSpec& spec, int64_t count) {
  std::vector<int64_t> places;
  if (spec.bin_method != BinMethod::kEqualHeight || count == 0) return places;
  // As doubles: the products would be exact up to 2^53, more than there are cells.
  const auto n = static_cast<double>(count), bins = static_cast<double>(spec.bins);
  for (int64_t i = 1; i < spec.bins; ++i) {
    const auto rank = static_cast<int64_t>(std::ceil(static_cast<double>(i) * n / bins));
    places.push_back(std::max<int64_t>(rank, 1) - 1);
  }
  return places;
}

Status SetBins(std::string_view op, std::string_view name, const ColumnSpec& spec, const BinnedRange& range,
               std::span<const double> at_places, ColumnMetadata* metadata) {
  if (range.count == 0) return FailedPrecondition("{}: column {} has no number to make bins of", op, name);
  const double low = range.low, high = range.high;
  if (spec.bin_method == BinMethod::kEqualWidth) {
    const size_t bins = low == high ? 1 : static_cast<size_t>(spec.bins);
    const auto bound = [&](size_t i) {
      return low + static_cast<double>(i) * (high - low) / static_cast<double>(bins);
    };
    for (size_t i = 0; i < bins; ++i) {
      metadata->lower.push_back(bound(i));
      metadata->upper.push_back(bound(i + 1));
    }
    return OkStatus();
  }
  double lower = low;
  for (size_t i = 0; i <= at_places.size(); ++i) {
    const double upper = i == at_places.size() ? high : at_places[i];
    metadata->lower.push_back(lower);
    metadata->upper.push_back(upper);
    lower = upper;
  }
  return OkStatus();
}

Status FitBins(const ColumnInput& input, ColumnMetadata* metadata) {
  HEDDLE_ASSIGN_OR_RETURN(std::vector<double> numbers, BinnedNumbers(input));
  BinnedRange range{.count = static_cast<int64_t>(numbers.size())};
  if (range.count > 0) {
    const auto [min, max] = std::minmax_element(numbers.begin(), numbers.end());
    range.low = *min;
    range.high = *max;
  }
  const std::vector<int64_t> places = HeightPlaces(input.spec, range.count);
  std::vector<double> at_places;
  if (!places.empty()) std::sort(numbers.begin(), numbers.end());
  for (const int64_t place : places) at_places.push_back(numbers[static_cast<size_t>(place)]);
  return SetBins(input.op, input.name, input.spec, range, at_places, metadata);
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
