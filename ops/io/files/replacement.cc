// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/replacement.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/environment/random.h"
#include "ops/io/files/changed_files.h"

namespace heddle::ops {
namespace {

constexpr int kMostNames = 100;

// The names of files that are on their way, each with the descriptor of its folder, so that a process that
// ends in the midst of them can take them away. A file takes its place under the lock.
class TemporaryNames {
 public:
  void Add(int folder, const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_.emplace(folder, name);
  }
  void Remove(int folder, const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_.erase({folder, name});
  }
  // False when `rename` fails: the name is still that of a temporary.
  bool TakePlace(int folder, const std::string& name, const std::function<bool()>& rename) {
    const std::lock_guard lock(mutex_);
    if (!rename()) return false;
    names_.erase({folder, name});
    return true;
  }
  // Keeps the lock: the process is about to end.
  void Abandon() {
    mutex_.lock();
    for (const auto& [folder, name] : names_) unlinkat(folder, name.c_str(), 0);
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<int, std::string>> names_;
};

TemporaryNames& Temporaries() {
  static TemporaryNames names;
  return names;
}

// ".0123456789abcdef.part.heddle": short, so that every name that the file system takes can be replaced, and
// random, as processes with the same number in different containers may share a folder.
constexpr std::string_view kPartEnding = ".part.heddle";
constexpr size_t kDigits = 16;
std::string NameOfPart() { return fmt::format(".{:016x}{}", SystemRandom().Next(), kPartEnding); }
bool IsNameOfPart(std::string_view name) {
  return name.size() == 1 + kDigits + kPartEnding.size() && name[0] == '.' && name.ends_with(kPartEnding) &&
         name.substr(1, kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Who writes a part holds its lock, so that the lock of one whose writer was killed is free. A file system
// without locks keeps such files.
bool Lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0; }
// Takes the lock of a part that this process has made; false when a sweeper was faster.
bool LockOwn(int fd) {
  if (!Lock(fd) && errno == EWOULDBLOCK) return false;
  struct stat status {};
  return fstat(fd, &status) == 0 && status.st_nlink > 0;
}

// Some file systems of several machines keep locks on each: a part that has not been written to for so long
// is nobody's there either.
constexpr time_t kAbandonedAfterSeconds = 24 * 3600;

void RemoveIfAbandoned(int folder, const char* name) {
  const int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);  // NFS locks no others
  if (fd < 0) return;
  struct stat opened {
  }, named{};
  const bool is_same = fstat(fd, &opened) == 0 && S_ISREG(opened.st_mode) &&
                       opened.st_mtime < time(nullptr) - kAbandonedAfterSeconds && Lock(fd) &&
                       fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
  if (is_same) unlinkat(folder, name, 0);
  close(fd);
}

}  // namespace

void AbandonedParts::RemoveOnce(int folder) {
  struct stat status {};
  if (fstat(folder, &status) != 0) return;
  {
    const std::lock_guard lock(mutex_);
    if (!seen_.emplace(status.st_dev, status.st_ino).second) return;
  }
  const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = fd < 0 ? nullptr : fdopendir(fd);
  if (entries == nullptr) {
    if (fd >= 0) close(fd);
    return;
  }
  while (const dirent* const entry = readdir(entries))
    if (IsNameOfPart(entry->d_name)) RemoveIfAbandoned(folder, entry->d_name);
  closedir(entries);
}

void AbandonReplacements() { Temporaries().Abandon(); }

void RemoveHidden(const FilePlace& place, const std::string& name) {
  unlinkat(place.folder(), name.c_str(), 0);
  Temporaries().Remove(place.folder(), name);
}

bool IsHiddenName(std::string_view name) { return IsNameOfPart(name); }

Status FileError(const char* what, const std::string& path) {
  const int error = errno;
  const std::string why = std::strerror(error);
  if (error == ENOENT) return NotFound("cannot {} '{}': no such file", what, path);
  if (error == ENOSPC || error == EDQUOT) return ResourceExhausted("cannot {} '{}': {}", what, path, why);
  return DataLoss("cannot {} '{}': {}", what, path, why);
}

Replacement::Replacement(Replacement&& other) noexcept
    : place_(std::move(other.place_)),
      shown_(std::move(other.shown_)),
      temporary_(std::exchange(other.temporary_, std::string())),
      fd_(std::exchange(other.fd_, -1)) {}

Replacement::~Replacement() {
  if (!temporary_.empty()) {
    unlinkat(place_.folder(), temporary_.c_str(), 0);
    Temporaries().Remove(place_.folder(), temporary_);
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
  fd_ = openat(place_.folder(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd_ >= 0) {
    Lock(fd_);
    return OkStatus();
  }
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return FileError("write", shown_);
  return MakeName();
}

// Gives the file a name that no other has.
Status Replacement::MakeName() {
  for (int tries = 0; tries < kMostNames; ++tries) {
    const std::string name = NameOfPart();
    Temporaries().Add(place_.folder(), name);
    if (fd_ < 0) {
      fd_ = openat(place_.folder(), name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
      if (fd_ >= 0 && !LockOwn(fd_)) {
        close(std::exchange(fd_, -1));
        errno = EEXIST;
      }
      if (fd_ >= 0) temporary_ = name;
    } else if (linkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", fd_).c_str(), place_.folder(), name.c_str(),
                      AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
    }
    if (!temporary_.empty()) return OkStatus();
    const int error = errno;
    Temporaries().Remove(place_.folder(), name);
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

Result<std::string> Replacement::Hide() && {
  if (temporary_.empty()) HEDDLE_RETURN_IF_ERROR(MakeName());
  // Some file systems tell only here that there is no room.
  if (close(std::exchange(fd_, -1)) != 0) return FileError("write", shown_);
  return std::exchange(temporary_, std::string());
}

Status Replacement::Commit(ChangeGate* gate) {
  HEDDLE_RETURN_IF_ERROR(TakeOver());
  if (fsync(fd_) != 0) return FileError("write", shown_);
  const auto give_name = [&] { return temporary_.empty() ? MakeName() : OkStatus(); };
  return ChangeThrough(gate, shown_, give_name, [&] {
    if (!Temporaries().TakePlace(place_.folder(), temporary_, [&] {
          return renameat(place_.folder(), temporary_.c_str(), place_.folder(), place_.name()) == 0;
        }))
      return FileError("write", shown_);
    temporary_.clear();
    NoteChangedFile(shown_);
    return OkStatus();
  });
}

}  // namespace heddle::ops
