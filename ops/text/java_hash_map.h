// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle::ops {

/// Java's hashCode() of a text.
int32_t JavaHash(std::string_view text);

/// Where a java.util.HashMap of so many keys has this one: it gives them bucket by bucket, those of one
/// bucket in the order in which they came. (Buckets of eight and more keys become trees there, whose order is
/// not copied.)
uint32_t JavaBucketOf(std::string_view key, size_t keys);

}  // namespace heddle::ops
