// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/hidden_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <vector>

#include "core/environment/descriptor.h"
#include "core/environment/random.h"

namespace heddle::ops {
namespace {

constexpr std::string_view kEnding = ".part.heddle";
constexpr size_t kDigits = 16;

bool Lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0; }

// Some file systems of several machines keep locks on each: what nobody has written to for so long is
// nobody's there either. Where one kernel keeps all locks, a free lock alone says so.
constexpr time_t kAbandonedAfterSeconds = 24 * 3600;

bool OneKernelKeepsLocks(int fd) {
  constexpr uint64_t kXfs = 0x58465342;
  constexpr uint64_t kLocal[] = {EXT4_SUPER_MAGIC, kXfs, BTRFS_SUPER_MAGIC, TMPFS_MAGIC,
                                 OVERLAYFS_SUPER_MAGIC};
  struct statfs system {};
  return fstatfs(fd, &system) == 0 && std::find(std::begin(kLocal), std::end(kLocal),
                                                static_cast<uint64_t>(system.f_type)) != std::end(kLocal);
}

// The names in an open folder.
std::vector<std::string> NamesIn(int folder) {
  std::vector<std::string> names;
  const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const entries = fd < 0 ? nullptr : fdopendir(fd);
  if (entries == nullptr) {
    if (fd >= 0) close(fd);
    return names;
  }
  while (const dirent* const entry = readdir(entries)) names.emplace_back(entry->d_name);
  closedir(entries);
  return names;
}

std::string PathOf(int folder) {
  std::error_code error;
  return folder == AT_FDCWD
             ? std::filesystem::current_path(error).string()
             : std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", folder), error).string();
}

void RemoveIfAbandoned(int folder, const char* name) {
  struct stat opened {
  }, named{};
  if (fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) != 0) return;
  const bool is_folder = S_ISDIR(named.st_mode);
  if (!is_folder && !S_ISREG(named.st_mode)) return;
  // NFS locks only what is opened for writing.
  const Descriptor fd(openat(
      folder, name, (is_folder ? O_RDONLY | O_DIRECTORY : O_RDWR) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.ok() || fstat(fd.get(), &opened) != 0) return;
  const bool is_old =
      OneKernelKeepsLocks(fd.get()) || opened.st_mtime < time(nullptr) - kAbandonedAfterSeconds;
  // It may have taken its place, and another one its name, since it was opened.
  if (is_old && Lock(fd.get()) && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
      opened.st_dev == named.st_dev && opened.st_ino == named.st_ino)
    RemoveEntry(folder, name);
}

}  // namespace

std::string NewHiddenName() { return fmt::format(".{:016x}{}", SystemRandom().Next(), kEnding); }

bool IsHiddenName(std::string_view name) {
  return name.size() == 1 + kDigits + kEnding.size() && name[0] == '.' && name.ends_with(kEnding) &&
         name.substr(1, kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool LockHidden(int fd) {
  if (!Lock(fd) && errno == EWOULDBLOCK) return false;
  struct stat status {};
  return fstat(fd, &status) == 0 && status.st_nlink > 0;
}

HiddenNames& HiddenNames::OfProcess() {
  static HiddenNames names;
  return names;
}

void HiddenNames::Tell(std::function<void(const std::string& path, bool is_gone)> listener) {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
}

void HiddenNames::Add(int folder, const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (listener_) listener_(PathOf(folder) + "/" + name, /*is_gone=*/false);
  names_.emplace(folder, name);
}

void HiddenNames::Remove(int folder, const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (names_.erase({folder, name}) > 0 && listener_) listener_(PathOf(folder) + "/" + name, /*is_gone=*/true);
}

bool HiddenNames::TakePlace(const std::function<bool()>& rename) {
  const std::lock_guard lock(mutex_);
  return rename();
}

void HiddenNames::Abandon() {
  mutex_.lock();
  for (const auto& [folder, name] : names_) RemoveEntry(folder, name.c_str());
}

void AbandonReplacements() { HiddenNames::OfProcess().Abandon(); }

bool RemoveEntry(int folder, const char* name) {
  if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) return true;
  if (errno != EISDIR && errno != EPERM) return false;
  const Descriptor inside(openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!inside.ok()) return errno == ENOENT;
  for (const std::string& file : NamesIn(inside.get()))
    if (file != "." && file != "..") unlinkat(inside.get(), file.c_str(), 0);
  return unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

void RemoveHidden(const FilePlace& place, const std::string& name) {
  RemoveEntry(place.folder(), name.c_str());
  HiddenNames::OfProcess().Remove(place.folder(), name);
}

void RemoveHiddenPath(const std::string& path) {
  if (path.starts_with('/') && IsHiddenName(path.substr(path.rfind('/') + 1)))
    RemoveEntry(AT_FDCWD, path.c_str());
}

void AbandonedParts::RemoveOnce(int folder) {
  struct stat status {};
  if (fstat(folder, &status) != 0) return;
  {
    const std::lock_guard lock(mutex_);
    if (!seen_.emplace(status.st_dev, status.st_ino).second) return;
  }
  for (const std::string& name : NamesIn(folder))
    if (IsHiddenName(name)) RemoveIfAbandoned(folder, name.c_str());
}

}  // namespace heddle::ops
