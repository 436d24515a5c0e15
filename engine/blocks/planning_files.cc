// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/planning_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "ops/io/files/input_files.h"
#include "ops/io/files/packing.h"
#include "ops/io/files/replacement.h"
#include "ops/io/files/script_paths.h"

namespace heddle::engine {
namespace {

Status NotLookedAt(const std::string& path) {
  return Unavailable("{} is not looked at before the run", path);
}

class NoFiles : public ops::Files {
 public:
  Result<std::unique_ptr<ops::InputFile>> Open(const std::string& path) override { return NotLookedAt(path); }
  bool Exists(const std::string&) override { return false; }
  bool IsDirectory(const std::string&) override { return false; }
  Result<std::vector<std::string>> List(const std::string& path) override { return NotLookedAt(path); }
  Result<std::string> Fingerprint(const std::string& path) override { return NotLookedAt(path); }
  Result<std::unique_ptr<ops::NewFile>> Begin(const std::string& path) override { return NotLookedAt(path); }
  Status Remove(const std::string& path) override { return NotLookedAt(path); }
};

class PlanningFiles : public ops::Files {
 public:
  PlanningFiles(const std::string& directory, const ops::FileRoots& roots, const PlanningFileLimits& limits)
      : files_(ops::MakeFiles(directory, nullptr, roots)), paths_(directory, roots), limits_(limits) {}

  Result<std::unique_ptr<ops::InputFile>> Open(const std::string& path) override {
    ops::CountedBytes bytes;
    if (!ReadWhole(path, &bytes)) return NotLookedAt(path);
    const ops::Packing packing = ops::PackingOf(bytes.view());
    std::unique_ptr<ops::InputFile> file = ops::MakeFileInMemory(std::move(bytes));
    if (packing == ops::Packing::kNone) return file;
    Result<ops::CountedBytes> unpacked = ops::Unpack(*file, packing, path, limits_.most_unpacked_bytes);
    if (!unpacked.ok()) return NotLookedAt(path);
    return ops::MakeFileInMemory(*std::move(unpacked));
  }
  bool Exists(const std::string& path) override { return files_->Exists(path); }
  bool IsDirectory(const std::string& path) override { return files_->IsDirectory(path); }
  Result<std::vector<std::string>> List(const std::string& path) override { return NotLookedAt(path); }
  Result<std::string> Fingerprint(const std::string& path) override { return files_->Fingerprint(path); }
  Result<std::unique_ptr<ops::NewFile>> Begin(const std::string& path) override { return NotLookedAt(path); }
  Status Remove(const std::string& path) override { return NotLookedAt(path); }
  ops::FileVersions* versions() override { return files_->versions(); }

 private:
  bool ReadWhole(const std::string& path, ops::CountedBytes* bytes) const {
    const Result<ops::FilePlace> place = paths_.Find(path, ops::ScriptPaths::Use::kRead);
    struct stat status {};
    // Opening a pipe and closing it again would end the program that writes into it.
    if (!place.ok() || !place->Look(&status) || !S_ISREG(status.st_mode)) return false;
    const int fd = place->Open(O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return false;
    bool whole =
        fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= limits_.most_file_bytes;
    whole = whole && bytes->Renew(status.st_size, path).ok();
    for (size_t begin = 0; whole && begin < bytes->view().size();) {
      const ssize_t got = read(fd, bytes->data() + begin, bytes->view().size() - begin);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0)
        whole = false;  // it became shorter
      else
        begin += static_cast<size_t>(got);
    }
    close(fd);
    return whole;
  }

  const std::unique_ptr<ops::Files> files_;
  const ops::ScriptPaths paths_;
  const PlanningFileLimits limits_;
};

}  // namespace

std::unique_ptr<ops::Files> MakePlanningFiles(const std::string& directory, const ops::FileRoots& roots,
                                              const PlanningFileLimits& limits) {
  return std::make_unique<PlanningFiles>(directory, roots, limits);
}

std::unique_ptr<ops::Files> MakeNoFiles() { return std::make_unique<NoFiles>(); }

}  // namespace heddle::engine
