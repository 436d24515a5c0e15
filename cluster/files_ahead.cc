// SPDX-License-Identifier: Apache-2.0
#include "cluster/files_ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <utility>

namespace heddle::cluster {
namespace {

constexpr int kGzipWindow = 15 + 16;
constexpr size_t kBlockBytes = 1 << 18;

Status NotLookedAt(const std::string& path) { return Unavailable("{} is not looked at ahead", path); }

class Copied : public ops::InputFile {
 public:
  explicit Copied(std::string bytes) : bytes_(std::move(bytes)) {}
  std::string_view bytes() const override { return bytes_; }

 private:
  std::string bytes_;
};

class NoFiles : public ops::Files {
 public:
  Result<std::unique_ptr<ops::InputFile>> Open(const std::string& path) override { return NotLookedAt(path); }
  bool Exists(const std::string&) override { return false; }
  bool IsDirectory(const std::string&) override { return false; }
  Result<std::vector<std::string>> List(const std::string& path) override { return NotLookedAt(path); }
  Result<std::string> Fingerprint(const std::string& path) override { return NotLookedAt(path); }
  Status Replace(const std::string& path, const ops::ByteSource&) override { return NotLookedAt(path); }
  Status Remove(const std::string& path) override { return NotLookedAt(path); }
};

// False when it is not whole gzip data or does not fit.
bool Unpack(std::string_view packed, size_t most_bytes, std::string* out) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return false;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string block(kBlockBytes, '\0');
  int code = Z_OK;
  while (code == Z_OK && out->size() <= most_bytes) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    code = inflate(&stream, Z_NO_FLUSH);
    out->append(block.data(), block.size() - stream.avail_out);
    if (code == Z_STREAM_END && stream.avail_in > 0) code = inflateReset(&stream);  // the next member
  }
  inflateEnd(&stream);
  return code == Z_STREAM_END && out->size() <= most_bytes;
}

class FilesAhead : public ops::Files {
 public:
  FilesAhead(std::string directory, const FilesAheadLimits& limits)
      : files_(ops::MakeFiles(directory)), directory_(std::move(directory)), limits_(limits) {}

  Result<std::unique_ptr<ops::InputFile>> Open(const std::string& path) override {
    std::string bytes;
    if (!ReadWhole(path, &bytes)) return NotLookedAt(path);
    if (bytes.starts_with("\x1f\x8b")) {
      std::string unpacked;
      if (!Unpack(bytes, static_cast<size_t>(limits_.most_unpacked_bytes), &unpacked))
        return NotLookedAt(path);
      bytes = std::move(unpacked);
    }
    return std::unique_ptr<ops::InputFile>(std::make_unique<Copied>(std::move(bytes)));
  }
  bool Exists(const std::string& path) override { return files_->Exists(path); }
  bool IsDirectory(const std::string& path) override { return files_->IsDirectory(path); }
  Result<std::vector<std::string>> List(const std::string& path) override { return NotLookedAt(path); }
  Result<std::string> Fingerprint(const std::string& path) override { return files_->Fingerprint(path); }
  Status Replace(const std::string& path, const ops::ByteSource&) override { return NotLookedAt(path); }
  Status Remove(const std::string& path) override { return NotLookedAt(path); }

 private:
  bool ReadWhole(const std::string& path, std::string* bytes) const {
    const std::string absolute = path.starts_with('/') ? path : directory_ + "/" + path;
    const int fd = open(absolute.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return false;
    struct stat status {};
    bool whole =
        fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= limits_.most_file_bytes;
    if (whole) bytes->resize(static_cast<size_t>(status.st_size));
    for (size_t begin = 0; whole && begin < bytes->size();) {
      const ssize_t got = read(fd, bytes->data() + begin, bytes->size() - begin);
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
  const std::string directory_;
  const FilesAheadLimits limits_;
};

}  // namespace

std::unique_ptr<ops::Files> MakeFilesAhead(std::string directory, const FilesAheadLimits& limits) {
  return std::make_unique<FilesAhead>(std::move(directory), limits);
}

std::unique_ptr<ops::Files> MakeNoFiles() { return std::make_unique<NoFiles>(); }

}  // namespace heddle::cluster
