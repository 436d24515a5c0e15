// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/values/matrix.h"

// What aggregate() means, as literal loops. For tests only.
namespace heddle::ops::reference {

/// aggregate(target=x, groups=groups, weights=weights, fn=, order=, ngroups=count); weights may be nullptr.
/// "sum", "count", "min" and "max" in the order of docs/numerics.md, section 2, which adds up all panels,
/// empty ones too; the others straight from their formulas, in long doubles.
Matrix GroupAggregate(const Matrix& x, const Matrix& groups, const Matrix* weights, std::string_view fn,
                      int order, int64_t count);

}  // namespace heddle::ops::reference
