// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>

#include "core/frame.h"
#include "core/matrix.h"

// The transforms as loops over cells and tokens (language reference 3.15). Specs that name columns name them
// alike in frames and metadata.
namespace heddle::ops::reference {

std::pair<Matrix, Frame> TransformEncode(const Frame& target, std::string_view spec);
Matrix TransformApply(const Frame& target, const Frame& meta, std::string_view spec);
Frame TransformDecode(const Matrix& target, const Frame& meta, std::string_view spec);
Matrix TransformColumnMap(const Frame& meta, std::string_view spec);

}  // namespace heddle::ops::reference
