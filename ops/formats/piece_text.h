// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/text/double_text.h"

namespace heddle::ops {

/// Text that grows by many small pieces and is used again: what it has taken stays its own.
class PieceText {
 public:
  void Clear() { size_ = 0; }
  std::string_view view() const { return {memory_.data(), size_}; }

  /// Behind the text, `most` bytes to write on; Take(end) makes those before `end` part of it.
  char* Room(size_t most) {
    if (memory_.size() - size_ < most) memory_.resize(2 * memory_.size() + most);
    return memory_.data() + size_;
  }
  void Take(const char* end) { size_ = static_cast<size_t>(end - memory_.data()); }

  void Append(std::string_view text) { Take(Copy(text, Room(text.size()))); }
  void Append(char c) { Append(std::string_view(&c, 1)); }
  void AppendNumber(double x) { Take(WriteDouble(x, Room(kNumberRoom))); }
  void AppendNumber(float x) { Take(WriteSingle(x, Room(kNumberRoom))); }
  void AppendNumber(int64_t x) {
    char* const out = Room(kNumberRoom);
    Take(std::to_chars(out, out + kNumberRoom, x).ptr);
  }

 private:
  static char* Copy(std::string_view text, char* out) {
    text.copy(out, text.size());
    return out + text.size();
  }

  std::string memory_;
  size_t size_ = 0;
};

}  // namespace heddle::ops
