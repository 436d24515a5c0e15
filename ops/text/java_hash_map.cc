// SPDX-License-Identifier: Apache-2.0
#include "ops/text/java_hash_map.h"

#include "core/text/utf8.h"

namespace heddle::ops {

int32_t JavaHash(std::string_view text) {
  uint32_t hash = 0;
  const auto add = [&](uint32_t unit) { hash = 31 * hash + unit; };
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text, at);
    if (length == 0) {  // As Java reads a byte that is part of no character.
      add(0xfffd);
      ++at;
      continue;
    }
    const auto first = static_cast<unsigned char>(text[at]);
    uint32_t character = length == 1 ? first : first & (0xffU >> (length + 1));
    for (size_t i = 1; i < length; ++i)
      character = character << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3fU);
    if (character >= 0x10000) {
      add(0xd800 + ((character - 0x10000) >> 10));
      add(0xdc00 + ((character - 0x10000) & 0x3ff));
    } else {
      add(character);
    }
    at += length;
  }
  return static_cast<int32_t>(hash);
}

uint32_t JavaBucketOf(std::string_view key, size_t keys) {
  uint64_t buckets = 16;
  while (4 * uint64_t{keys} > 3 * buckets) buckets *= 2;
  const auto hash = static_cast<uint32_t>(JavaHash(key));
  return (hash ^ hash >> 16) & static_cast<uint32_t>(buckets - 1);
}

}  // namespace heddle::ops
