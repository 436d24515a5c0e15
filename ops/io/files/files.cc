// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/text/natural_order.h"
#include "ops/io/files/descriptor_bytes.h"
#include "ops/io/files/file_versions.h"
#include "ops/io/files/folder_parts.h"
#include "ops/io/files/hidden_names.h"
#include "ops/io/files/input_files.h"
#include "ops/io/files/joint_files.h"
#include "ops/io/files/replacement.h"

namespace heddle::ops {
namespace {

using Use = ScriptPaths::Use;

class RealFiles : public Files {
 public:
  RealFiles(std::string directory, ChangeGate* gate, FileRoots roots)
      : paths_(std::move(directory), std::move(roots)),
        versions_(paths_),
        gate_(gate),
        joint_(paths_, gate) {}
  RealFiles(const RealFiles&) = delete;
  RealFiles& operator=(const RealFiles&) = delete;

  Result<std::unique_ptr<InputFile>> Open(const std::string& path) override {
    // Worker 0 has said so to all.
    if (const auto expected = versions_.Expected(path); expected && expected->IsMissing())
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
    if (const auto expected = versions_.Expected(path)) return !expected->IsMissing();
    struct stat status {};
    return place.ok() && place->Look(&status);
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

  Result<std::unique_ptr<NewFile>> Begin(const std::string& path) override {
    HEDDLE_ASSIGN_OR_RETURN(FilePlace place, paths_.Find(path, Use::kWrite));
    abandoned_.RemoveIn(place.folder());
    HEDDLE_ASSIGN_OR_RETURN(Replacement replacement, Replacement::Begin(std::move(place), path));
    return std::make_unique<NewFile>(std::move(replacement), path, gate_);
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
  JointFiles* joint() override { return &joint_; }

 private:
  static bool IsRefused(const Result<FilePlace>& place) {
    return !place.ok() && place.status().code() != StatusCode::kNotFound;
  }

  Status Look(const std::string& path, struct stat* status) const {
    HEDDLE_ASSIGN_OR_RETURN(const FilePlace place, paths_.Find(path, Use::kLook));
    return place.Look(status) ? OkStatus() : FileError("read", path);
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
  JointFiles joint_;
};

}  // namespace

Status Files::Replace(const std::string& path, const ByteSource& source) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file, Begin(path));
  HEDDLE_RETURN_IF_ERROR(source([&](std::string_view bytes) { return file->Append(bytes); }));
  return file->Commit();
}

void InputFile::LeaveOut(const std::vector<Beginning>&) {}

Status InputFile::ReadInto(int64_t begin, int64_t count, char* out) const {
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(begin, count, &buffer));
  std::copy(bytes.begin(), bytes.end(), out);
  return OkStatus();
}

std::unique_ptr<Files> MakeFiles(std::string directory, ChangeGate* gate, FileRoots roots) {
  return std::make_unique<RealFiles>(std::move(directory), gate, std::move(roots));
}

}  // namespace heddle::ops
