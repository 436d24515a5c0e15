// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/files.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "ops/formats/input_files.h"
#include "ops/formats/replacement.h"

namespace heddle::ops {
namespace {

class RealFiles : public Files {
 public:
  RealFiles(std::string directory, ChangeGate* gate) : directory_(std::move(directory)), gate_(gate) {}

  Result<std::unique_ptr<InputFile>> Open(const std::string& path) override {
    if (!IsDirectory(path)) return OpenOrdinaryFile(Absolute(path), path);
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> names, List(path));
    std::vector<FilePart> parts;
    for (const std::string& name : names) {
      const std::string part = path + "/" + name;
      if (name[0] != '.' && name[0] != '_' && !IsDirectory(part)) parts.push_back({Absolute(part), part});
    }
    return OpenParts(parts);
  }

  bool Exists(const std::string& path) override { return access(Absolute(path).c_str(), F_OK) == 0; }

  bool IsDirectory(const std::string& path) override {
    struct stat status {};
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
    struct stat status {};
    if (stat(Absolute(path).c_str(), &status) != 0) return FileError("read", path);
    return fmt::format("{} {} {}.{}", status.st_ino, status.st_size, status.st_mtim.tv_sec,
                       status.st_mtim.tv_nsec);
  }

  Status Replace(const std::string& path, const ByteSource& source) override {
    HEDDLE_ASSIGN_OR_RETURN(Replacement replacement, Replacement::Begin(Absolute(path), path));
    HEDDLE_RETURN_IF_ERROR(
        source([&](std::string_view bytes) { return WriteAll(replacement.fd(), bytes, path); }));
    return replacement.Commit(gate_);
  }

  Status Remove(const std::string& path) override {
    if (!Exists(path)) return OkStatus();
    const auto nothing = [] { return OkStatus(); };
    return ChangeThrough(gate_, path, nothing, [&] {
      return unlink(Absolute(path).c_str()) == 0 || errno == ENOENT ? OkStatus() : FileError("remove", path);
    });
  }

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

  std::string directory_;
  ChangeGate* gate_;
};

}  // namespace

std::unique_ptr<Files> MakeFiles(std::string directory, ChangeGate* gate) {
  return std::make_unique<RealFiles>(std::move(directory), gate);
}

}  // namespace heddle::ops
