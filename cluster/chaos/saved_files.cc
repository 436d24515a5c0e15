// SPDX-License-Identifier: Apache-2.0
#include "cluster/chaos/saved_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/environment/random.h"
#include "ops/io/files/hidden_names.h"

namespace heddle::cluster {
namespace {

constexpr const char* kOldName = "old";

Status CannotKeep(const std::string& shown, int error) {
  return DataLoss("cannot keep what '{}' was before this attempt changes it: {}", shown, strerror(error));
}

bool HasNoLinks(int error) {
  return error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK || error == EXDEV;
}

// The path of an entry of an open folder.
std::string PathIn(int folder, const std::string& name) {
  return fmt::format("/proc/self/fd/{}/{}", folder, name);
}

std::string PathOf(int folder) {
  std::error_code error;
  return folder == AT_FDCWD
             ? std::filesystem::current_path(error).string()
             : std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", folder), error).string();
}

// One file, or a symbolic link itself, under a second name.
bool LinkOrCopy(int from_folder, const char* from, int to_folder, const char* to) {
  if (linkat(from_folder, from, to_folder, to, 0) == 0) return true;
  if (!HasNoLinks(errno)) return false;
  std::error_code error;
  std::filesystem::copy(PathIn(from_folder, from), PathIn(to_folder, to),
                        std::filesystem::copy_options::copy_symlinks, error);
  errno = error.value();
  return !error;
}

bool LinkAll(int from, int to) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(fmt::format("/proc/self/fd/{}", from), error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory(error) && !entry->is_symlink(error)) {
      errno = EISDIR;
      return false;
    }
    if (!LinkOrCopy(from, name.c_str(), to, name.c_str())) return false;
  }
  errno = error.value();
  return !error;
}

bool IsSame(const struct stat& one, dev_t device, ino_t inode) {
  return one.st_dev == device && one.st_ino == inode;
}

}  // namespace

SavedFiles::~SavedFiles() {
  for (Saved& saved : saved_) Forget(saved);
}

bool SavedFiles::IsKnown(const ops::FilePlace& place) const {
  struct stat folder {};
  if (fstat(place.folder(), &folder) != 0) return false;
  for (const Saved& saved : saved_) {
    struct stat other {};
    if (strcmp(saved.place.name(), place.name()) == 0 && fstat(saved.place.folder(), &other) == 0 &&
        IsSame(folder, other.st_dev, other.st_ino))
      return true;
  }
  return false;
}

// A script writes to what a link leads to, and removes the link: either may be meant.
Status SavedFiles::Save(const std::string& path) {
  using Use = ops::ScriptPaths::Use;
  for (const Use use : {Use::kWrite, Use::kRemove}) {
    Result<ops::FilePlace> place = paths_.Find(path, use);
    HEDDLE_RETURN_IF_ERROR(place.status());
    if (IsKnown(*place)) continue;
    Saved saved(*std::move(place), path);
    struct stat there {};
    if (saved.place.Look(&there)) HEDDLE_RETURN_IF_ERROR(Keep(there, &saved));
    saved_.push_back(std::move(saved));
  }
  return OkStatus();
}

Status SavedFiles::Keep(const struct stat& there, Saved* saved) {
  const int folder = saved->place.folder();
  saved->hidden = ops::NewHiddenName();
  saved->is_folder = S_ISDIR(there.st_mode);
  saved->original = Descriptor(saved->place.Open(O_PATH | O_NOFOLLOW));
  saved->device = there.st_dev;
  saved->inode = there.st_ino;
  ops::HiddenNames::OfProcess().Add(folder, saved->hidden);
  const bool is_made = mkdirat(folder, saved->hidden.c_str(), 0700) == 0;
  if (is_made) saved->lock = Descriptor(saved->place.Sibling(saved->hidden).Open(O_RDONLY | O_DIRECTORY));
  bool is_kept = is_made && saved->lock.ok() && ops::LockHidden(saved->lock.get());
  if (is_kept && saved->is_folder) {
    const Descriptor opened(saved->place.Open(O_RDONLY | O_DIRECTORY));
    is_kept = opened.ok() && LinkAll(opened.get(), saved->lock.get()) &&
              fchmod(saved->lock.get(), there.st_mode & 07777) == 0;
  } else if (is_kept) {
    is_kept = LinkOrCopy(folder, saved->place.name(), saved->lock.get(), kOldName);
  }
  if (is_kept) return OkStatus();
  const int error = errno;
  Forget(*saved);
  return CannotKeep(saved->shown, error);
}

// True when something had changed.
Result<bool> SavedFiles::PutBack(const Saved& saved) {
  const int folder = saved.place.folder();
  const char* const name = saved.place.name();
  const auto failed = [&] {
    return DataLoss("cannot put back what '{}' was before an attempt changed it: {}", saved.shown,
                    strerror(errno));
  };
  struct stat now {};
  const bool is_there = saved.place.Look(&now);
  if (saved.hidden.empty()) {
    if (!is_there) return false;
    if (!ops::RemoveEntry(folder, name)) return failed();
    return true;
  }
  const int from = saved.is_folder ? folder : saved.lock.get();
  const char* const old = saved.is_folder ? saved.hidden.c_str() : kOldName;
  if (is_there && IsSame(now, saved.device, saved.inode)) return false;
  // A file takes the place of another one in one step.
  const bool is_in_the_way = is_there && (saved.is_folder || S_ISDIR(now.st_mode));
  if (is_in_the_way && !ops::RemoveEntry(folder, name)) return failed();
  if (renameat(from, old, folder, name) != 0) return failed();
  return true;
}

void SavedFiles::Forget(Saved& saved) {
  if (saved.hidden.empty()) return;
  ops::RemoveEntry(saved.place.folder(), saved.hidden.c_str());
  ops::HiddenNames::OfProcess().Remove(saved.place.folder(), saved.hidden);
  saved.hidden.clear();
  saved.lock = Descriptor();
  saved.original = Descriptor();
}

// A hidden folder that nobody has locked is removed by the next who writes there: it gets another name, or
// what it holds does.
std::string SavedFiles::SetAside(Saved& saved) {
  const int folder = saved.place.folder();
  const std::string name = fmt::format("heddle-saved-{:016x}", SystemRandom().Next());
  const int from = saved.is_folder ? folder : saved.lock.get();
  const char* const old = saved.is_folder ? saved.hidden.c_str() : kOldName;
  const bool is_renamed = renameat(from, old, folder, name.c_str()) == 0;
  if (is_renamed) {
    const std::string path = PathOf(folder) + "/" + name;
    Forget(saved);
    return path;
  }
  const std::string path =
      PathOf(folder) + "/" + saved.hidden + (saved.is_folder ? "" : fmt::format("/{}", kOldName));
  ops::HiddenNames::OfProcess().Remove(folder, saved.hidden);
  saved.hidden.clear();
  return path;
}

Result<int64_t> SavedFiles::Restore() {
  int64_t changed = 0;
  Status first;
  for (Saved& saved : saved_) {
    const Result<bool> had_changed = PutBack(saved);
    if (had_changed.ok()) {
      changed += *had_changed ? 1 : 0;
      Forget(saved);
      continue;
    }
    if (first.ok()) first = had_changed.status();
    if (!saved.hidden.empty())
      first = first.WithNote(fmt::format("what '{}' was is now '{}'", saved.shown, SetAside(saved)));
  }
  saved_.clear();
  if (!first.ok()) return first;
  return changed;
}

}  // namespace heddle::cluster
