// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>

#include "core/text/natural_order.h"
#include "ops/io/files/file_versions.h"
#include "ops/io/files/folder_parts.h"
#include "ops/io/files/input_files.h"
#include "ops/io/files/joined_parts.h"
#include "ops/io/files/replacement.h"

namespace heddle::ops {
namespace {

using Use = ScriptPaths::Use;

constexpr int64_t kMostOfCopy = int64_t{1} << 30;

// A part that this process keeps for whoever joins it.
struct OwnPart {
  FilePlace place;  // of the file to come
  std::string name;
};

class RealFiles : public Files, public JoinedParts {
 public:
  RealFiles(std::string directory, ChangeGate* gate, FileRoots roots)
      : paths_(std::move(directory), std::move(roots)), versions_(paths_), gate_(gate) {}
  RealFiles(const RealFiles&) = delete;
  RealFiles& operator=(const RealFiles&) = delete;
  ~RealFiles() override {
    for (const OwnPart& part : parts_) RemoveHidden(part.place, part.name);
  }

  Result<std::unique_ptr<InputFile>> Open(const std::string& path) override {
    // Worker 0 has said so to all.
    if (versions_.IsExpected(path) == false)
      return NotFound("cannot read '{}': no such file", path).OnEveryRank();
    const Result<FilePlace> place = paths_.Find(path, Use::kRead);
    if (IsRefused(place)) return place.status();
    Result<std::unique_ptr<InputFile>> file =
        place.ok() ? OpenAt(path, *place) : Result<std::unique_ptr<InputFile>>(place.status());
    // That it is another version than the one expected says more than why it cannot be opened.
    if (!file.ok()) HEDDLE_RETURN_IF_ERROR(versions_.Check(path, versions_.Find(path)));
    return file;
  }

  bool Exists(const std::string& path) override {
    const Result<FilePlace> place = paths_.Find(path, Use::kLook);
    if (IsRefused(place)) return false;  // opening it will tell why
    struct stat status {};
    return versions_.IsExpected(path).value_or(place.ok() && place->Look(&status));
  }

  bool IsDirectory(const std::string& path) override {
    struct stat status {};
    return Look(path, &status).ok() && S_ISDIR(status.st_mode);
  }

  Result<std::vector<std::string>> List(const std::string& path) override {
    HEDDLE_ASSIGN_OR_RETURN(const FilePlace place, paths_.Find(path, Use::kRead));
    HEDDLE_ASSIGN_OR_RETURN(const FolderParts parts, FolderParts::Open(place, path));
    return parts.names();
  }

  Result<std::string> Fingerprint(const std::string& path) override {
    struct stat status {};
    const Status found = Look(path, &status);
    if (!found.ok()) HEDDLE_RETURN_IF_ERROR(versions_.Check(path, versions_.Find(path)));
    HEDDLE_RETURN_IF_ERROR(found);
    return versions_.Fingerprint(path);
  }

  Status Replace(const std::string& path, const ByteSource& source) override {
    HEDDLE_ASSIGN_OR_RETURN(FilePlace place, paths_.Find(path, Use::kWrite));
    abandoned_.RemoveOnce(place.folder());
    HEDDLE_ASSIGN_OR_RETURN(Replacement replacement, Replacement::Begin(std::move(place), path));
    HEDDLE_RETURN_IF_ERROR(
        source([&](std::string_view bytes) { return WriteAll(replacement.fd(), bytes, path); }));
    return replacement.Commit(gate_);
  }

  Result<KeptPart> KeepPart(const std::string& path, const ByteSource& source) override {
    HEDDLE_ASSIGN_OR_RETURN(const FilePlace place, paths_.Find(path, Use::kWrite));
    ForgetJoinedParts();
    KeptPart kept;
    HEDDLE_ASSIGN_OR_RETURN(Replacement part, Replacement::Begin(place, path));
    HEDDLE_RETURN_IF_ERROR(source([&](std::string_view bytes) {
      kept.bytes += static_cast<int64_t>(bytes.size());
      return WriteAll(part.fd(), bytes, path);
    }));
    if (kept.bytes == 0) return kept;
    HEDDLE_ASSIGN_OR_RETURN(kept.name, std::move(part).Hide());
    const std::lock_guard lock(mutex_);
    parts_.push_back({place, kept.name});
    return kept;
  }

  Status JoinParts(const std::string& path, std::string_view beginning, std::span<const KeptPart> parts,
                   std::string_view end) override {
    HEDDLE_ASSIGN_OR_RETURN(const FilePlace place, paths_.Find(path, Use::kWrite));
    abandoned_.RemoveOnce(place.folder());
    HEDDLE_ASSIGN_OR_RETURN(Replacement whole, Replacement::Begin(place, path));
    HEDDLE_RETURN_IF_ERROR(WriteAll(whole.fd(), beginning, path));
    for (const KeptPart& part : parts)
      if (part.bytes > 0) HEDDLE_RETURN_IF_ERROR(AppendPart(place, part, whole.fd(), path));
    HEDDLE_RETURN_IF_ERROR(WriteAll(whole.fd(), end, path));
    return whole.Commit(gate_);
  }

  Status Remove(const std::string& path) override {
    const Result<FilePlace> place = paths_.Find(path, Use::kRemove);
    if (place.status().code() == StatusCode::kNotFound) return OkStatus();
    HEDDLE_RETURN_IF_ERROR(place.status());
    struct stat status {};
    if (!place->Look(&status)) return OkStatus();
    const auto nothing = [] { return OkStatus(); };
    return ChangeThrough(gate_, path, nothing, [&] {
      return unlinkat(place->folder(), place->name(), 0) == 0 || errno == ENOENT ? OkStatus()
                                                                                 : FileError("remove", path);
    });
  }

  FileVersions* versions() override { return &versions_; }

 private:
  static bool IsRefused(const Result<FilePlace>& place) {
    return !place.ok() && place.status().code() != StatusCode::kNotFound;
  }

  Status Look(const std::string& path, struct stat* status) const {
    HEDDLE_ASSIGN_OR_RETURN(const FilePlace place, paths_.Find(path, Use::kLook));
    return place.Look(status) ? OkStatus() : FileError("read", path);
  }

  static Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd, bytes.data(), std::min<size_t>(bytes.size(), 1u << 30));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return FileError("write", path);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return OkStatus();
  }

  // Copies a part behind what is written, and removes it.
  static Status AppendPart(const FilePlace& place, const KeptPart& part, int out, const std::string& path) {
    const FilePlace hidden = place.Sibling(part.name);
    const Descriptor in(IsHiddenName(part.name) ? hidden.Open(O_RDONLY | O_NONBLOCK) : -1);
    if (in.get() < 0)
      return NotFound("cannot write '{}': worker 0 does not see what another worker has written of it", path)
          .WithNote("every worker must see the same files of a job");
    int64_t left = part.bytes;
    while (left > 0) {
      const ssize_t copied = CopyBytes(in.get(), out, left);
      if (copied < 0 && errno == EINTR) continue;
      if (copied < 0) return FileError("write", path);
      if (copied == 0) return DataLoss("cannot write '{}': another worker's part of it became shorter", path);
      left -= copied;
    }
    RemoveHidden(place, part.name);
    return OkStatus();
  }

  // Some bytes of one file behind those of another; 0 at its end, -1 and errno as of write().
  static ssize_t CopyBytes(int in, int out, int64_t most) {
    const ssize_t copied =
        copy_file_range(in, nullptr, out, nullptr, static_cast<size_t>(std::min(most, kMostOfCopy)), 0);
    if (copied >= 0 || (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP))
      return copied;
    // The kernel cannot between these file systems.
    std::array<char, 1 << 16> piece;
    const ssize_t got = read(in, piece.data(), std::min(static_cast<size_t>(most), piece.size()));
    for (ssize_t done = 0; done < got;) {
      const ssize_t written = write(out, piece.data() + done, static_cast<size_t>(got - done));
      if (written < 0 && errno != EINTR) return -1;
      done += std::max<ssize_t>(written, 0);
    }
    return got;
  }

  // What others have joined has no name any more.
  void ForgetJoinedParts() {
    const std::lock_guard lock(mutex_);
    std::erase_if(parts_, [](const OwnPart& part) {
      struct stat status {};
      if (part.place.Sibling(part.name).Look(&status) || errno != ENOENT) return false;
      RemoveHidden(part.place, part.name);
      return true;
    });
  }

  Result<std::unique_ptr<InputFile>> OpenAt(const std::string& path, const FilePlace& place) {
    struct stat status {};
    if (place.Look(&status) && S_ISDIR(status.st_mode)) return OpenParts(path, place);
    return OpenOrdinaryFile(place, path, &versions_);
  }

  // A directory of part files reads as one file: the parts in the order of their names.
  Result<std::unique_ptr<InputFile>> OpenParts(const std::string& path, const FilePlace& place) {
    HEDDLE_ASSIGN_OR_RETURN(const FolderParts folder, FolderParts::Open(place, path));
    const std::vector<std::string>& names = folder.names();
    std::vector<FilePart> parts;
    for (const std::string& name : names) {
      // Metadata that a script has written beside a part are no part.
      const bool describes_part =
          name.ends_with(".mtd") &&
          std::binary_search(names.begin(), names.end(), name.substr(0, name.size() - 4), ComesBefore);
      if (name[0] == '.' || name[0] == '_' || describes_part) continue;
      HEDDLE_ASSIGN_OR_RETURN(FilePlace part, folder.Find(name, paths_, Use::kRead));
      struct stat status {};
      if (!part.Look(&status) || !S_ISDIR(status.st_mode))
        parts.push_back({std::move(part), path + "/" + name});
    }
    Result<std::unique_ptr<InputFile>> whole = ops::OpenParts(parts);
    HEDDLE_RETURN_IF_ERROR(versions_.CheckUnchanged(path));
    return whole;
  }

  const ScriptPaths paths_;
  FileVersions versions_;
  ChangeGate* const gate_;
  AbandonedParts abandoned_;
  std::mutex mutex_;
  std::vector<OwnPart> parts_;  // under mutex_
};

}  // namespace

void InputFile::LeaveOut(const std::vector<Beginning>&) {}

Status InputFile::ReadInto(int64_t begin, int64_t count, char* out) const {
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(begin, count, &buffer));
  std::copy(bytes.begin(), bytes.end(), out);
  return OkStatus();
}

JoinedParts* JoinedPartsOf(Files& files) { return dynamic_cast<JoinedParts*>(&files); }

std::unique_ptr<Files> MakeFiles(std::string directory, ChangeGate* gate, FileRoots roots) {
  return std::make_unique<RealFiles>(std::move(directory), gate, std::move(roots));
}

}  // namespace heddle::ops
