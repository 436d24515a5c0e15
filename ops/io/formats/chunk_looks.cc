// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/chunk_looks.h"

namespace heddle::ops {
namespace {

void Append(int64_t number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

bool Take(std::string_view* bytes, int64_t* number) {
  if (bytes->size() < sizeof(*number)) return false;
  std::memcpy(number, bytes->data(), sizeof(*number));
  bytes->remove_prefix(sizeof(*number));
  return true;
}

}  // namespace

// The number of records; the offsets, one more; of each record its size and its bytes.
std::string LookedShare::ToBytes() const {
  std::string bytes;
  Append(static_cast<int64_t>(records.size()), &bytes);
  for (const int64_t offset : offsets) Append(offset, &bytes);
  for (const std::string& record : records) {
    Append(static_cast<int64_t>(record.size()), &bytes);
    bytes += record;
  }
  return bytes;
}

std::optional<LookedShare> LookedShare::Parse(std::string_view bytes) {
  LookedShare share;
  int64_t count = 0, size = 0;
  if (!Take(&bytes, &count) || count < 0 || count >= static_cast<int64_t>(bytes.size())) return std::nullopt;
  for (int64_t i = 0; i <= count; ++i)
    if (!Take(&bytes, &share.offsets.emplace_back())) return std::nullopt;
  for (int64_t i = 0; i < count; ++i) {
    if (!Take(&bytes, &size) || size < 0 || size > static_cast<int64_t>(bytes.size())) return std::nullopt;
    share.records.emplace_back(bytes.substr(0, static_cast<size_t>(size)));
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return bytes.empty() ? std::optional(std::move(share)) : std::nullopt;
}

ChunkLooks ChunkLooks::OfShare(ShareOfChunks share) {
  ChunkLooks looks;
  looks.share_ = share;
  looks.is_share_ = true;
  return looks;
}

ChunkLooks ChunkLooks::Of(std::vector<LookedShare> shares) {
  ChunkLooks looks;
  looks.known_ = std::move(shares);
  return looks;
}

}  // namespace heddle::ops
