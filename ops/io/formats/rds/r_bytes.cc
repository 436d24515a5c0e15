// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/rds/r_bytes.h"

#include <algorithm>

namespace heddle::ops {

Status RBytes::Damaged(std::string_view what) const {
  return DataLoss("cannot read '{}': it is damaged at byte {}: {}", path_, offset_, what);
}

Status RBytes::Take(int64_t count, std::string_view* bytes) {
  if (count > left()) return DataLoss("cannot read '{}': it is cut off inside of an object", path_);
  const auto held = static_cast<int64_t>(window_.size());
  if (offset_ < window_begin_ || offset_ + count > window_begin_ + held) {
    const int64_t read = std::min(left(), std::max(count, window_bytes_));
    window_ = {};
    HEDDLE_ASSIGN_OR_RETURN(window_, file_.Read(offset_, read, &buffer_));
    window_begin_ = offset_;
  }
  *bytes = window_.substr(static_cast<size_t>(offset_ - window_begin_), static_cast<size_t>(count));
  offset_ += count;
  return OkStatus();
}

Status RBytes::Skip(int64_t count) {
  if (count > left()) return DataLoss("cannot read '{}': it is cut off inside of an object", path_);
  offset_ += count;
  return OkStatus();
}

Status RBytes::TakeInt(int32_t* number) {
  std::string_view bytes;
  HEDDLE_RETURN_IF_ERROR(Take(4, &bytes));
  *number = LoadNumber<int32_t>(bytes.data(), is_little_endian_);
  return OkStatus();
}

Status RBytes::TakeHeadOfString(RString* string, int64_t* length) {
  int32_t flags = 0, number = 0;
  HEDDLE_RETURN_IF_ERROR(TakeInt(&flags));
  if ((flags & 255) != kCodeString) return Damaged("a text is missing");
  HEDDLE_RETURN_IF_ERROR(TakeInt(&number));
  if (number < -1) return Damaged("a text has less than no bytes");
  string->flags = static_cast<uint32_t>(flags);
  string->is_missing = number == -1;
  string->bytes = {};
  *length = std::max<int64_t>(0, number);
  return OkStatus();
}

Status RBytes::TakeString(RString* string) {
  int64_t length = 0;
  HEDDLE_RETURN_IF_ERROR(TakeHeadOfString(string, &length));
  return Take(length, &string->bytes);
}

Status RBytes::SkipString() {
  RString string;
  int64_t length = 0;
  HEDDLE_RETURN_IF_ERROR(TakeHeadOfString(&string, &length));
  return Skip(length);
}

}  // namespace heddle::ops
