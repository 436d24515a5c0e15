// SPDX-License-Identifier: Apache-2.0
#include "ops/files/files.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "ops/files/file_versions.h"
#include "ops/files/input_files.h"
#include "ops/files/replacement.h"

namespace heddle::ops {
namespace {

class RealFiles : public Files {
 public:
  RealFiles(std::string directory, ChangeGate* gate)
      : directory_(std::move(directory)), versions_(directory_), gate_(gate) {}

  Result<std::unique_ptr<InputFile>> Open(const std::string& path) override {
    if (versions_.IsExpected(path) == false) return NotFound("cannot read '{}': no such file", path);
    if (IsDirectory(path)) return OpenFolder(path);
    Result<std::unique_ptr<InputFile>> file = OpenOrdinaryFile(Absolute(path), path, &versions_);
    // That it is another version than the one expected says more than why it cannot be opened.
    if (!file.ok()) HEDDLE_RETURN_IF_ERROR(versions_.Check(path, versions_.Find(path)));
    return file;
  }

  bool Exists(const std::string& path) override {
    return versions_.IsExpected(path).value_or(access(Absolute(path).c_str(), F_OK) == 0);
  }

  bool IsDirectory(const std::string& path) override {
    struct stat status{};
    return stat(Absolute(path).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  }

  Result<std::vector<std::string>> List(const std::string& path) override {
    DIR* directory = opendir(Absolute(path).c_str());
    if (directory == nullptr) return FileError("list", path);
    std::vector<std::string> names;
    while (const dirent* entry = readdir(directory)) names.emplace_back(entry->d_name);
    closedir(directory);
    std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<std::string> Fingerprint(const std::string& path) override {
    struct stat status{};
    if (stat(Absolute(path).c_str(), &status) != 0) return FileError("read", path);
    return versions_.Fingerprint(path);
  }

  Status Replace(const std::string& path, const ByteSource& source) override {
    HEDDLE_ASSIGN_OR_RETURN(Replacement replacement, Replacement::Begin(Absolute(path), path));
    HEDDLE_RETURN_IF_ERROR(
        source([&](std::string_view bytes) { return WriteAll(replacement.fd(), bytes, path); }));
    return replacement.Commit(gate_);
  }

  Status Remove(const std::string& path) override {
    if (access(Absolute(path).c_str(), F_OK) != 0) return OkStatus();
    const auto nothing = [] { return OkStatus(); };
    return ChangeThrough(gate_, path, nothing, [&] {
      return unlink(Absolute(path).c_str()) == 0 || errno == ENOENT ? OkStatus() : FileError("remove", path);
    });
  }

  FileVersions* versions() override { return &versions_; }

 private:
  std::string Absolute(const std::string& path) const {
    return !path.empty() && path[0] == '/' ? path : directory_ + "/" + path;
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

  // A directory of part files reads as one file: the parts in the order of their names.
  Result<std::unique_ptr<InputFile>> OpenFolder(const std::string& path) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(path));
    std::vector<FilePart> parts;
    for (const std::string& name : names) {
      const std::string part = path + "/" + name;
      // Metadata that a script has written beside a part are no part.
      const bool describes_part =
          name.ends_with(".mtd") &&
          std::binary_search(names.begin(), names.end(), name.substr(0, name.size() - 4));
      if (name[0] != '.' && name[0] != '_' && !describes_part && !IsDirectory(part))
        parts.push_back({Absolute(part), part});
    }
    Result<std::unique_ptr<InputFile>> whole = OpenParts(parts);
    HEDDLE_RETURN_IF_ERROR(versions_.CheckUnchanged(path));
    return whole;
  }

  const std::string directory_;
  FileVersions versions_;
  ChangeGate* const gate_;
};

}  // namespace

Status InputFile::HideRepeated(std::string_view) { return OkStatus(); }

Status InputFile::ReadInto(int64_t begin, int64_t count, char* out) const {
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(begin, count, &buffer));
  std::copy(bytes.begin(), bytes.end(), out);
  return OkStatus();
}

std::unique_ptr<Files> MakeFiles(std::string directory, ChangeGate* gate) {
  return std::make_unique<RealFiles>(std::move(directory), gate);
}

}  // namespace heddle::ops
