// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace heddle::cluster {

/// 128 random bits as 32 hexadecimal digits.
std::string MakeToken();

}  // namespace heddle::cluster
