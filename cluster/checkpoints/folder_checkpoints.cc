// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "cluster/checkpoints/checkpoint_stores.h"
#include "cluster/security/token.h"
#include "core/environment/descriptor.h"

namespace heddle::cluster {
namespace {

namespace fs = std::filesystem;
using Writer = engine::CheckpointStore::Writer;

Status Failure(const char* what, const std::string& path, int error) {
  const std::string text = fmt::format("checkpoints: cannot {} '{}': {}", what, path, std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) return ResourceExhausted("{}", text);
  return error == ENOENT ? NotFound("{}", text) : Unavailable("{}", text);
}

// So that the names in it are on the disk.
Status SyncFolder(const std::string& folder) {
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0 || fsync(opened.get()) != 0) return Failure("sync", folder, errno);
  return OkStatus();
}

Status MakeFolders(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return OkStatus();
  const int error = errno;
  const std::string above = fs::path(folder).parent_path().string();
  if (error != ENOENT || above == folder) return Failure("make", folder, error);
  HEDDLE_RETURN_IF_ERROR(MakeFolders(above));
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return Failure("make", folder, errno);
  return SyncFolder(above);
}

class FileWriter : public Writer {
 public:
  static Result<std::unique_ptr<Writer>> Begin(std::string path) {
    const fs::path place(path);
    HEDDLE_RETURN_IF_ERROR(MakeFolders(place.parent_path().string()));
    std::string hidden =
        (place.parent_path() / fmt::format(".{}.{}", place.filename().string(), MakeToken())).string();
    Descriptor file(open(hidden.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.get() < 0) return Failure("write", path, errno);
    return std::unique_ptr<Writer>(new FileWriter(std::move(path), std::move(hidden), std::move(file)));
  }
  ~FileWriter() override {
    if (!hidden_.empty()) unlink(hidden_.c_str());
  }

  Status Append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return Failure("write", path_, errno);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return OkStatus();
  }
  Status Finish() override {
    if (fsync(file_.get()) != 0) return Failure("write", path_, errno);
    if (rename(hidden_.c_str(), path_.c_str()) != 0) return Failure("write", path_, errno);
    hidden_.clear();
    return SyncFolder(fs::path(path_).parent_path().string());
  }

 private:
  FileWriter(std::string path, std::string hidden, Descriptor file)
      : path_(std::move(path)), hidden_(std::move(hidden)), file_(std::move(file)) {}

  const std::string path_;
  std::string hidden_;
  const Descriptor file_;
};

class FolderStore : public engine::CheckpointStore {
 public:
  explicit FolderStore(std::string folder) : folder_(std::move(folder)) {}

  Result<std::unique_ptr<Writer>> Create(const std::string& name) override {
    return FileWriter::Begin(PathOf(name));
  }
  Result<int64_t> SizeOf(const std::string& name) override {
    struct stat found {};
    if (stat(PathOf(name).c_str(), &found) != 0) return Failure("find", PathOf(name), errno);
    return int64_t{found.st_size};
  }
  Status Read(const std::string& name, int64_t offset, std::span<char> to) override {
    const std::string path = PathOf(name);
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return Failure("read", path, errno);
    for (size_t done = 0; done < to.size();) {
      const ssize_t got =
          pread(file.get(), to.data() + done, to.size() - done, offset + static_cast<int64_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Failure("read", path, errno);
      if (got == 0) return DataLoss("checkpoints: '{}' is shorter than it was", path);
      done += static_cast<size_t>(got);
    }
    return OkStatus();
  }
  Status RemoveAll(const std::string& folder) override {
    std::error_code error;
    fs::remove_all(PathOf(folder), error);
    return error ? Failure("remove", PathOf(folder), error.value()) : OkStatus();
  }

 private:
  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }

  const std::string folder_;
};

Result<std::vector<std::string>> ListFolder(const std::string& place, const std::string& folder) {
  std::vector<std::string> names;
  const std::string path = place + "/" + folder;
  std::error_code error;
  fs::recursive_directory_iterator entry(path, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
    if (entry->is_regular_file(error) && !entry->path().filename().string().starts_with('.'))
      names.push_back(entry->path().string().substr(place.size() + 1));
  if (error) return Failure("list", path, error.value());
  return names;
}

}  // namespace

std::unique_ptr<engine::CheckpointStore> FolderCheckpoints(const std::string& folder) {
  return std::make_unique<FolderStore>(folder);
}

Status CheckCheckpointLocation(const std::string& location) {
  constexpr std::string_view kObjects = "s3://";
  const bool is_bucket = location.starts_with(kObjects) && location.size() > kObjects.size() &&
                         location[kObjects.size()] != '/' &&
                         location.find_first_of("?#\n") == std::string::npos;
  if (is_bucket && location.size() <= 1024) return OkStatus();
  if (location.starts_with("/") && location.size() <= 4096 && location.find('\0') == std::string::npos)
    return OkStatus();
  return Usage(
      "checkpoints go to a folder that all workers see, by its absolute path, or to s3://BUCKET/PREFIX, not to '{}'",
      location);
}

Result<std::unique_ptr<engine::CheckpointStore>> OpenCheckpoints(const std::string& location) {
  HEDDLE_RETURN_IF_ERROR(CheckCheckpointLocation(location));
  if (!location.starts_with("/")) return ObjectCheckpoints(location);
  return FolderCheckpoints(location);
}

Result<std::vector<std::string>> ListCheckpoints(const std::string& location, const std::string& folder) {
  HEDDLE_RETURN_IF_ERROR(CheckCheckpointLocation(location));
  return location.starts_with("/") ? ListFolder(location, folder) : ListObjectCheckpoints(location, folder);
}

}  // namespace heddle::cluster
