// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/joint_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ops/io/files/descriptor_bytes.h"

namespace heddle::ops {

using Use = ScriptPaths::Use;

JointFiles::~JointFiles() {
  files_.clear();
  folders_.clear();
  // Whoever has begun them may have been killed.
  for (const Known& known : known_) RemoveHidden(known.place, known.hidden);
}

Result<std::string> JointFiles::Begin(const std::string& path, bool is_folder) {
  HEDDLE_ASSIGN_OR_RETURN(FilePlace place, paths_.Find(path, Use::kWrite));
  abandoned_.RemoveIn(place.folder());
  if (is_folder) {
    HEDDLE_ASSIGN_OR_RETURN(FolderReplacement folder, FolderReplacement::Begin(std::move(place), path));
    const std::string name = folder.name();
    const std::lock_guard lock(mutex_);
    folders_.emplace(name, std::move(folder));
    return name;
  }
  HEDDLE_ASSIGN_OR_RETURN(Replacement file, Replacement::Begin(std::move(place), path));
  HEDDLE_ASSIGN_OR_RETURN(const std::string name, file.Hide());
  const std::lock_guard lock(mutex_);
  files_.emplace(name, std::move(file));
  return name;
}

Status JointFiles::Know(const std::string& path, const std::string& hidden) {
  ForgetCommitted();
  HEDDLE_ASSIGN_OR_RETURN(FilePlace place, paths_.Find(path, Use::kWrite));
  if (!IsHiddenName(hidden)) return OkStatus();  // Opening it tells.
  const std::lock_guard lock(mutex_);
  const bool is_known =
      std::any_of(known_.begin(), known_.end(), [&](const Known& known) { return known.hidden == hidden; });
  if (is_known) return OkStatus();
  HiddenNames::OfProcess().Add(place.folder(), hidden);
  known_.push_back({std::move(place), hidden});
  return OkStatus();
}

Result<std::unique_ptr<JointBytes>> JointFiles::Open(const JointFile& file, std::optional<int64_t> offset) {
  HEDDLE_ASSIGN_OR_RETURN(Descriptor opened, OpenForWriting(file));
  HEDDLE_ASSIGN_OR_RETURN(FilePlace place, paths_.Find(file.path, Use::kWrite));
  return std::make_unique<JointBytes>(std::move(opened), std::move(place), file.path, offset);
}

Result<Descriptor> JointFiles::OpenForWriting(const JointFile& file) {
  HEDDLE_ASSIGN_OR_RETURN(const FilePlace place, paths_.Find(file.path, Use::kWrite));
  const FilePlace hidden = place.Sibling(file.hidden);
  const bool is_hidden = IsHiddenName(file.hidden);
  const auto opened = [&]() -> Descriptor {
    if (!is_hidden) return Descriptor();
    if (file.name.empty()) return Descriptor(hidden.Open(O_WRONLY | O_NONBLOCK));
    const Descriptor folder(hidden.Open(O_RDONLY | O_DIRECTORY));
    if (!folder.ok()) return Descriptor();
    return Descriptor(openat(folder.get(), file.name.c_str(),
                             O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  };
  Descriptor descriptor = opened();
  if (descriptor.ok()) return descriptor;
  if (is_hidden && errno != ENOENT) return FileError("write", file.path);
  return NotFound("cannot write '{}': this worker does not see what worker 0 has begun to write", file.path)
      .WithNote("every worker must see the same files of a job");
}

void JointFiles::Hold(const JointFile& file, std::unique_ptr<JointBytes> bytes) {
  const std::lock_guard lock(mutex_);
  held_[{file.hidden, file.name}] = std::move(bytes);
}

std::unique_ptr<JointBytes> JointFiles::Take(const JointFile& file) {
  const std::lock_guard lock(mutex_);
  auto found = held_.extract({file.hidden, file.name});
  return found.empty() ? nullptr : std::move(found.mapped());
}

Status JointFiles::Finish(const JointFile& file, std::span<const PlacedBytes> bytes) {
  HEDDLE_ASSIGN_OR_RETURN(Descriptor opened, OpenForWriting(file));
  for (const PlacedBytes& placed : bytes)
    HEDDLE_RETURN_IF_ERROR(WriteBytesAt(opened.get(), placed.offset, placed.bytes, file.path));
  return fsync(opened.get()) == 0 && close(opened.Release()) == 0 ? OkStatus()
                                                                  : FileError("write", file.path);
}

void JointFiles::Abandon(const std::string& hidden) {
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [&](const auto& held) { return held.first.first == hidden; });
  files_.erase(hidden);
  folders_.erase(hidden);
  std::erase_if(known_, [&](const Known& known) {
    if (known.hidden != hidden) return false;
    RemoveHidden(known.place, known.hidden);
    return true;
  });
}

Status JointFiles::Commit(const std::string& path, const std::string& hidden) {
  std::unique_lock lock(mutex_);
  auto file = files_.extract(hidden);
  auto folder = folders_.extract(hidden);
  lock.unlock();
  if (!file.empty()) return file.mapped().Commit(gate_);
  if (!folder.empty()) return folder.mapped().Commit(gate_);
  return Internal("'{}' is finished by a worker that has not begun it", path);
}

// Another process has committed them, or their job's attempt is over: their names are gone.
void JointFiles::ForgetCommitted() {
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const Known& known) {
    struct stat status {};
    if (known.place.Sibling(known.hidden).Look(&status) || errno != ENOENT) return false;
    HiddenNames::OfProcess().Remove(known.place.folder(), known.hidden);
    return true;
  });
}

}  // namespace heddle::ops
