// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// Numbers and texts as bytes one behind the other, and back; every Take is false when the bytes end too
// early.
namespace heddle::engine {

template <typename T>
void Append(std::string* out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out->append(bytes, sizeof(T));
}

template <typename T>
bool Take(std::string_view* in, T* value) {
  if (in->size() < sizeof(T)) return false;
  std::memcpy(value, in->data(), sizeof(T));
  in->remove_prefix(sizeof(T));
  return true;
}

inline void AppendText(std::string* out, std::string_view text) {
  Append(out, static_cast<uint32_t>(text.size()));
  out->append(text);
}

inline bool TakeText(std::string_view* in, std::string* text) {
  uint32_t size = 0;
  if (!Take(in, &size) || in->size() < size) return false;
  text->assign(in->substr(0, size));
  in->remove_prefix(size);
  return true;
}

}  // namespace heddle::engine
