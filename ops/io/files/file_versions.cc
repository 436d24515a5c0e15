// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/file_versions.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <utility>
#include <vector>

#include "core/text/time_text.h"
#include "ops/io/files/folder_parts.h"
#include "ops/io/files/folders.h"

namespace heddle::ops {
namespace {

uint64_t Fold(uint64_t hash, std::string_view bytes) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return (hash ^ bytes.size()) * 0x100000001b3;
}

uint64_t MachineId() {
  static const uint64_t id = [] {
    std::array<char, 64> text{};
    if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
      const size_t got = std::fread(text.data(), 1, text.size(), file);
      std::fclose(file);
      return Fold(0xcbf29ce484222325, {text.data(), got});
    }
    return uint64_t{0};
  }();
  return id;
}

FileVersion VersionOf(const struct stat& status) {
  FileVersion version;
  if (!S_ISREG(status.st_mode)) {
    version.kind = S_ISDIR(status.st_mode) ? FileVersion::Kind::kFolder : FileVersion::Kind::kOther;
    return version;
  }
  version.kind = FileVersion::Kind::kFile;
  version.bytes = status.st_size;
  version.seconds = status.st_mtim.tv_sec;
  version.nanoseconds = status.st_mtim.tv_nsec;
  version.machine = MachineId();
  version.device = status.st_dev;
  version.inode = status.st_ino;
  return version;
}

bool IsBelow(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && IsWithin(path, folder);
}

bool AreOneFile(const std::string& a, const std::string& b) {
  struct stat of_a {
  }, of_b{};
  return stat(a.c_str(), &of_a) == 0 && stat(b.c_str(), &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

}  // namespace

bool FileVersion::IsSame(const FileVersion& other) const {
  if (kind != other.kind) return false;
  if (kind == Kind::kMissing || kind == Kind::kOther) return true;
  if (bytes != other.bytes || seconds != other.seconds || nanoseconds != other.nanoseconds ||
      parts != other.parts)
    return false;
  const bool same_numbers = machine == other.machine && device == other.device;
  return !same_numbers || inode == other.inode;
}

std::string FileVersion::Describe() const {
  if (kind == Kind::kMissing) return "no file";
  if (kind == Kind::kOther) return "no ordinary file";
  return fmt::format("{}{} bytes of {}.{:09} UTC", kind == Kind::kFolder ? "a folder with " : "", bytes,
                     UtcTime(seconds * 1000, "%Y-%m-%d %H:%M:%S"), nanoseconds);
}

std::string FileVersion::ToText() const {
  return fmt::format("{} {} {}.{:09} {:x} {:x} {:x} {} {}", static_cast<int>(kind), bytes, seconds,
                     nanoseconds, parts, machine, device, inode, writes);
}

Result<FileVersion> FileVersion::Parse(std::string_view text) {
  FileVersion version;
  int kind = 0;
  long long bytes = 0, seconds = 0, nanoseconds = 0, writes = 0;
  unsigned long long parts = 0, machine = 0, device = 0, inode = 0;
  if (std::sscanf(std::string(text).c_str(), "%d %lld %lld.%lld %llx %llx %llx %llu %lld", &kind, &bytes,
                  &seconds, &nanoseconds, &parts, &machine, &device, &inode, &writes) != 9 ||
      kind < 0 || kind > static_cast<int>(Kind::kOther))
    return Internal("the version of a file is malformed: {}", text);
  version.kind = static_cast<Kind>(kind);
  version.bytes = bytes;
  version.seconds = seconds;
  version.nanoseconds = nanoseconds;
  version.parts = parts;
  version.machine = machine;
  version.device = device;
  version.inode = inode;
  version.writes = writes;
  return version;
}

FileVersion FileVersions::Find(const std::string& path) const {
  FileVersion version;
  struct stat status {};
  const Result<FilePlace> place = paths_.Find(path, ScriptPaths::Use::kLook);
  if (!place.ok()) {
    const bool missing = place.status().code() == StatusCode::kNotFound;
    version.kind = missing ? FileVersion::Kind::kMissing : FileVersion::Kind::kOther;
  } else if (!place->Look(&status)) {
    // Nothing can be where a name is too long. Whatever else is wrong shows when it is opened.
    const bool missing = errno == ENOENT || errno == ENAMETOOLONG;
    version.kind = missing ? FileVersion::Kind::kMissing : FileVersion::Kind::kOther;
  } else {
    version = VersionOf(status);
    if (version.kind == FileVersion::Kind::kFolder) version = FindFolder(path, *place);
  }
  const std::string identity = Identity(path);
  const std::lock_guard lock(mutex_);
  for (const auto& [written, count] : writes_)
    if (written == identity || IsBelow(written, identity)) version.writes += count;
  return version;
}

FileVersion FileVersions::FindFolder(const std::string& path, const FilePlace& place) const {
  FileVersion folder;
  folder.kind = FileVersion::Kind::kFolder;
  std::vector<std::string> names;
  const Result<FolderParts> parts = FolderParts::Open(place, path);
  if (!parts.ok()) return folder;
  for (const std::string& name : parts->names())
    if (name[0] != '.' && name[0] != '_') names.push_back(name);
  for (const std::string& name : names) {
    struct stat status {};
    const Result<FilePlace> found = parts->Find(name, paths_, ScriptPaths::Use::kLook);
    if (!found.ok() || !found->Look(&status) || S_ISDIR(status.st_mode)) continue;
    const FileVersion part = VersionOf(status);
    folder.bytes += part.bytes;
    if (std::pair(part.seconds, part.nanoseconds) > std::pair(folder.seconds, folder.nanoseconds)) {
      folder.seconds = part.seconds;
      folder.nanoseconds = part.nanoseconds;
    }
    folder.parts =
        Fold(Fold(folder.parts, name), fmt::format("{} {}.{}", part.bytes, part.seconds, part.nanoseconds));
  }
  return folder;
}

std::string FileVersions::Identity(const std::string& path) const {
  return FollowLinks(paths_.Absolute(path));
}

bool FileVersions::MayMeet(const std::string& written, const std::string& read) {
  if (written == read || IsBelow(read, written)) return true;
  // A folder may have several names, too: mounted twice.
  for (std::string folder = written;; folder = FolderOf(folder)) {
    if (folder == read || AreOneFile(folder, read)) return true;
    if (folder == "/") break;
  }
  return NameOf(written) == NameOf(read) && AreOneFile(FolderOf(written), FolderOf(read));
}

void FileVersions::CountWrite(const std::string& path) {
  const std::string identity = Identity(path);
  const std::lock_guard lock(mutex_);
  ++writes_[identity];
}

void FileVersions::Expect(std::map<std::string, FileVersion> versions, int worker) {
  const std::lock_guard lock(mutex_);
  expected_ = std::move(versions);
  worker_ = worker;
}

std::optional<FileVersion> FileVersions::Expected(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto expected = expected_.find(path);
  if (expected == expected_.end()) return std::nullopt;
  return expected->second;
}

Status FileVersions::Check(const std::string& path, const FileVersion& found) const {
  const std::lock_guard lock(mutex_);
  const auto expected = expected_.find(path);
  if (expected == expected_.end() || expected->second.IsSame(found)) return OkStatus();
  const std::string versions =
      fmt::format("expected {}, found {}", expected->second.Describe(), found.Describe());
  if (worker_ == 0)
    return DataLoss("cannot read '{}': it changed while the script ran", path).WithNote(versions);
  return DataLoss(
             "cannot read '{}': worker {} sees another file than worker 0, or it changed while the script ran",
             path, worker_)
      .WithNote(versions)
      .WithNote("every worker must see the same files of a job");
}

Status FileVersions::CheckOpened(const std::string& path, const struct stat& status) const {
  return Check(path, VersionOf(status));
}

Status FileVersions::CheckUnchanged(const std::string& path) const {
  FileVersion expected;
  {
    const std::lock_guard lock(mutex_);
    const auto found = expected_.find(path);
    if (found == expected_.end()) return OkStatus();
    expected = found->second;
  }
  const FileVersion now = Find(path);
  const bool is_replaced =
      expected.kind == FileVersion::Kind::kFile && (now.kind != expected.kind || now.inode != expected.inode);
  return is_replaced ? OkStatus() : Check(path, now);
}

std::string FileVersions::Fingerprint(const std::string& path) const {
  FileVersion version = Find(path);
  const std::lock_guard lock(mutex_);
  // Whoever told the version counts the writes; workers that write nothing count none.
  if (const auto expected = expected_.find(path); expected != expected_.end())
    version.writes = expected->second.writes;
  return version.ToText();
}

}  // namespace heddle::ops
