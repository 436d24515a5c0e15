// SPDX-License-Identifier: Apache-2.0
#include "ops/files/replacement.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include "core/environment/random.h"

namespace heddle::ops {
namespace {

constexpr int kMostLinks = 40;  // as many as the kernel follows
constexpr int kMostNames = 100;

// The names of files that are on their way, so that a process that ends in the midst of them can take them
// away. A file takes its place under the lock.
class TemporaryNames {
 public:
  void Add(const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_.insert(name);
  }
  void Remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_.erase(name);
  }
  // False when `rename` fails: the name is still that of a temporary.
  bool TakePlace(const std::string& name, const std::function<bool()>& rename) {
    const std::lock_guard lock(mutex_);
    if (!rename()) return false;
    names_.erase(name);
    return true;
  }
  // Keeps the lock: the process is about to end.
  void Abandon() {
    mutex_.lock();
    for (const std::string& name : names_) unlink(name.c_str());
  }

 private:
  std::mutex mutex_;
  std::set<std::string> names_;
};

TemporaryNames& Temporaries() {
  static TemporaryNames names;
  return names;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where a path leads when its last part is a link, or a link to a link; the file there need not exist.
Result<std::string> FollowLinks(std::string path, const std::string& shown) {
  for (int links = 0; links < kMostLinks; ++links) {
    char next[PATH_MAX];
    const ssize_t size = readlink(path.c_str(), next, sizeof(next));
    if (size < 0) return path;  // no link, or nothing yet
    const std::string text(next, static_cast<size_t>(size));
    path = text.starts_with("/") ? text : FolderOf(path) + "/" + text;
  }
  return DataLoss("cannot write '{}': it is a link that leads round in a circle", shown);
}

Status MakeFolders(const std::string& folder, const std::string& shown) {
  for (size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
    const std::string part = folder.substr(0, end);
    if (!part.empty() && mkdir(part.c_str(), 0777) != 0 && errno != EEXIST && access(part.c_str(), F_OK) != 0)
      return FileError("write", shown);
    if (end == std::string::npos) return OkStatus();
  }
}

}  // namespace

void AbandonReplacements() { Temporaries().Abandon(); }

Status FileError(const char* what, const std::string& path) {
  const int error = errno;
  const std::string why = std::strerror(error);
  if (error == ENOENT) return NotFound("cannot {} '{}': no such file", what, path);
  if (error == ENOSPC || error == EDQUOT) return ResourceExhausted("cannot {} '{}': {}", what, path, why);
  return DataLoss("cannot {} '{}': {}", what, path, why);
}

Replacement::Replacement(std::string target, std::string shown)
    : target_(std::move(target)), folder_(FolderOf(target_)), shown_(std::move(shown)) {}

Replacement::Replacement(Replacement&& other) noexcept
    : target_(std::move(other.target_)),
      folder_(std::move(other.folder_)),
      shown_(std::move(other.shown_)),
      temporary_(std::exchange(other.temporary_, std::string())),
      fd_(std::exchange(other.fd_, -1)) {}

Replacement::~Replacement() {
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
    Temporaries().Remove(temporary_);
  }
  if (fd_ >= 0) close(fd_);
}

Result<Replacement> Replacement::Begin(const std::string& absolute, const std::string& shown) {
  HEDDLE_ASSIGN_OR_RETURN(std::string target, FollowLinks(absolute, shown));
  struct stat present{};
  if (stat(target.c_str(), &present) == 0) {
    if (S_ISDIR(present.st_mode))
      return DataLoss("cannot write '{}': a directory of that name is there", shown);
    // A device or a pipe would be gone afterwards.
    if (!S_ISREG(present.st_mode)) return DataLoss("cannot write '{}': it is no ordinary file", shown);
  } else if (errno == ENAMETOOLONG) {  // told before much is written
    return FileError("write", shown);
  }
  Replacement replacement(std::move(target), shown);
  HEDDLE_RETURN_IF_ERROR(MakeFolders(replacement.folder_, shown));
  HEDDLE_RETURN_IF_ERROR(replacement.Open());
  return replacement;
}

Status Replacement::Open() {
  // A file without a name vanishes with the process, however that ends.
  fd_ = open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd_ >= 0) return OkStatus();
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return FileError("write", shown_);
  return MakeName();
}

// Gives the file a name that no other has: a short one, so that every name that the file system takes can be
// replaced. Processes with the same number in different containers may share a folder, hence random.
Status Replacement::MakeName() {
  for (int tries = 0; tries < kMostNames; ++tries) {
    const std::string name = fmt::format("{}/.{:016x}.heddle", folder_, SystemRandom().Next());
    Temporaries().Add(name);
    if (fd_ < 0) {
      fd_ = open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
      if (fd_ >= 0) temporary_ = name;
    } else if (linkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", fd_).c_str(), AT_FDCWD, name.c_str(),
                      AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
    }
    if (!temporary_.empty()) return OkStatus();
    const int error = errno;
    Temporaries().Remove(name);
    errno = error;
    if (errno != EEXIST) break;
  }
  return FileError("write", shown_);
}

// What an older file allows others stays as it is; never more than that, also for a moment.
Status Replacement::TakeOverFrom(const std::string& target) {
  struct stat old{};
  if (stat(target.c_str(), &old) != 0) return OkStatus();
  struct stat own{};
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

Status Replacement::Commit(ChangeGate* gate) {
  HEDDLE_RETURN_IF_ERROR(TakeOverFrom(target_));
  if (fsync(fd_) != 0) return FileError("write", shown_);
  const auto give_name = [&] { return temporary_.empty() ? MakeName() : OkStatus(); };
  return ChangeThrough(gate, shown_, give_name, [&] {
    if (!Temporaries().TakePlace(temporary_,
                                 [&] { return rename(temporary_.c_str(), target_.c_str()) == 0; }))
      return FileError("write", shown_);
    temporary_.clear();
    return OkStatus();
  });
}

}  // namespace heddle::ops
