// SPDX-License-Identifier: Apache-2.0
#include "cluster/access/master_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "cluster/executor/executor_process.h"
#include "cluster/security/token.h"
#include "cluster/store/durable_file.h"
#include "ops/io/files/own_folders.h"

namespace heddle::cluster {
namespace {

constexpr size_t kMostLineBytes = 8192;

}  // namespace

Status MakePrivateFolder(const std::string& path) {
  HEDDLE_RETURN_IF_ERROR(ops::OpenFolderForUser(path).status());
  ops::MarkOwnFolder(path);
  return OkStatus();
}

Result<std::unique_ptr<FolderLock>> FolderLock::TryTake(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return PermissionDenied("cannot write '{}': {}", path, strerror(errno));
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return std::unique_ptr<FolderLock>(new FolderLock(fd));
  close(fd);
  return std::unique_ptr<FolderLock>();
}

FolderLock::~FolderLock() { close(fd_); }

Status WritePrivateFile(const std::string& path, const std::string& text) {
  DurableFile file(path);
  int error = file.Open();
  if (error != 0) return PermissionDenied("cannot write '{}': {}", path, strerror(error));
  error = file.Append(text);
  if (error == 0) error = file.Finish(DurableFile::Place::kTaken);
  return error == 0 ? OkStatus() : ResourceExhausted("cannot write '{}': {}", path, strerror(error));
}

Result<std::string> ReadFirstLine(const std::string& path) {
  // A device may give bytes for ever.
  std::ifstream file(path);
  std::array<char, kMostLineBytes + 2> text;
  file.getline(text.data(), text.size());
  if (file.fail() && file.gcount() == static_cast<std::streamsize>(text.size()) - 1)
    return Usage("the first line of '{}' has more than {} bytes", path, kMostLineBytes);
  if (!file && file.gcount() == 0) return NotFound("cannot read '{}'", path);
  std::string line(text.data(), static_cast<size_t>(file.gcount()));
  if (!line.empty() && line.back() == '\0') line.pop_back();  // in place of the end of the line
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  return line;
}

Result<std::string> ReadOrMakeSecret(const std::string& path, bool* is_new) {
  Result<std::string> present = ReadFirstLine(path);
  if (is_new != nullptr) *is_new = !present.ok() || present->empty();
  if (present.ok() && !present->empty()) return present;
  const std::string secret = MakeSecret();
  HEDDLE_RETURN_IF_ERROR(WritePrivateFile(path, secret + "\n"));
  return secret;
}

}  // namespace heddle::cluster
