// SPDX-License-Identifier: Apache-2.0
#include "ops/base/whole_number.h"

#include <cmath>

#include "core/values/sizes.h"

namespace heddle::ops {

std::optional<int64_t> WholeNumber(const Scalar& x) {
  if (x.IsDouble() && !(std::fabs(x.AsDouble()) < 0x1p63)) return std::nullopt;
  if (x.IsString()) return std::nullopt;
  return x.AsInteger();
}

Result<int64_t> RequireWholeNumber(const Scalar& x, std::string_view op, std::string_view what,
                                   StatusCode code) {
  if (const std::optional<int64_t> whole = WholeNumber(x)) return *whole;
  return Status(
      code, x.IsString() ? fmt::format("{}: {} must be a number, not the string \"{}\"", op, what, x.ToText())
                         : fmt::format("{}: {} must be a 64-bit integer, not {}", op, what, x.ToText()));
}

Result<int64_t> RequireSize(const Scalar& x, std::string_view op, std::string_view what, StatusCode code) {
  const std::optional<int64_t> size = WholeNumber(x);
  const bool is_number = !x.IsString() && !std::isnan(x.AsDouble());
  if (size && *size >= 0 && *size <= kMostLength) return *size;
  if (is_number && x.AsDouble() > 0)
    return ResourceExhausted("{}: {} must be at most {}, not {}", op, what, kMostLength, x.ToText());
  return Status(code,
                fmt::format("{}: {} must be a number that is not negative, not {}", op, what, x.ToText()));
}

}  // namespace heddle::ops
