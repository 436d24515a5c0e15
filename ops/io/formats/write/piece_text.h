// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/text/double_text.h"

namespace heddle::ops {

/// Text that grows by many small pieces and is used again: what it has taken stays its own.
class PieceText {
 public:
  void Clear() { size_ = 0; }
  size_t size() const { return size_; }
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
  /// The first `size` of so many bytes: a number of bytes that is constant is copied without a call.
  template <size_t kRoom>
  void AppendFrom(const char (&bytes)[kRoom], size_t size) {
    std::memcpy(Room(kRoom), bytes, kRoom);
    size_ += size;
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

/// Takes what PieceText takes, and counts the bytes alone.
class TextLength {
 public:
  size_t size() const { return size_; }

  void Append(char) { ++size_; }
  void Append(std::string_view text) { size_ += text.size(); }
  template <size_t kRoom>
  void AppendFrom(const char (&)[kRoom], size_t size) {
    size_ += size;
  }
  void AppendNumber(double x) { size_ += static_cast<size_t>(LengthOfDouble(x)); }
  void AppendNumber(float x) { size_ += static_cast<size_t>(LengthOfSingle(x)); }
  void AppendNumber(int64_t x) {
    char text[kNumberRoom];
    size_ += static_cast<size_t>(std::to_chars(text, text + kNumberRoom, x).ptr - text);
  }

 private:
  size_t size_ = 0;
};

}  // namespace heddle::ops
