// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::cluster {

/// The last of a text that grows: at most kMostBytes, with their place in the whole.
class LogTail {
 public:
  static constexpr size_t kMostBytes = 32 << 10;

  int64_t first() const { return end_ - static_cast<int64_t>(text_.size()); }
  int64_t end() const { return end_; }
  const std::string& text() const { return text_; }
  /// What stands from `offset` on, as far as it is here.
  std::string_view From(int64_t offset) const {
    const int64_t skip = offset - first();
    return skip <= 0 ? std::string_view(text_)
           : skip >= static_cast<int64_t>(text_.size())
               ? std::string_view()
               : std::string_view(text_).substr(static_cast<size_t>(skip));
  }

  void Append(std::string_view text) { Merge(end_, text); }
  /// Takes in a part of the text that begins at `offset`: what is here already stays. False when nothing was
  /// new. After a gap only the new part is left.
  bool Merge(int64_t offset, std::string_view text) {
    const int64_t end = offset + static_cast<int64_t>(text.size());
    if (end <= end_) return false;
    if (offset > end_)
      text_.clear();
    else
      text.remove_prefix(static_cast<size_t>(end_ - offset));
    text_.append(text);
    end_ = end;
    if (text_.size() > kMostBytes) text_.erase(0, text_.size() - kMostBytes);
    return true;
  }

 private:
  std::string text_;
  int64_t end_ = 0;
};

}  // namespace heddle::cluster
