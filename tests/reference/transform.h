// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <utility>

#include "core/values/frame.h"
#include "core/values/matrix.h"

// The transforms as loops over cells and tokens (language reference 3.15). Specs that name columns name them
// alike in frames and metadata.
namespace heddle::ops::reference {

std::pair<Matrix, Frame> TransformEncode(const Frame& target, std::string_view spec);
Matrix TransformApply(const Frame& target, const Frame& meta, std::string_view spec);
Frame TransformDecode(const Matrix& target, const Frame& meta, std::string_view spec);
Matrix TransformColumnMap(const Frame& meta, std::string_view spec);
Matrix CategoricalMask(const Frame& meta, std::string_view spec);
/// tokenize() with algo: split at blanks, in the long format without padding; texts of ASCII.
Frame Tokenize(const Frame& target, std::string_view spec, int64_t most);

}  // namespace heddle::ops::reference
