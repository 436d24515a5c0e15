// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle::ops {

/// The CRC-32C (Castagnoli's polynomial, as iSCSI and ext4 use it) of `bytes` behind those whose checksum is
/// `before`. Processors since 2008 have an instruction for it, so that it costs less than reading the bytes
/// does.
uint32_t Crc32c(std::string_view bytes, uint32_t before = 0);

}  // namespace heddle::ops
