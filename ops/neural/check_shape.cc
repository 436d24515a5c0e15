// SPDX-License-Identifier: Apache-2.0
#include "ops/neural/check_shape.h"

namespace heddle::ops {

Status CheckShape(std::string_view op, std::string_view what, Shape shape, Shape expected, StatusCode code) {
  const auto differs = [](int64_t a, int64_t b) { return a != kUnknown && b != kUnknown && a != b; };
  if (!differs(shape.rows, expected.rows) && !differs(shape.columns, expected.columns)) return OkStatus();
  return Status(code, fmt::format("{}: {} is {} but must be {}", op, what, shape, expected));
}

}  // namespace heddle::ops
