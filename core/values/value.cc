// SPDX-License-Identifier: Apache-2.0
#include "core/values/value.h"

namespace heddle {

Shape Value::shape() const {
  switch (kind()) {
    case Kind::kScalar: return {0, 0};
    case Kind::kMatrix: return matrix().shape();
    case Kind::kFrame: return frame().shape();
    case Kind::kPanels: return panels()->shape();
  }
  HEDDLE_CHECK(false, "values of every kind have a shape");
}

int64_t Value::bytes() const {
  switch (kind()) {
    case Kind::kScalar:
      return scalar().IsString() ? static_cast<int64_t>(scalar().AsString().size()) : int64_t{8};
    case Kind::kMatrix: return matrix().bytes();
    case Kind::kFrame: return frame().bytes();
    case Kind::kPanels: return panels()->bytes();
  }
  HEDDLE_CHECK(false, "values of every kind have a size");
}

}  // namespace heddle
