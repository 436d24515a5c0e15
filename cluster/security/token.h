// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace heddle::cluster {

/// 128 random bits as 32 hexadecimal digits.
std::string MakeToken();
/// "heddle_" and 256 random bits: what somebody keeps who is to be let in. The word before it lets those find
/// it who look for secrets in what is published.
std::string MakeSecret();

/// The first 128 bits of SHA-256 of the kind, a line end and the text, as 32 hexadecimal digits.
std::string ShortHash(const std::string& kind, const std::string& text);
/// By which a master and its administrators know the worker that has this secret: who knows the uuid cannot
/// be that worker.
std::string UuidOf(const std::string& secret);

}  // namespace heddle::cluster
