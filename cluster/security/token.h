// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace heddle::cluster {

/// 128 random bits as 32 hexadecimal digits.
std::string MakeToken();
/// "heddle_" and 256 random bits: what somebody keeps who is to be let in. The word before it lets those find
/// it who look for secrets in what is published.
std::string MakeSecret();

}  // namespace heddle::cluster
