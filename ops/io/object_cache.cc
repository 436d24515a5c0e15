// SPDX-License-Identifier: Apache-2.0
#include "ops/io/object_cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <vector>

#include "ops/io/checksums/sha256.h"

namespace heddle::ops {
namespace {

namespace fs = std::filesystem;

constexpr char kExtension[] = ".code";
constexpr int64_t kLargestFile = int64_t{16} << 20;

constexpr char kNameOfSecret[] = "code.key";
constexpr mode_t kOpenToOthers = 077;

/// What a file begins with; key, object and the code over all of it follow.
struct Header {
  char magic[8] = {'h', 'e', 'd', 'd', 'l', 'e', 'c', '2'};
  uint64_t key_size = 0;
  uint64_t object_size = 0;
};

std::string_view BytesOf(const Header& header) {
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

std::string_view BytesOf(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// Of the secret as well, so that processes with different ones do not replace each other's files.
std::string NameOf(const std::string& secret, std::string_view key) {
  constexpr size_t kBytesOfName = 8;
  const Sha256Digest hash = HmacSha256(secret, {key});
  std::string name;
  for (size_t i = 0; i < kBytesOfName; ++i) name += fmt::format("{:02x}", hash[i]);
  return name + kExtension;
}

// Looks at what was opened, not at the name.
std::optional<std::string> ReadOwnFile(int folder, const std::string& name) {
  // Nobody waits for the writer of a pipe.
  const Descriptor file(
      ::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat status;
  if (!file.ok() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid() || (status.st_mode & kOpenToOthers) != 0 || status.st_nlink != 1 ||
      status.st_size > kLargestFile)
    return std::nullopt;
  std::string text(static_cast<size_t>(status.st_size), '\0');
  for (size_t have = 0; have < text.size();) {
    const ssize_t got = ::read(file.get(), text.data() + have, text.size() - have);
    if (got <= 0) return std::nullopt;
    have += static_cast<size_t>(got);
  }
  return text;
}

bool WriteFile(int folder, const std::string& name, std::initializer_list<std::string_view> parts) {
  const int file = ::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return false;
  bool good = true;
  for (std::string_view part : parts) {
    while (good && !part.empty()) {
      const ssize_t put = ::write(file, part.data(), part.size());
      good = put > 0;
      if (good) part.remove_prefix(static_cast<size_t>(put));
    }
  }
  return (::close(file) == 0) && good;
}

}  // namespace

std::string ObjectCache::FolderOf(std::string_view name) {
  const std::string cache = UserCacheFolder();
  return cache.empty() ? cache : fmt::format("{}/{}", cache, name);
}

std::string ObjectCache::PathOf(std::string_view key) const {
  return Secret() ? fmt::format("{}/{}", folder_, NameOf(*Secret(), key)) : "";
}

const std::optional<std::string>& ObjectCache::Secret() const {
  std::call_once(secret_read_, [&] { secret_ = SecretOfUser(state_folder_, kNameOfSecret); });
  return secret_;
}

std::optional<std::string> ObjectCache::Find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const Result<Descriptor> folder = OpenFolderForUser(folder_, {.is_made = false, .is_closed = true});
  if (!folder.ok() || !Secret()) return std::nullopt;
  const std::string name = NameOf(*Secret(), key);
  const std::optional<std::string> text = ReadOwnFile(folder->get(), name);
  constexpr size_t kCodeBytes = sizeof(Sha256Digest);
  Header header;
  if (!text || text->size() < sizeof header + key.size() + kCodeBytes) return std::nullopt;
  const std::string_view all = *text;
  std::memcpy(&header, text->data(), sizeof header);
  const std::string_view object =
      all.substr(sizeof header + key.size(), all.size() - sizeof header - key.size() - kCodeBytes);
  if (std::memcmp(header.magic, Header().magic, sizeof header.magic) != 0 || header.key_size != key.size() ||
      header.object_size != object.size() || all.substr(sizeof header, key.size()) != key ||
      BytesOf(HmacSha256(*Secret(), {all.substr(0, all.size() - kCodeBytes)})) !=
          all.substr(all.size() - kCodeBytes))
    return std::nullopt;
  ::utimensat(folder->get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);  // It was used now.
  return std::string(object);
}

void ObjectCache::Store(std::string_view key, std::string_view object) const {
  if (folder_.empty() || !Secret()) return;
  const Result<Descriptor> folder = OpenFolderForUser(folder_, {.is_closed = true});
  if (!folder.ok()) return;
  MarkOwnFolder(folder_);
  static std::atomic<int> count = 0;
  const std::string temporary = fmt::format("{}-{}.new", ::getpid(), count++);
  Header header;
  header.key_size = key.size();
  header.object_size = object.size();
  const Sha256Digest code = HmacSha256(*Secret(), {BytesOf(header), key, object});
  if (!WriteFile(folder->get(), temporary, {BytesOf(header), key, object, BytesOf(code)}) ||
      ::renameat(folder->get(), temporary.c_str(), folder->get(), NameOf(*Secret(), key).c_str()) != 0)
    ::unlinkat(folder->get(), temporary.c_str(), 0);
  else
    Shrink();
}

// Also removes what interrupted writers left behind, as these files age like the others.
void ObjectCache::Shrink() const {
  struct File {
    fs::file_time_type time;
    int64_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  int64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (!at->is_regular_file(gone) || at->path().filename() == kOwnFolderMark) continue;
    File file{at->last_write_time(gone), static_cast<int64_t>(at->file_size(gone)), at->path()};
    if (gone) continue;
    total += file.bytes;
    files.push_back(std::move(file));
  }
  if (total <= capacity_bytes_) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.time < b.time; });
  for (const File& file : files) {
    if (total <= capacity_bytes_) break;
    fs::remove(file.path, error);
    total -= file.bytes;
  }
}

}  // namespace heddle::ops
