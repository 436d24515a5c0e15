// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/replacement.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "ops/io/files/changed_files.h"
#include "ops/io/files/counted_bytes.h"
#include "ops/io/files/hidden_names.h"

namespace heddle::ops {
namespace {

constexpr int kMostNames = 100;

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

Replacement::Replacement(Replacement&& other) noexcept
    : place_(std::move(other.place_)),
      shown_(std::move(other.shown_)),
      temporary_(std::exchange(other.temporary_, std::string())),
      fd_(std::exchange(other.fd_, -1)) {}

Replacement::~Replacement() {
  if (!temporary_.empty()) {
    unlinkat(place_.folder(), temporary_.c_str(), 0);
    HiddenNames::OfProcess().Remove(place_.folder(), temporary_);
  }
  if (fd_ >= 0) close(fd_);
}

Result<Replacement> Replacement::Begin(FilePlace place, const std::string& shown) {
  struct stat present {};
  if (place.Look(&present)) {
    if (S_ISDIR(present.st_mode))
      return DataLoss("cannot write '{}': a directory of that name is there", shown);
    // A device or a pipe would be gone afterwards.
    if (!S_ISREG(present.st_mode)) return DataLoss("cannot write '{}': it is no ordinary file", shown);
  } else if (errno == ENAMETOOLONG) {  // told before much is written
    return FileError("write", shown);
  }
  Replacement replacement(std::move(place), shown);
  HEDDLE_RETURN_IF_ERROR(replacement.Open());
  return replacement;
}

Status Replacement::Open() {
  // A file without a name vanishes with the process, however that ends.
  fd_ = openat(place_.folder(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (fd_ >= 0) {
    LockHidden(fd_);
    return OkStatus();
  }
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return FileError("write", shown_);
  return MakeName();
}

// Gives the file a name that no other has.
Status Replacement::MakeName() {
  for (int tries = 0; tries < kMostNames; ++tries) {
    std::string name = NewHiddenName();  // Moved: a copy may have no memory when the file is there.
    HiddenNames::OfProcess().Add(place_.folder(), name);
    if (fd_ < 0) {
      fd_ = openat(place_.folder(), name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
      if (fd_ >= 0 && !LockHidden(fd_)) {
        close(std::exchange(fd_, -1));
        errno = EEXIST;
      }
      if (fd_ >= 0) temporary_ = std::move(name);
    } else if (linkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", fd_).c_str(), place_.folder(), name.c_str(),
                      AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = std::move(name);
    }
    if (!temporary_.empty()) return OkStatus();
    const int error = errno;
    HiddenNames::OfProcess().Remove(place_.folder(), name);
    errno = error;
    if (errno != EEXIST) break;
  }
  return FileError("write", shown_);
}

// What an older file allows others stays as it is; never more than that, also for a moment.
Status Replacement::TakeOver() {
  struct stat old {};
  if (!place_.Look(&old) || !S_ISREG(old.st_mode)) return OkStatus();
  struct stat own {};
  if (fstat(fd_, &own) != 0) return FileError("write", shown_);
  mode_t mode = old.st_mode & 07777;
  if (fchmod(fd_, mode & 0700) != 0) return FileError("write", shown_);
  if (old.st_uid != own.st_uid && fchown(fd_, old.st_uid, static_cast<gid_t>(-1)) != 0)
    mode &= ~mode_t{S_ISUID};
  // What the old group was allowed is not for the group that the file has instead.
  if (old.st_gid != own.st_gid && fchown(fd_, static_cast<uid_t>(-1), old.st_gid) != 0)
    mode &= ~(mode_t{S_ISGID} | mode_t{S_IRWXG});
  if (fchmod(fd_, mode) != 0) return FileError("write", shown_);
  return OkStatus();
}

Result<std::string> Replacement::Hide() {
  if (temporary_.empty()) HEDDLE_RETURN_IF_ERROR(MakeName());
  return temporary_;
}

Status Replacement::Commit(ChangeGate* gate) {
  HEDDLE_RETURN_IF_ERROR(TakeOver());
  if (fsync(fd_) != 0) return FileError("write", shown_);
  const auto give_name = [&] { return temporary_.empty() ? MakeName() : OkStatus(); };
  return ChangeThrough(gate, shown_, give_name, [&] {
    if (!HiddenNames::OfProcess().TakePlace([&] {
          return renameat(place_.folder(), temporary_.c_str(), place_.folder(), place_.name()) == 0;
        }))
      return FileError("write", shown_);
    HiddenNames::OfProcess().Remove(place_.folder(), std::exchange(temporary_, std::string()));
    NoteChangedFile(shown_);
    return OkStatus();
  });
}

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
