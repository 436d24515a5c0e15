// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/spill_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/environment/descriptor.h"
#include "core/values/sizes.h"
#include "ops/io/files/hidden_names.h"

namespace heddle::ops {
namespace {

constexpr int kMostNames = 100;
constexpr std::string_view kPrefix = "spill: ";  // Of all messages.

// What one system call moves: enough that calls cost nothing beside the copy.
constexpr int64_t kPieceBytes = int64_t{4} << 20;

Status WithAdvice(const Status& status) {
  return status.WithNote(
      "name a folder on a disk with more room (--spill-folder FOLDER), or give more memory (--memory SIZE)");
}

int64_t FreeBytes(int fd) {
  struct statfs system {};
  if (fstatfs(fd, &system) != 0) return 0;
  return SaturatingProduct(static_cast<int64_t>(system.f_bavail), static_cast<int64_t>(system.f_bsize));
}

// Writing beyond what the process may write (ulimit -f) would end it by a signal.
int64_t MostBytesOfFile() {
  struct rlimit limit {};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur > static_cast<rlim_t>(INT64_MAX)
             ? INT64_MAX
             : static_cast<int64_t>(limit.rlim_cur);
}

class FileOnDisk : public SpillFile {
 public:
  FileOnDisk(Descriptor file, std::string folder)
      : file_(std::move(file)), folder_(std::move(folder)), most_bytes_(MostBytesOfFile()) {}

  Status WriteAt(int64_t offset, const void* bytes, int64_t count) override {
    if (SaturatingSum(offset, count) > most_bytes_)
      return WithAdvice(ResourceExhausted("spill: a file in '{}' may not have more than {} bytes (ulimit -f)",
                                          folder_, most_bytes_));
    const char* from = static_cast<const char*>(bytes);
    while (count > 0) {
      const ssize_t written = pwrite(file_.get(), from, static_cast<size_t>(std::min(count, kPieceBytes)),
                                     static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return WriteFailed(written < 0 ? errno : ENOSPC, count);
      from += written;
      offset += written;
      count -= written;
    }
    return OkStatus();
  }

  Status ReadAt(int64_t offset, void* bytes, int64_t count) const override {
    char* to = static_cast<char*>(bytes);
    while (count > 0) {
      const ssize_t got = pread(file_.get(), to, static_cast<size_t>(std::min(count, kPieceBytes)),
                                static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0)
        return DataLoss("spill: cannot read what was written to a file in '{}': {}", folder_,
                        got < 0 ? std::strerror(errno) : "the file has become shorter");
      to += got;
      offset += got;
      count -= got;
    }
    return OkStatus();
  }

  void Announce(int64_t offset, int64_t count) const override {
    posix_fadvise(file_.get(), static_cast<off_t>(offset), static_cast<off_t>(count), POSIX_FADV_WILLNEED);
  }

  const std::string& folder() const override { return folder_; }

 private:
  Status WriteFailed(int error, int64_t needed_bytes) const {
    if (error == ENOSPC)
      return WithAdvice(ResourceExhausted("spill: no room on the disk of '{}': {} bytes needed, {} free",
                                          folder_, needed_bytes, FreeBytes(file_.get())));
    return WithAdvice(
        ResourceExhausted("spill: cannot write to a file in '{}': {}", folder_, std::strerror(error)));
  }

  Descriptor file_;
  std::string folder_;
  int64_t most_bytes_;
};

class FilesOnDisk : public SpillFiles {
 public:
  FilesOnDisk(std::string folder, SpillNames names)
      : path_(folder.empty() ? SpillFolder() : std::move(folder)), names_(names) {}

  Result<std::unique_ptr<SpillFile>> Create() override {
    const Descriptor folder(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.ok()) return CannotCreate(errno);
    abandoned_.RemoveIn(folder.get());
    Descriptor file;
    if (names_ == SpillNames::kNever) {
      file = Descriptor(openat(folder.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600));
      if (!file.ok() && errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
        return CannotCreate(errno);
    }
    if (!file.ok()) {
      HEDDLE_ASSIGN_OR_RETURN(file, CreateUnderName(folder.get()));
    }
    return std::unique_ptr<SpillFile>(std::make_unique<FileOnDisk>(std::move(file), path_));
  }

 private:
  // A file whose name is removed at once. Who is killed in between leaves the name with a free lock.
  Result<Descriptor> CreateUnderName(int folder) const {
    for (int tries = 0; tries < kMostNames; ++tries) {
      const std::string name = NewHiddenName();
      Descriptor file(openat(folder, name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
      if (!file.ok()) {
        if (errno == EEXIST) continue;
        return CannotCreate(errno);
      }
      // Whether a sweeper was faster does not matter: the name goes.
      LockHidden(file.get());
      if (unlinkat(folder, name.c_str(), 0) != 0 && errno != ENOENT) return CannotCreate(errno);
      return file;
    }
    return CannotCreate(EEXIST);
  }

  Status CannotCreate(int error) const {
    return ResourceExhausted("spill: cannot make a file in '{}': {}", path_, std::strerror(error))
        .WithNote(
            "what does not fit in memory is written there: name another folder (--spill-folder FOLDER), or "
            "give more memory (--memory SIZE)");
  }

  const std::string path_;
  const SpillNames names_;
  AbandonedParts abandoned_;
};

bool IsInMemory(const char* folder) {
  struct statfs system {};
  if (statfs(folder, &system) != 0) return true;
  return system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
}

}  // namespace

std::unique_ptr<SpillFiles> MakeSpillFiles(std::string folder, SpillNames names) {
  return std::make_unique<FilesOnDisk>(std::move(folder), names);
}

Status CheckSpillFolder(const std::string& folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return NotFound("there is no folder '{}'", folder);
  FilesOnDisk files(folder, SpillNames::kNever);
  const Status made = files.Create().status();
  return made.ok() ? made : WithAdvice(Status(made.code(), made.message().substr(kPrefix.size())));
}

std::string SpillFolder() {
  const char* const named = std::getenv("TMPDIR");
  if (named != nullptr && named[0] != '\0') return named;
  return IsInMemory("/tmp") && !IsInMemory("/var/tmp") ? "/var/tmp" : "/tmp";
}

}  // namespace heddle::ops
