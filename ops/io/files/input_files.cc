// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/input_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/text/text_encoding.h"
#include "ops/io/files/descriptor_bytes.h"
#include "ops/io/files/file_versions.h"
#include "ops/io/files/packing.h"

namespace heddle::ops {
namespace {

Status CannotRead(const std::string& path, int error) {
  if (error == ENOENT) return NotFound("cannot read '{}': no such file", path);
  // Nothing can have that name: metadata of a file whose own name is as long as can be.
  if (error == ENAMETOOLONG) return NotFound("cannot read '{}': {}", path, std::strerror(error));
  return DataLoss("cannot read '{}': {}", path, std::strerror(error));
}

Status NoOrdinaryFile(const std::string& path, mode_t mode) {
  const char* what = S_ISFIFO(mode)   ? "a pipe"
                     : S_ISSOCK(mode) ? "a socket"
                     : S_ISDIR(mode)  ? "a directory"
                                      : "a device";
  return DataLoss("cannot read '{}': it is {}, no ordinary file", path, what)
      .WithNote("every worker looks at a file before it reads its rows; copy the data into a file first");
}

class OrdinaryFile : public InputFile {
 public:
  static Result<std::unique_ptr<OrdinaryFile>> Open(const FilePlace& place, const std::string& path,
                                                    const FileVersions* versions) {
    struct stat status {};
    if (!place.Look(&status)) return CannotRead(path, errno);
    if (!S_ISREG(status.st_mode)) return NoOrdinaryFile(path, status.st_mode);
    // Should a pipe have taken the name just now, O_NONBLOCK keeps us from waiting for its writer.
    const int fd = place.Open(O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return CannotRead(path, errno);
    std::unique_ptr<OrdinaryFile> file(new OrdinaryFile(fd, path));
    if (fstat(fd, &status) != 0) return CannotRead(path, errno);
    if (!S_ISREG(status.st_mode)) return NoOrdinaryFile(path, status.st_mode);
    if (versions != nullptr) HEDDLE_RETURN_IF_ERROR(versions->CheckOpened(path, status));
    file->status_ = status;
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return file;
  }
  ~OrdinaryFile() override { close(fd_); }
  OrdinaryFile(const OrdinaryFile&) = delete;
  OrdinaryFile& operator=(const OrdinaryFile&) = delete;

  int64_t size() const override { return status_.st_size; }
  /// True if nobody has written to the file since it was like that.
  bool IsAsAt(const struct stat& other) const {
    return status_.st_size == other.st_size && status_.st_ino == other.st_ino &&
           status_.st_mtim.tv_sec == other.st_mtim.tv_sec && status_.st_mtim.tv_nsec == other.st_mtim.tv_nsec;
  }
  const struct stat& status() const { return status_; }
  /// Differs where files or their versions differ.
  std::string Identity() const {
    return fmt::format("{} {} {} {} {} {} {}", status_.st_dev, status_.st_ino, status_.st_size,
                       status_.st_mtim.tv_sec, status_.st_mtim.tv_nsec, status_.st_ctim.tv_sec,
                       status_.st_ctim.tv_nsec);
  }

  Result<std::string_view> Read(int64_t begin, int64_t count, CountedBytes* buffer) const override {
    HEDDLE_RETURN_IF_ERROR(buffer->Renew(count, path_));
    HEDDLE_RETURN_IF_ERROR(ReadInto(begin, count, buffer->data()));
    return buffer->view();
  }

  Status ReadInto(int64_t begin, int64_t count, char* out) const override {
    return ReadBytesAt(fd_, path_, size(), begin, count, out);
  }
  int descriptor() const { return fd_; }

 private:
  OrdinaryFile(int fd, const std::string& path) : fd_(fd), path_(path) {}

  const int fd_;
  const std::string path_;
  struct stat status_ = {};
};

class FileInMemory : public InputFile {
 public:
  explicit FileInMemory(CountedBytes bytes) : bytes_(std::move(bytes)) {}
  int64_t size() const override { return static_cast<int64_t>(bytes_.view().size()); }
  Result<std::string_view> Read(int64_t begin, int64_t count, CountedBytes*) const override {
    return bytes_.view().substr(static_cast<size_t>(begin), static_cast<size_t>(count));
  }

 private:
  const CountedBytes bytes_;
};

class Parts : public InputFile {
 public:
  Status Add(const FilePart& named) {
    Part part{.named = named, .begin = size_};
    CountedBytes buffer;
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file,
                            OpenOrdinaryFile(named.place, named.path, nullptr));
    const int64_t size = file->size();
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view head, file->Read(0, std::min<int64_t>(size, 3), &buffer));
    part.skipped = static_cast<int64_t>(ByteOrderMarkBytes(head));
    part.bytes = size - part.skipped;
    if (part.bytes == 0) return OkStatus();
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view last, file->Read(size - 1, 1, &buffer));
    part.lacks_newline = last != "\n";
    if (const auto* const ordinary = dynamic_cast<const OrdinaryFile*>(file.get()))
      part.status = ordinary->status();
    else
      part.unpacked = std::move(file);
    size_ += part.bytes + part.lacks_newline;
    parts_.push_back(std::move(part));
    return OkStatus();
  }

  int64_t size() const override { return size_; }

  std::vector<InputFile::Part> parts() const override {
    std::vector<InputFile::Part> all;
    for (const Part& part : parts_)
      all.push_back({part.begin, part.bytes, part.named.path, part.hidden_lines});
    return all;
  }

  void LeaveOut(const std::vector<Beginning>& beginnings) override {
    std::vector<Part> left;
    size_ = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      Part& part = parts_[i];
      const auto [bytes, lines] = beginnings[i];
      part.lacks_newline = part.lacks_newline && part.bytes >= bytes;
      part.skipped += std::min(bytes, part.bytes);
      part.bytes -= std::min(bytes, part.bytes);
      part.hidden_lines += lines;
      if (part.bytes == 0) continue;
      part.begin = size_;
      size_ += part.bytes + part.lacks_newline;
      left.push_back(std::move(part));
    }
    parts_ = std::move(left);
  }

  Result<std::string_view> Read(int64_t begin, int64_t count, CountedBytes* buffer) const override {
    if (count == 0) return std::string_view();
    // The last part that begins at or before `begin`.
    auto part = std::upper_bound(parts_.begin(), parts_.end(), begin,
                                 [](int64_t at, const Part& p) { return at < p.begin; });
    --part;
    HEDDLE_RETURN_IF_ERROR(buffer->Renew(count, part->named.path));
    for (int64_t done = 0; done < count; ++part) {
      const int64_t from = begin + done - part->begin;
      const int64_t most = std::min(count - done, part->bytes + part->lacks_newline - from);
      HEDDLE_RETURN_IF_ERROR(part->ReadInto(from, most, buffer->data() + done));
      done += most;
    }
    return buffer->view();
  }

 private:
  struct Part {
    FilePart named;
    int64_t begin = 0;    // in the whole
    int64_t skipped = 0;  // its byte order mark, and lines that are left out
    int64_t hidden_lines = 0;
    int64_t bytes = 0;  // without that
    bool lacks_newline = false;
    struct stat status = {};
    std::unique_ptr<InputFile> unpacked;  // if it is packed

    Status ReadInto(int64_t from, int64_t count, char* out) const {
      if (from + count > bytes) {
        --count;
        out[count] = '\n';
        if (count == 0) return OkStatus();
      }
      if (unpacked != nullptr) {
        CountedBytes buffer;
        HEDDLE_ASSIGN_OR_RETURN(const std::string_view text, unpacked->Read(skipped + from, count, &buffer));
        std::copy(text.begin(), text.end(), out);
        return OkStatus();
      }
      HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<OrdinaryFile> file,
                              OrdinaryFile::Open(named.place, named.path, nullptr));
      if (!file->IsAsAt(status))
        return DataLoss("cannot read '{}': it changed while it was read", named.path);
      return file->ReadInto(skipped + from, count, out);
    }
  };

  std::vector<Part> parts_;
  int64_t size_ = 0;
};

}  // namespace

int DescriptorOf(const InputFile& file) {
  const auto* const ordinary = dynamic_cast<const OrdinaryFile*>(&file);
  return ordinary == nullptr ? -1 : ordinary->descriptor();
}

std::unique_ptr<InputFile> MakeFileInMemory(CountedBytes bytes) {
  return std::make_unique<FileInMemory>(std::move(bytes));
}

Result<std::unique_ptr<InputFile>> OpenOrdinaryFile(const FilePlace& place, const std::string& path,
                                                    const FileVersions* versions) {
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<OrdinaryFile> file, OrdinaryFile::Open(place, path, versions));
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view head,
                          file->Read(0, std::min<int64_t>(file->size(), 4), &buffer));
  const Packing packing = PackingOf(head);
  if (packing == Packing::kNone) return std::unique_ptr<InputFile>(std::move(file));
  const std::string identity = file->Identity();
  return OpenPacked(std::move(file), packing, path, identity);
}

Result<std::unique_ptr<InputFile>> OpenParts(const std::vector<FilePart>& parts) {
  auto whole = std::make_unique<Parts>();
  for (const FilePart& part : parts) HEDDLE_RETURN_IF_ERROR(whole->Add(part));
  return std::unique_ptr<InputFile>(std::move(whole));
}

}  // namespace heddle::ops
