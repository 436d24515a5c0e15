// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/folder_replacement.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/text/utf8.h"
#include "ops/io/files/changed_files.h"
#include "ops/io/files/folder_parts.h"
#include "ops/io/files/hidden_names.h"
#include "ops/io/files/replacement.h"

namespace heddle::ops {
namespace {

constexpr int kMostNames = 100;

// Spark and Hadoop write _SUCCESS and hidden checksums beside the parts.
bool IsOfParts(const std::string& name) {
  return name.starts_with("part-") || name[0] == '.' || name[0] == '_';
}

// What is there may be replaced by a folder of parts.
Status CheckPresent(const FilePlace& place, const std::string& shown) {
  struct stat present {};
  if (!place.Look(&present)) return errno == ENOENT ? OkStatus() : FileError("write", shown);
  if (S_ISREG(present.st_mode)) return OkStatus();
  if (!S_ISDIR(present.st_mode)) return DataLoss("cannot write '{}': it is no ordinary file", shown);
  HEDDLE_ASSIGN_OR_RETURN(const FolderParts folder, FolderParts::Open(place, shown));
  const Descriptor opened(place.Open(O_RDONLY | O_DIRECTORY));
  for (const std::string& name : folder.names()) {
    struct stat entry {};
    const bool is_file =
        fstatat(opened.get(), name.c_str(), &entry, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(entry.st_mode);
    if (!is_file || !IsOfParts(name))
      return DataLoss("cannot write '{}': a folder is there that holds '{}'", shown, ShownInLine(name, 60))
          .WithNote("only folders that hold nothing but files called part-... are replaced");
  }
  return OkStatus();
}

bool CannotExchange(int error) { return error == EINVAL || error == ENOSYS || error == ENOTSUP; }

}  // namespace

FolderReplacement::FolderReplacement(FolderReplacement&& other) noexcept
    : place_(std::move(other.place_)),
      shown_(std::move(other.shown_)),
      name_(std::exchange(other.name_, std::string())),
      folder_(std::move(other.folder_)) {}

FolderReplacement::~FolderReplacement() {
  if (!name_.empty()) RemoveHidden(place_, name_);
}

Result<FolderReplacement> FolderReplacement::Begin(FilePlace place, const std::string& shown) {
  HEDDLE_RETURN_IF_ERROR(CheckPresent(place, shown));
  FolderReplacement replacement(std::move(place), shown);
  HEDDLE_RETURN_IF_ERROR(replacement.Make());
  return replacement;
}

Status FolderReplacement::Make() {
  for (int tries = 0; tries < kMostNames; ++tries) {
    std::string name = NewHiddenName();  // Moved: a copy may have no memory when the folder is there.
    HiddenNames::OfProcess().Add(place_.folder(), name);
    if (mkdirat(place_.folder(), name.c_str(), 0777) == 0) {
      name_ = std::move(name);
      folder_ = Descriptor(place_.Sibling(name_).Open(O_RDONLY | O_DIRECTORY));
      if (folder_.ok() && LockHidden(folder_.get())) return OkStatus();
      RemoveHidden(place_, std::exchange(name_, {}));
      continue;
    }
    const int error = errno;
    HiddenNames::OfProcess().Remove(place_.folder(), name);
    errno = error;
    if (errno != EEXIST) break;
  }
  return FileError("write", shown_);
}

// Under the hidden name there is what was there before, or nothing.
bool FolderReplacement::TakePlace() const {
  const int folder = place_.folder();
  if (renameat2(folder, name_.c_str(), folder, place_.name(), RENAME_EXCHANGE) == 0) return true;
  if (errno == ENOENT) return renameat(folder, name_.c_str(), folder, place_.name()) == 0;
  if (!CannotExchange(errno)) return false;
  // A file system that cannot exchange two names: the old content steps aside, and back if that is all.
  // AbandonedParts knows no such name: should the process be killed here, the old content stays there.
  const std::string aside = NewHiddenName() + ".old";
  if (renameat(folder, place_.name(), folder, aside.c_str()) != 0 && errno != ENOENT) return false;
  if (renameat(folder, name_.c_str(), folder, place_.name()) == 0) {
    RemoveEntry(folder, aside.c_str());
    return true;
  }
  const int error = errno;
  renameat(folder, aside.c_str(), folder, place_.name());
  errno = error;
  return false;
}

Status FolderReplacement::Commit(ChangeGate* gate) {
  if (fsync(folder_.get()) != 0) return FileError("write", shown_);
  const auto look = [&] { return CheckPresent(place_, shown_); };
  HEDDLE_RETURN_IF_ERROR(ChangeThrough(gate, shown_, look, [&] {
    if (!HiddenNames::OfProcess().TakePlace([&] { return TakePlace(); })) return FileError("write", shown_);
    NoteChangedFile(shown_);
    return OkStatus();
  }));
  RemoveHidden(place_, std::exchange(name_, std::string()));
  return OkStatus();
}

}  // namespace heddle::ops
