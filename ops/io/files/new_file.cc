// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/new_file.h"

#include <unistd.h>

#include <algorithm>

#include "ops/io/files/counted_bytes.h"

namespace heddle::ops {
namespace {

class WrittenBytes : public InputFile {
 public:
  WrittenBytes(int descriptor, int64_t size, std::string shown)
      : descriptor_(descriptor), size_(size), shown_(std::move(shown)) {}

  int64_t size() const override { return size_; }
  Result<std::string_view> Read(int64_t begin, int64_t count, CountedBytes* buffer) const override {
    HEDDLE_RETURN_IF_ERROR(buffer->Renew(count, shown_));
    HEDDLE_RETURN_IF_ERROR(ReadInto(begin, count, buffer->data()));
    return buffer->view();
  }
  Status ReadInto(int64_t begin, int64_t count, char* out) const override {
    return ReadBytesAt(descriptor_, shown_, size_, begin, count, out);
  }

 private:
  const int descriptor_;
  const int64_t size_;
  const std::string shown_;
};

}  // namespace

Status NewFile::Append(std::string_view bytes) {
  const auto count = static_cast<int64_t>(bytes.size());
  HEDDLE_RETURN_IF_ERROR(WriteBytesAt(replacement_.fd(), size_, bytes, shown_));
  flush_.Add(replacement_.fd(), size_, count);
  size_ += count;
  return OkStatus();
}

Status NewFile::ReplaceBeginning(int64_t count, std::string_view bytes) {
  const auto more = static_cast<int64_t>(bytes.size());
  if (more != count) HEDDLE_RETURN_IF_ERROR(Move(count, more));
  return WriteBytesAt(replacement_.fd(), 0, bytes, shown_);
}

// Moves what stands from `from` on, so that it begins at `to`.
Status NewFile::Move(int64_t from, int64_t to) {
  constexpr int64_t kBytesAtOnce = int64_t{1} << 20;
  CountedBytes buffer;
  HEDDLE_RETURN_IF_ERROR(buffer.Renew(std::min(kBytesAtOnce, size_ - from), shown_));
  const auto move = [&](int64_t begin, int64_t end) -> Status {
    HEDDLE_RETURN_IF_ERROR(ReadBytesAt(replacement_.fd(), shown_, size_, begin, end - begin, buffer.data()));
    return WriteBytesAt(replacement_.fd(), begin + to - from,
                        buffer.view().substr(0, static_cast<size_t>(end - begin)), shown_);
  };
  if (to < from) {
    for (int64_t at = from; at < size_; at += kBytesAtOnce)
      HEDDLE_RETURN_IF_ERROR(move(at, std::min(at + kBytesAtOnce, size_)));
  } else {
    for (int64_t end = size_; end > from; end -= kBytesAtOnce)
      HEDDLE_RETURN_IF_ERROR(move(std::max(from, end - kBytesAtOnce), end));
  }
  size_ += to - from;
  if (to < from && ftruncate(replacement_.fd(), size_) != 0) return FileError("write", shown_);
  return OkStatus();
}

std::unique_ptr<InputFile> NewFile::Written() const {
  return std::make_unique<WrittenBytes>(replacement_.fd(), size_, shown_);
}

}  // namespace heddle::ops
