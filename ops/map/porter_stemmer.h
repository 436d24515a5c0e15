// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace heddle::ops {

/// The stem of an English word in small letters (Porter, An algorithm for suffix stripping, Program 14(3),
/// 1980). Words of one or two letters are their own stems.
std::u16string StemOf(std::u16string_view word);

}  // namespace heddle::ops
