// SPDX-License-Identifier: Apache-2.0
#include "cluster/store/durable_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "ops/io/files/hidden_names.h"

namespace heddle::cluster {
namespace {

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

int MoveToFreeName(const std::string& from, const std::string& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;  // of file systems that cannot
  if (link(from.c_str(), to.c_str()) != 0) return errno;
  unlink(from.c_str());
  return 0;
}

}  // namespace

int SyncFolder(const std::string& folder) {
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.ok()) return errno;
  return fsync(opened.get()) == 0 || errno == EINVAL ? 0 : errno;
}

DurableFile::DurableFile(std::string path) : path_(std::move(path)), folder_(FolderOf(path_)) {}

DurableFile::~DurableFile() {
  if (!hidden_.empty()) unlink(hidden_.c_str());
}

int DurableFile::Open() {
  std::string hidden = folder_ + "/" + ops::NewHiddenName();
  file_ = Descriptor(open(hidden.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file_.ok()) return errno;
  hidden_ = std::move(hidden);
  return ops::LockHidden(file_.get()) ? 0 : EAGAIN;
}

int DurableFile::Append(std::string_view bytes) {
  bytes_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t written = write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int DurableFile::Finish(Place place) {
  if (fsync(file_.get()) != 0) return errno;
  if (place == Place::kFree) {
    if (const int error = MoveToFreeName(hidden_, path_); error != 0) return error;
  } else if (rename(hidden_.c_str(), path_.c_str()) != 0) {
    return errno;
  }
  hidden_.clear();
  return SyncFolder(folder_);
}

}  // namespace heddle::cluster
