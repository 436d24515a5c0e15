// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/script_paths.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "ops/io/files/folders.h"
#include "ops/io/files/own_folders.h"
#include "ops/io/files/replacement.h"

namespace heddle::ops {
namespace {

using Use = ScriptPaths::Use;

constexpr int kMostTries = 16;    // while links change
constexpr size_t kMostShown = 8;  // folders, in a message
constexpr char kMovesAbout[] = "links on the way to it change while it is opened";

const char* VerbOf(Use use) {
  switch (use) {
    case Use::kWrite: return "write";
    case Use::kRemove: return "remove";
    default: return "read";
  }
}

bool Changes(Use use) { return use == Use::kWrite || use == Use::kRemove; }

bool IsFolder(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

void FollowAll(std::vector<std::string>* paths) {
  for (std::string& path : *paths) path = FollowLinks(path);
}

// Of an argument that names a file, what stands beside it is named as well: metadata, parts, further results.
// Neither a slash nor a file in the root of the file system names everything.
std::vector<std::string> RootsOfArgument(const std::string& path) {
  const std::string identity = FollowLinks(path);
  if (identity == "/") return {};
  const std::string folder = FolderOf(identity);
  if (!IsFolder(identity) && folder != "/") return {folder};
  return {identity, identity + ".mtd"};
}

bool IsInOneOf(const std::string& identity, const std::vector<std::string>& folders) {
  return std::any_of(folders.begin(), folders.end(),
                     [&](const std::string& folder) { return IsWithin(identity, folder); });
}

std::string ListOf(std::vector<std::string> folders) {
  std::sort(folders.begin(), folders.end());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  std::string list;
  for (size_t i = 0; i < std::min(folders.size(), kMostShown); ++i)
    list += fmt::format("{}'{}'", i == 0 ? "" : ", ", folders[i]);
  if (folders.size() > kMostShown) list += fmt::format(" and {} more", folders.size() - kMostShown);
  return list;
}

Status WithTarget(Status status, const std::string& path, const std::string& identity) {
  return path == identity ? status : status.WithNote(fmt::format("it is '{}'", identity));
}

// Whether a folder is marked as Heddle's own, and whose it is. Only the owner of a folder marks it: in a
// folder that all may write to, such as /tmp, anybody else could close what lies below.
bool HasMark(int folder, uid_t* user) {
  struct stat mark {
  }, own{};
  if (fstatat(folder, kOwnFolderMark, &mark, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(mark.st_mode))
    return false;
  if (fstat(folder, &own) != 0 || own.st_uid != mark.st_uid) return false;
  *user = mark.st_uid;
  return true;
}

}  // namespace

FilePlace FilePlace::Sibling(const std::string& name) const {
  FilePlace sibling = *this;
  sibling.name_ = name;
  return sibling;
}

int FilePlace::folder() const { return folder_ == nullptr ? AT_FDCWD : folder_->get(); }

int FilePlace::Open(int flags) const {
  return openat(folder(), name(), flags | O_CLOEXEC | (folder_ == nullptr ? 0 : O_NOFOLLOW));
}

bool FilePlace::Look(struct stat* status) const {
  return fstatat(folder(), name(), status, folder_ == nullptr ? 0 : AT_SYMLINK_NOFOLLOW) == 0;
}

ScriptPaths::ScriptPaths(std::string directory, FileRoots roots)
    : directory_(std::move(directory)), had_directory_(IsFolder(directory_)), roots_(std::move(roots)) {
  if (roots_.own_folders != FileRoots::OwnFolders::kOpen) {
    own_ = OwnPathsOfUser();
    FollowAll(&own_);
  }
  if (roots_.is_job && !directory_.empty()) roots_.named.push_back(directory_);
  FollowAll(&roots_.named);
  FollowAll(&roots_.of_master);
  FollowAll(&roots_.of_worker);
  FollowAll(&roots_.closed);
  for (const std::string& argument : roots_.arguments)
    for (std::string& root : RootsOfArgument(argument)) roots_.named.push_back(std::move(root));
}

std::string ScriptPaths::Absolute(const std::string& path) const {
  return path.starts_with('/') ? path : directory_ + "/" + path;
}

Result<FilePlace> ScriptPaths::Find(const std::string& path, Use use) const {
  for (int tries = 0; tries < kMostTries; ++tries) {
    bool moved = false;
    Result<FilePlace> place = FindOnce(path, use, &moved);
    if (!moved) return place;
  }
  return DataLoss("cannot {} '{}': {}", VerbOf(use), path, kMovesAbout);
}

Result<FilePlace> ScriptPaths::FindOnce(const std::string& path, Use use, bool* moved) const {
  const char* const verb = VerbOf(use);
  if (!path.starts_with('/')) {
    const auto deleted = [&](std::string note) {
      return NotFound("cannot {} '{}': the folder that it begins at was deleted", verb, path)
          .WithNote(std::move(note));
    };
    if (directory_.empty())
      return deleted("go to a folder that is there, or give a path that begins with '/'");
    // Else the folder would be made once more.
    if (use == Use::kWrite && had_directory_ && !IsFolder(directory_))
      return deleted(fmt::format("it was '{}'", directory_));
  }
  if (use == Use::kWrite && path.ends_with('/'))
    return DataLoss("cannot write '{}': it ends with a slash, so that it names a folder", path);
  const std::string absolute = Absolute(path);
  const bool is_open = roots_.own_folders == FileRoots::OwnFolders::kOpen;
  if (!roots_.is_job && !Changes(use)) {
    if (!is_open && use == Use::kRead) HEDDLE_RETURN_IF_ERROR(CheckOwnRead(path, absolute));
    // Pipes that a shell has opened have names that only the kernel follows; the user may read what he may.
    return FilePlace(absolute);
  }

  bool circle = false;
  const auto follow = [&] {
    // Of what is removed the last name stays as it is.
    const std::string name = NameOf(absolute);
    const bool is_name = !name.empty() && name != "." && name != "..";
    if (use != Use::kRemove || !is_name) return FollowLinks(absolute, &circle);
    const std::string folder = FollowLinks(FolderOf(absolute), &circle);
    return (folder == "/" ? "" : folder) + "/" + name;
  };
  const std::string identity = follow();
  if (circle) return DataLoss("cannot {} '{}': it is a link that leads round in a circle", verb, path);
  if (roots_.is_job) HEDDLE_RETURN_IF_ERROR(CheckRoots(path, identity, use));

  const std::string folder = FolderOf(identity);
  Descriptor opened = OpenFolder(folder);
  if (!opened.ok() && errno == ENOENT && use == Use::kWrite) opened = WalkToFolder(folder, /*make=*/true);
  if (!opened.ok()) {
    const int error = errno;
    *moved = (error == ELOOP || error == ENOTDIR) && follow() != identity;
    errno = error;
    // Nothing can have that name: metadata of a file whose own name is as long as can be.
    if (error == ENAMETOOLONG && !Changes(use)) errno = ENOENT;
    return FileError(verb, path);
  }
  HEDDLE_RETURN_IF_ERROR(CheckOwnFolders(path, identity, opened.get(), use));
  FilePlace place(std::move(opened), identity == "/" ? "." : NameOf(identity));
  struct stat status {};
  *moved = use != Use::kRemove && place.Look(&status) && S_ISLNK(status.st_mode);
  return place;
}

// Whoever runs the script himself moves no links about meanwhile.
Status ScriptPaths::CheckOwnRead(const std::string& path, const std::string& absolute) const {
  std::string file = absolute;
  for (bool is_followed = false;; is_followed = true) {
    const Descriptor folder(open(FolderOf(file).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder.ok()) return OkStatus();  // nor can the file be opened
    struct stat status {};
    const bool is_link = fstatat(folder.get(), NameOf(file).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                         S_ISLNK(status.st_mode);
    if (!is_link || is_followed) return CheckOwnFolders(path, file, folder.get(), Use::kRead);
    file = FollowLinks(file);
  }
}

Status ScriptPaths::CheckRoots(const std::string& path, const std::string& identity, Use use) const {
  const auto refusal = [&](const std::vector<std::string>& folders, std::string_view whose) {
    return WithTarget(
               DataLoss("cannot {} '{}': it is in none of the folders that {}", VerbOf(use), path, whose),
               path, identity)
        .WithNote(fmt::format("these are {}", ListOf(folders)));
  };
  const std::string folder = FolderOf(identity);
  if (roots_.of_worker.empty() && roots_.of_master.empty()) {
    if (IsInOneOf(identity, roots_.named)) return OkStatus();
    return refusal(roots_.named, "this job may use")
        .WithNote(fmt::format("to name another one: heddle job submit --data-root {}", folder));
  }
  for (const auto& [allowed, who] :
       {std::pair(&roots_.of_worker, "worker"), std::pair(&roots_.of_master, "master")}) {
    if (allowed->empty() || IsInOneOf(identity, *allowed)) continue;
    return refusal(*allowed, fmt::format("the {} lets jobs use", who))
        .WithNote(
            fmt::format("who runs the {} can let them use more: heddle {} --data-root {}", who, who, folder));
  }
  return OkStatus();
}

Status ScriptPaths::CheckOwnFolders(const std::string& path, const std::string& identity, int folder,
                                    Use use) const {
  const bool is_closed = roots_.own_folders == FileRoots::OwnFolders::kClosed;
  if (roots_.own_folders == FileRoots::OwnFolders::kOpen) return OkStatus();
  bool by_other = false;
  bool refused = IsInOneOf(identity, roots_.closed);
  if (!refused && (is_closed || Changes(use))) refused = IsInOneOf(identity, own_);
  if (!refused && IsMarkedOwn(folder, &by_other)) refused = is_closed || by_other || Changes(use);
  if (!refused) {
    const Descriptor itself(
        openat(folder, NameOf(identity).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    uid_t user = 0;
    if (itself.ok() && HasMark(itself.get(), &user)) refused = is_closed || user != geteuid() || Changes(use);
  }
  // A mark that a script makes would close the folder to all others.
  refused |= Changes(use) && NameOf(identity) == kOwnFolderMark;
  if (!refused) return OkStatus();
  return WithTarget(DataLoss("cannot {} '{}': Heddle keeps files of its own there", VerbOf(use), path), path,
                    identity)
      .WithNote("tokens, keys, jobs, logs and machine code are closed to scripts (docs/daemons.md)");
}

// Whether it, or a folder above it, has the mark; and whether that is another user's.
bool ScriptPaths::IsMarkedOwn(int folder, bool* by_other) const {
  struct stat here {};
  if (fstat(folder, &here) != 0) return false;
  const std::pair<uint64_t, uint64_t> key(here.st_dev, here.st_ino);
  {
    const std::lock_guard lock(mutex_);
    if (unmarked_.Find(key) != nullptr) return false;
  }
  Descriptor above;
  for (int at = folder;; at = above.get()) {
    uid_t user = 0;
    if (HasMark(at, &user)) {
      *by_other = user != geteuid();
      return true;
    }
    Descriptor next(openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat there {};
    if (!next.ok() || fstat(next.get(), &there) != 0) break;
    if (there.st_dev == here.st_dev && there.st_ino == here.st_ino) break;  // the root
    here = there;
    above = std::move(next);
  }
  const std::lock_guard lock(mutex_);
  unmarked_.Add(key, {});
  return false;
}

}  // namespace heddle::ops
