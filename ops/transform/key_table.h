// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace heddle::ops {

// Finalizer of MurmurHash3: neighbours go apart.
inline uint64_t MixBits(uint64_t bits) {
  bits = (bits ^ bits >> 33) * 0xff51afd7ed558ccdULL;
  bits = (bits ^ bits >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return bits ^ bits >> 33;
}
inline uint64_t HashOf(uint64_t bits) { return MixBits(bits); }
/// Eight bytes at a time; the same on every machine of one byte order, and seen by nobody.
inline uint64_t HashOf(std::string_view text) {
  uint64_t hash = text.size() * 0x9e3779b97f4a7c15ULL, word = 0;
  const char* at = text.data();
  size_t left = text.size();
  for (; left > 8; left -= 8, at += 8) {
    std::memcpy(&word, at, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  }
  word = 0;
  std::memcpy(&word, at, left);
  return MixBits(hash ^ word);
}

/// Numbers of keys in order of appearance, from 0: open addressing, at most half full. A slot holds a part of
/// the hash beside the number, so that keys are compared about once for each look.
template <typename Key>
class KeyTable {
 public:
  /// The number of the key, which `row` is the first to hold if it is new.
  int32_t NumberOf(const Key& key, uint64_t hash, int64_t row) {
    if (2 * keys_.size() >= slots_.size()) Grow();
    Slot& slot = slots_[PlaceOf(key, hash)];
    if (slot.number == 0) {
      keys_.push_back(key);
      hashes_.push_back(hash);
      rows_.push_back(row);
      slot = {TagOf(hash), static_cast<uint32_t>(keys_.size())};
    }
    return static_cast<int32_t>(slot.number - 1);
  }
  /// Of a key that is there; -1 of another one.
  int32_t Find(const Key& key, uint64_t hash) const {
    return slots_.empty() ? -1 : static_cast<int32_t>(slots_[PlaceOf(key, hash)].number) - 1;
  }
  const std::vector<Key>& keys() const { return keys_; }
  const std::vector<uint64_t>& hashes() const { return hashes_; }
  std::vector<int64_t>& rows() { return rows_; }  ///< The first of each key.
  const std::vector<int64_t>& rows() const { return rows_; }

 private:
  struct Slot {
    uint32_t tag = 0;
    uint32_t number = 0;  // And one; 0: empty.
  };
  static uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

  size_t PlaceOf(const Key& key, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    while (slots_[at].number != 0 && (slots_[at].tag != TagOf(hash) || keys_[slots_[at].number - 1] != key))
      at = (at + 1) & mask;
    return at;
  }
  void Grow() {
    const size_t size = std::max<size_t>(64, 4 * slots_.size()), mask = size - 1;
    slots_.assign(size, {});
    for (size_t i = 0; i < keys_.size(); ++i) {
      size_t at = hashes_[i] & mask;
      while (slots_[at].number != 0) at = (at + 1) & mask;
      slots_[at] = {TagOf(hashes_[i]), static_cast<uint32_t>(i + 1)};
    }
  }

  std::vector<Slot> slots_;
  std::vector<Key> keys_;
  std::vector<uint64_t> hashes_;
  std::vector<int64_t> rows_;
};

}  // namespace heddle::ops
