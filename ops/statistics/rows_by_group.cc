// SPDX-License-Identifier: Apache-2.0
#include "ops/statistics/rows_by_group.h"

#include <algorithm>
#include <numeric>

#include "core/values/scalar.h"
#include "core/values/sizes.h"
#include "ops/cells/storage.h"

namespace heddle::ops {

Status WrongGroup::ToStatus() const {
  const std::string text = Scalar(group).ToText();
  if (group >= 1)
    return ResourceExhausted("aggregate: group {} at row {} is too large", text, row + 1)
        .WithNote(fmt::format("a matrix has at most {} rows", kMostLength));
  return FailedPrecondition("aggregate: group {} at row {} is below 1", text, row + 1)
      .WithNote("groups are numbers of rows of the result, counted from 1");
}

Result<std::vector<int64_t>> ReadGroups(const Matrix& groups, int64_t most, int64_t row_begin,
                                        std::optional<WrongGroup>* wrong) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix dense, AsDense(groups));
  std::vector<int64_t> numbers(static_cast<size_t>(dense.rows()));
  for (int64_t i = 0; i < dense.rows(); ++i) {
    const double group = dense.data()[i];
    const bool is_number = group > -0x1p62 && TruncateToInteger(group) >= 1;
    const int64_t number = !is_number ? 0 : group < 0x1p62 ? TruncateToInteger(group) : kMostLength + 1;
    if (!is_number || (most == kUnknown && number > kMostLength)) {
      *wrong = WrongGroup{row_begin + i, group};
      return numbers;
    }
    numbers[static_cast<size_t>(i)] = most != kUnknown && number > most ? -1 : number - 1;
  }
  return numbers;
}

Grouping GroupRows(const std::vector<int64_t>& numbers) {
  Grouping grouping;
  const int64_t range = numbers.empty() ? 0 : 1 + *std::max_element(numbers.begin(), numbers.end());
  const auto count = static_cast<int64_t>(numbers.size());
  if (range <= 4 * count + 1024) {
    std::vector<int64_t> next(static_cast<size_t>(range) + 1, 0);
    for (const int64_t number : numbers)
      if (number >= 0) ++next[static_cast<size_t>(number) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    grouping.rows.resize(static_cast<size_t>(next.back()));
    for (int64_t i = 0; i < count; ++i)
      if (const int64_t number = numbers[static_cast<size_t>(i)]; number >= 0)
        grouping.rows[static_cast<size_t>(next[static_cast<size_t>(number)]++)] = i;
  } else {
    for (int64_t i = 0; i < count; ++i)
      if (numbers[static_cast<size_t>(i)] >= 0) grouping.rows.push_back(i);
    std::stable_sort(grouping.rows.begin(), grouping.rows.end(), [&](int64_t a, int64_t b) {
      return numbers[static_cast<size_t>(a)] < numbers[static_cast<size_t>(b)];
    });
  }
  const auto rows = static_cast<int64_t>(grouping.rows.size());
  for (int64_t begin = 0, end = 0; begin < rows; begin = end) {
    const int64_t group = numbers[static_cast<size_t>(grouping.rows[static_cast<size_t>(begin)])];
    while (end < rows && numbers[static_cast<size_t>(grouping.rows[static_cast<size_t>(end)])] == group)
      ++end;
    grouping.runs.push_back({group, begin, end});
  }
  return grouping;
}

}  // namespace heddle::ops
