// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/values/sizes.h"
#include "ops/base/arguments.h"
#include "ops/base/operator.h"
#include "ops/base/whole_number.h"

// Bounds of index and indexAssign.
namespace heddle::ops {

/// A bound as the script gives it, 1-based and inclusive.
class Bound {
 public:
  Bound() = default;  // Not known yet.
  explicit Bound(const Scalar& given) : given_(&given), number_(WholeNumber(given)) {}

  bool IsKnown() const { return given_ != nullptr; }
  // Whether it may be a row (column) of a matrix with so many of them (kUnknown: any). NaN, an infinity and
  // 1e308 are none.
  bool IsWithin(int64_t length) const {
    return !IsKnown() ||
           (number_ && *number_ >= 1 && *number_ <= (length == kUnknown ? kMostLength : length));
  }
  int64_t number() const { return *number_; }  // Of a known one within some length.
  std::string Text() const {
    if (!IsKnown()) return "?";
    return number_ ? std::to_string(*number_) : given_->ToText();
  }

 private:
  const Scalar* given_ = nullptr;
  std::optional<int64_t> number_;
};

/// Bounds of a range in one dimension.
struct Range {
  bool all = false;     // Both bounds left out.
  bool single = false;  // Both bounds are one node: one row or column, wherever it is.
  Bound lower;
  Bound upper;

  bool IsKnown() const { return lower.IsKnown() && upper.IsKnown(); }
  // Number of rows or columns of a range in a dimension of this length; only after a check.
  int64_t Count(int64_t length) const {
    if (all) return length;
    if (single) return 1;
    return IsKnown() ? upper.number() - lower.number() + 1 : kUnknown;
  }
  // 0-based, half open; only after a check.
  int64_t Begin() const { return all ? 0 : lower.number() - 1; }
  int64_t End(int64_t length) const { return all ? length : upper.number(); }
};

std::string RangeText(const Range& range);

/// Whether the ranges can lie in a value of this shape (kUnknown: any), else what is wrong with them.
Status CheckRanges(const Range& rows, const Range& columns, Shape shape, StatusCode code,
                   std::string_view what = "matrix");
/// The range whose bounds are inputs i and i + 1.
Result<Range> InferRange(const InferContext& context, int i);
/// The same of scalars that are there; nullptr for one that is left out.
Range GivenRange(const Scalar* lower, const Scalar* upper);
Range GivenRange(const KernelCall& call, int i);

}  // namespace heddle::ops
