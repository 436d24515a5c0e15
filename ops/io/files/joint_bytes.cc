// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/joint_bytes.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/memory/block_pool.h"
#include "ops/io/files/hidden_names.h"
#include "ops/io/files/replacement.h"

namespace heddle::ops {
namespace {

constexpr int64_t kBlockBytes = 4096;  // A page, in which file systems of networks keep what is written.
constexpr int64_t kLeastHeld = int64_t{64} << 10, kMostHeld = int64_t{4} << 20;
constexpr int64_t kMostWritten = int64_t{1} << 30;

int64_t BytesToBlock(int64_t offset) { return (kBlockBytes - offset % kBlockBytes) % kBlockBytes; }

// A quarter of what is free: others may need memory meanwhile.
int64_t MostInMemory() {
  const BlockPool& pool = BlockPool::Process();
  const int64_t free = pool.budget().limit() - pool.budget().used() + pool.Statistics().trimmable_bytes;
  return std::max<int64_t>(0, free / 4);
}

// An empty file that has no name.
Descriptor NamelessFile(const FilePlace& place) {
  Descriptor file(openat(place.folder(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.ok() || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  const std::string name = NewHiddenName();
  Descriptor named(
      openat(place.folder(), name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (named.ok()) unlinkat(place.folder(), name.c_str(), 0);
  return named;
}

}  // namespace

JointBytes::JointBytes(Descriptor file, FilePlace place, std::string shown, std::optional<int64_t> offset)
    : file_(std::move(file)), place_(std::move(place)), shown_(std::move(shown)), offset_(offset) {
  if (offset_)
    first_.offset = *offset_;
  else
    most_in_memory_ = MostInMemory();
}

Status JointBytes::Append(std::string_view bytes) {
  size_ += static_cast<int64_t>(bytes.size());
  return offset_ ? WriteBlocks(bytes) : Hold(bytes);
}

Status JointBytes::PlaceAt(int64_t offset) {
  offset_ = first_.offset = offset;
  for (Held& held : held_) {
    HEDDLE_RETURN_IF_ERROR(WriteBlocks(held.memory.view().substr(0, static_cast<size_t>(held.bytes))));
    held.memory = CountedBytes();
  }
  held_.clear();
  if (!on_disk_.ok()) return OkStatus();
  CountedBytes piece;
  const int64_t on_disk = size_ - in_memory_;
  for (int64_t at = 0; at < on_disk; at += kMostHeld) {
    HEDDLE_RETURN_IF_ERROR(piece.Renew(std::min(kMostHeld, on_disk - at), shown_));
    HEDDLE_RETURN_IF_ERROR(ReadBytesAt(on_disk_.get(), shown_, on_disk, at,
                                       static_cast<int64_t>(piece.view().size()), piece.data()));
    HEDDLE_RETURN_IF_ERROR(WriteBlocks(piece.view()));
  }
  on_disk_ = Descriptor();
  return OkStatus();
}

Result<std::vector<PlacedBytes>> JointBytes::Finish() {
  // Some file systems tell only here that there is no room.
  if (fsync(file_.get()) != 0 || close(file_.Release()) != 0) return FileError("write", shown_);
  std::vector<PlacedBytes> left;
  if (!first_.bytes.empty()) left.push_back(std::move(first_));
  if (!block_.empty())
    left.push_back({.offset = *offset_ - static_cast<int64_t>(block_.size()), .bytes = std::move(block_)});
  return left;
}

Status JointBytes::Hold(std::string_view bytes) {
  while (!on_disk_.ok() && !bytes.empty())
    if (!HoldInMemory(&bytes)) break;
  return bytes.empty() ? OkStatus() : HoldOnDisk(bytes);
}

// Takes some of the bytes; false where memory has no room for more.
bool JointBytes::HoldInMemory(std::string_view* bytes) {
  const auto room = [&] {
    return held_.empty() ? 0 : static_cast<int64_t>(held_.back().memory.view().size()) - held_.back().bytes;
  };
  if (room() == 0) {
    const int64_t more = std::clamp(in_memory_, kLeastHeld, kMostHeld);
    if (in_memory_ + more > most_in_memory_) return false;
    Held next;
    if (!next.memory.Renew(more, shown_).ok()) return false;
    held_.push_back(std::move(next));
  }
  const auto taken = std::min<int64_t>(room(), static_cast<int64_t>(bytes->size()));
  std::copy_n(bytes->data(), taken, held_.back().memory.data() + held_.back().bytes);
  held_.back().bytes += taken;
  in_memory_ += taken;
  bytes->remove_prefix(static_cast<size_t>(taken));
  return true;
}

Status JointBytes::HoldOnDisk(std::string_view bytes) {
  if (!on_disk_.ok()) on_disk_ = NamelessFile(place_);
  if (!on_disk_.ok()) return FileError("write", shown_);
  const int64_t at = size_ - in_memory_ - static_cast<int64_t>(bytes.size());
  return WriteBytesAt(on_disk_.get(), at, bytes, shown_);
}

Status JointBytes::WriteBlocks(std::string_view bytes) {
  const auto take = [&](int64_t most, std::string* out) {
    const size_t taken = std::min(bytes.size(), static_cast<size_t>(most));
    out->append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    *offset_ += static_cast<int64_t>(taken);
  };
  if (*offset_ - first_.offset < BytesToBlock(first_.offset))
    take(BytesToBlock(first_.offset) - (*offset_ - first_.offset), &first_.bytes);
  if (!block_.empty()) take(kBlockBytes - static_cast<int64_t>(block_.size()), &block_);
  if (bytes.empty() && static_cast<int64_t>(block_.size()) < kBlockBytes) return OkStatus();
  const std::string_view blocks = bytes.substr(0, bytes.size() / kBlockBytes * kBlockBytes);
  HEDDLE_RETURN_IF_ERROR(WriteAt(*offset_ - static_cast<int64_t>(block_.size()), block_, blocks));
  block_.clear();
  bytes.remove_prefix(blocks.size());
  *offset_ += static_cast<int64_t>(blocks.size());
  take(kBlockBytes, &block_);
  return OkStatus();
}

Status JointBytes::WriteAt(int64_t offset, std::string_view first, std::string_view second) {
  const int64_t begin = offset, count = static_cast<int64_t>(first.size() + second.size());
  if (!first.empty() && !second.empty()) {
    iovec parts[] = {{const_cast<char*>(first.data()), first.size()},
                     {const_cast<char*>(second.data()), std::min<size_t>(second.size(), kMostWritten)}};
    const ssize_t written = pwritev(file_.get(), parts, 2, static_cast<off_t>(offset));
    if (written < 0 && errno != EINTR) return FileError("write", shown_);
    // What it has not taken is written one after the other.
    const size_t done = static_cast<size_t>(std::max<ssize_t>(written, 0));
    offset += static_cast<int64_t>(done);
    second.remove_prefix(std::max(done, first.size()) - first.size());
    first.remove_prefix(std::min(done, first.size()));
  }
  HEDDLE_RETURN_IF_ERROR(WriteBytesAt(file_.get(), offset, first, shown_));
  HEDDLE_RETURN_IF_ERROR(
      WriteBytesAt(file_.get(), offset + static_cast<int64_t>(first.size()), second, shown_));
  flush_.Add(file_.get(), begin, count);
  return OkStatus();
}

}  // namespace heddle::ops
