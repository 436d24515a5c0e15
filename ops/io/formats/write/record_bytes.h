// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace heddle::ops {

/// Numbers and texts one behind the other, as ranks tell them to each other.
class RecordWriter {
 public:
  template <typename T>
  void Put(const T& record) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&record), sizeof(T));
  }
  void PutText(std::string_view text) {
    Put(text.size());
    bytes_.append(text);
  }
  std::string Take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Takes them out again. What is not there is 0 or empty, and makes ok() false.
class RecordTaker {
 public:
  explicit RecordTaker(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T Take() {
    T record{};
    if (Has(sizeof(T))) {
      std::memcpy(static_cast<void*>(&record), rest_.data(), sizeof(T));
      rest_.remove_prefix(sizeof(T));
    }
    return record;
  }
  std::string TakeText() {
    const auto size = Take<size_t>();
    if (!Has(size)) return {};
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }
  bool ok() const { return ok_; }
  bool AtEnd() const { return rest_.empty() || !ok_; }

 private:
  bool Has(size_t bytes) {
    ok_ = ok_ && bytes <= rest_.size();
    return ok_;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace heddle::ops
