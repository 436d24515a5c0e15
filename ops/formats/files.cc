// SPDX-License-Identifier: Apache-2.0
#include "ops/formats/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "ops/formats/input_files.h"

namespace heddle::ops {
namespace {

Status FromErrno(const char* what, const std::string& path) {
  const int error = errno;
  const std::string why = std::strerror(error);
  if (error == ENOENT) return NotFound("cannot {} '{}': no such file", what, path);
  if (error == ENOSPC || error == EDQUOT) return ResourceExhausted("cannot {} '{}': {}", what, path, why);
  return DataLoss("cannot {} '{}': {}", what, path, why);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

class RealFiles : public Files {
 public:
  explicit RealFiles(std::string directory) : directory_(std::move(directory)) {}

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
    if (directory == nullptr) return FromErrno("list", path);
    std::vector<std::string> names;
    while (const dirent* entry = readdir(directory)) names.emplace_back(entry->d_name);
    closedir(directory);
    std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<std::string> Fingerprint(const std::string& path) override {
    struct stat status {};
    if (stat(Absolute(path).c_str(), &status) != 0) return FromErrno("read", path);
    return fmt::format("{} {} {}.{}", status.st_ino, status.st_size, status.st_mtim.tv_sec,
                       status.st_mtim.tv_nsec);
  }

  Status Replace(const std::string& path, const ByteSource& source) override {
    const std::string target = Absolute(path);
    if (IsDirectory(path)) return DataLoss("cannot write '{}': a directory of that name is there", path);
    // A device or a pipe would be gone afterwards.
    if (struct stat status{}; stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
      return DataLoss("cannot write '{}': it is no ordinary file", path);
    const size_t slash = target.rfind('/');
    const std::string folder = slash == 0 ? "/" : target.substr(0, slash);
    HEDDLE_RETURN_IF_ERROR(MakeFolders(folder, path));
    static std::atomic<uint64_t> count{0};
    const std::string temporary =
        fmt::format("{}/.{}.{}-{}.heddle", folder, target.substr(slash + 1), getpid(), count.fetch_add(1));
    // A file without a name vanishes with the process, however that ends; it gets a name only when it is
    // whole.
    bool named = false;
    Descriptor file(OpenTemporary(folder, temporary, &named));
    if (file.get() < 0) return FromErrno("write", path);
    Status status = source([&](std::string_view bytes) { return WriteAll(file.get(), bytes, path); });
    if (status.ok() && fsync(file.get()) != 0) status = FromErrno("write", path);
    if (status.ok() && !named) {
      const std::string handle = fmt::format("/proc/self/fd/{}", file.get());
      if (linkat(AT_FDCWD, handle.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0)
        status = FromErrno("write", path);
      else
        named = true;
    }
    if (status.ok() && rename(temporary.c_str(), target.c_str()) != 0) status = FromErrno("write", path);
    if (!status.ok() && named) unlink(temporary.c_str());
    return status;
  }

  Status Remove(const std::string& path) override {
    if (unlink(Absolute(path).c_str()) != 0 && errno != ENOENT) return FromErrno("remove", path);
    return OkStatus();
  }

 private:
  std::string Absolute(const std::string& path) const {
    return !path.empty() && path[0] == '/' ? path : directory_ + "/" + path;
  }

  static int OpenTemporary(const std::string& folder, const std::string& temporary, bool* named) {
    const int fd = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
    *named = true;
    return open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  }

  static Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd, bytes.data(), std::min<size_t>(bytes.size(), 1u << 30));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return FromErrno("write", path);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return OkStatus();
  }

  static Status MakeFolders(const std::string& folder, const std::string& path) {
    for (size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
      const std::string part = folder.substr(0, end);
      if (!part.empty() && mkdir(part.c_str(), 0777) != 0 && errno != EEXIST &&
          access(part.c_str(), F_OK) != 0)
        return FromErrno("write", path);
      if (end == std::string::npos) return OkStatus();
    }
  }

  std::string directory_;
};

}  // namespace

std::unique_ptr<Files> MakeFiles(std::string directory) {
  return std::make_unique<RealFiles>(std::move(directory));
}

}  // namespace heddle::ops
