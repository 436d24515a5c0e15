// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace heddle::ops {

using Sha256Digest = std::array<uint8_t, 32>;

/// SHA-256 (FIPS 180-4) of the parts, one behind the other.
Sha256Digest Sha256(std::initializer_list<std::string_view> parts);

/// HMAC with SHA-256 (RFC 2104): nobody without the secret makes it. The secret has 64 bytes at most.
Sha256Digest HmacSha256(std::string_view secret, std::initializer_list<std::string_view> parts);

}  // namespace heddle::ops
