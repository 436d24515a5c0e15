// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/group_aggregate.h"

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/values/panels.h"

namespace heddle::ops::reference {
namespace {

// A cell of a group, and how often it counts.
struct Member {
  int64_t panel;
  double cell;
  double weight;
};

// T(a, b) of docs/numerics.md, section 2.
double Tree(int64_t a, int64_t b, const std::function<double(int64_t)>& leaf) {
  if (b - a == 1) return leaf(a);
  int64_t s = 1;
  while (s * 2 < b - a) s *= 2;
  return Tree(a, a + s, leaf) + Tree(a + s, b, leaf);
}

double SumOf(const std::vector<Member>& members, int64_t panels,
             const std::function<double(const Member&)>& of) {
  return Tree(0, panels, [&](int64_t panel) {
    double sum = 0;
    for (const Member& member : members)
      if (member.panel == panel) sum += of(member);
    return sum;
  });
}

double Extreme(const std::vector<Member>& members, bool smallest) {
  double result = members[0].weight * members[0].cell;
  for (const Member& member : members) {
    const double x = member.weight * member.cell;
    if (std::isnan(x) || std::isnan(result)) {
      result = std::numeric_limits<double>::quiet_NaN();
    } else if (x == result) {
      if (std::signbit(x) == smallest) result = x;
    } else if ((x < result) == smallest) {
      result = x;
    }
  }
  return result;
}

long double CentralSum(const std::vector<Member>& members, int order, long double* count) {
  long double sum = 0;
  *count = 0;
  for (const Member& member : members) {
    *count += member.weight;
    sum += static_cast<long double>(member.weight) * member.cell;
  }
  const long double mean = sum / *count;
  if (order == 1) return mean;
  long double moment = 0;
  for (const Member& member : members) moment += member.weight * std::pow(member.cell - mean, order);
  return moment;
}

double ResultOf(const std::vector<Member>& members, int64_t panels, std::string_view fn, int order) {
  if (fn == "count") return SumOf(members, panels, [](const Member& member) { return member.weight; });
  if (fn == "sum")
    return SumOf(members, panels, [](const Member& member) { return member.weight * member.cell; });
  if (members.empty()) return fn == "centralmoment" ? std::numeric_limits<double>::quiet_NaN() : 0;
  if (fn == "min" || fn == "max") return Extreme(members, fn == "min");
  long double count = 0;
  if (fn == "mean") return static_cast<double>(CentralSum(members, 1, &count));
  if (fn == "variance") {
    const long double squares = CentralSum(members, 2, &count);
    return static_cast<double>(count == 1 ? 0 : squares / (count - 1));
  }
  const long double moment = CentralSum(members, order, &count);
  return static_cast<double>(moment / count);
}

}  // namespace

Matrix GroupAggregate(const Matrix& x, const Matrix& groups, const Matrix* weights, std::string_view fn,
                      int order, int64_t count) {
  Result<Matrix> result = FilledMatrix(count, x.columns(), 0);
  HEDDLE_CHECK(result.ok(), "reference matrices are small");
  const int64_t height = Granule(x.rows());
  const int64_t panels = std::max<int64_t>(1, (x.rows() + height - 1) / height);
  for (int64_t group = 1; group <= count; ++group) {
    for (int64_t j = 0; j < x.columns(); ++j) {
      std::vector<Member> members;
      for (int64_t i = 0; i < x.rows(); ++i)
        if (std::floor(groups.At(i, 0)) == static_cast<double>(group))
          members.push_back({i / height, x.At(i, j), weights == nullptr ? 1 : weights->At(i, 0)});
      result->mutable_data()[(group - 1) * x.columns() + j] = ResultOf(members, panels, fn, order);
    }
  }
  return *std::move(result);
}

}  // namespace heddle::ops::reference
