// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "cluster/checkpoints/checkpoint_stores.h"
#include "cluster/store/durable_file.h"
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

// Their names last as well.
Status MakeFolders(const std::string& folder) {
  const std::string above = fs::path(folder).parent_path().string();
  if (mkdir(folder.c_str(), 0700) != 0) {
    if (errno == EEXIST) return OkStatus();
    if (errno != ENOENT || above == folder) return Failure("make", folder, errno);
    HEDDLE_RETURN_IF_ERROR(MakeFolders(above));
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return Failure("make", folder, errno);
  }
  const int error = SyncFolder(above);
  return error == 0 ? OkStatus() : Failure("sync", above, error);
}

class FileWriter : public Writer {
 public:
  static Result<std::unique_ptr<Writer>> Begin(const std::string& path) {
    HEDDLE_RETURN_IF_ERROR(MakeFolders(fs::path(path).parent_path().string()));
    std::unique_ptr<FileWriter> writer(new FileWriter(path));
    HEDDLE_RETURN_IF_ERROR(writer->Tell(writer->file_.Open()));
    return std::unique_ptr<Writer>(std::move(writer));
  }

  Status Append(std::string_view bytes) override { return Tell(file_.Append(bytes)); }
  Status Finish() override { return Tell(file_.Finish(DurableFile::Place::kTaken)); }

 private:
  explicit FileWriter(const std::string& path) : path_(path), file_(path) {}
  Status Tell(int error) const { return error == 0 ? OkStatus() : Failure("write", path_, error); }

  const std::string path_;
  DurableFile file_;
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

Result<std::map<std::string, int64_t>> FoldersOf(const std::string& place) {
  std::map<std::string, int64_t> folders;
  std::error_code error;
  fs::directory_iterator job(place, error);
  if (error == std::errc::no_such_file_or_directory) return folders;
  for (; !error && job != fs::directory_iterator(); job.increment(error)) {
    std::error_code gone;  // files come and go meanwhile
    if (job->is_symlink(gone) || !job->is_directory(gone)) continue;
    int64_t& bytes = folders[job->path().filename().string()];
    for (fs::recursive_directory_iterator entry(job->path(), gone), end; !gone && entry != end;
         entry.increment(gone)) {
      std::error_code ignored;
      if (entry->is_regular_file(ignored)) bytes += static_cast<int64_t>(entry->file_size(ignored));
    }
  }
  if (error) return Failure("list", place, error.value());
  return folders;
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

Result<std::map<std::string, int64_t>> CheckpointFolders(const std::string& location) {
  HEDDLE_RETURN_IF_ERROR(CheckCheckpointLocation(location));
  return location.starts_with("/") ? FoldersOf(location) : ObjectCheckpointFolders(location);
}

}  // namespace heddle::cluster
