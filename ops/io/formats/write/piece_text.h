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
  operator std::string_view() const { return view(); }  // NOLINT(google-explicit-constructor): it is text.

  /// Behind the text, `most` bytes to write on; Take(end) makes those before `end` part of it.
  char* Room(size_t most) {
    if (memory_.size() - size_ < most) memory_.resize(2 * memory_.size() + most);
    return memory_.data() + size_;
  }
  void Take(const char* end) { size_ = static_cast<size_t>(end - memory_.data()); }

  void Append(char c) {
    *Room(1) = c;
    ++size_;
  }
  void Append(std::string_view text) {
    if (text.size() == 1) return Append(text[0]);  // Separators are many.
    text.copy(Room(text.size()), text.size());
    size_ += text.size();
  }
  void AppendNumber(double x) { Take(WriteDouble(x, Room(kNumberRoom))); }
  void AppendNumber(float x) { Take(WriteSingle(x, Room(kNumberRoom))); }
  void AppendNumber(int64_t x) {
    char* const out = Room(kNumberRoom);
    Take(std::to_chars(out, out + kNumberRoom, x).ptr);
  }

 private:
  std::string memory_;
  size_t size_ = 0;
};

}  // namespace heddle::ops
