// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/status.h"
#include "core/values/shape.h"

namespace heddle::ops {

/// An error with `code` unless `what` ("X", "dout"), an input of `op`, can have the shape that the others ask
/// for, as far as both are known.
Status CheckShape(std::string_view op, std::string_view what, Shape shape, Shape expected, StatusCode code);

}  // namespace heddle::ops
