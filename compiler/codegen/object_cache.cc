// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/object_cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace heddle::codegen {
namespace {

namespace fs = std::filesystem;

constexpr char kExtension[] = ".code";
constexpr int64_t kLargestFile = int64_t{16} << 20;

/// What a file begins with; key and object follow.
struct Header {
  char magic[8] = {'h', 'e', 'd', 'd', 'l', 'e', 'c', '1'};
  uint64_t key_size = 0;
  uint64_t object_size = 0;
  uint64_t checksum = 0;  ///< Of key and object.
};

// FNV-1a. It names files and finds damage; the key itself is compared, so a collision costs time only.
uint64_t Hash(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325u) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash;
}

std::optional<std::string> ReadOwnFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return std::nullopt;
  struct stat status;
  std::optional<std::string> text;
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
      status.st_size <= kLargestFile) {
    text.emplace(static_cast<size_t>(status.st_size), '\0');
    size_t have = 0;
    while (have < text->size()) {
      const ssize_t got = ::read(file, text->data() + have, text->size() - have);
      if (got <= 0) break;
      have += static_cast<size_t>(got);
    }
    if (have < text->size()) text.reset();
  }
  ::close(file);
  return text;
}

bool WriteFile(const std::string& path, std::initializer_list<std::string_view> parts) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
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

std::string ObjectCache::DefaultFolder() {
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/')
    return std::string(cache) + "/heddle/code";
  if (const char* const home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return std::string(home) + "/.cache/heddle/code";
  return {};
}

std::string ObjectCache::PathOf(std::string_view key) const {
  return fmt::format("{}/{:016x}{}", folder_, Hash(key), kExtension);
}

std::optional<std::string> ObjectCache::Find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  std::optional<std::string> text = ReadOwnFile(PathOf(key));
  Header header;
  if (!text || text->size() < sizeof header) return std::nullopt;
  std::memcpy(&header, text->data(), sizeof header);
  const std::string_view rest = std::string_view(*text).substr(sizeof header);
  if (std::memcmp(header.magic, Header().magic, sizeof header.magic) != 0 || header.key_size != key.size() ||
      header.key_size > rest.size() || header.object_size != rest.size() - header.key_size ||
      rest.substr(0, key.size()) != key || Hash(rest) != header.checksum)
    return std::nullopt;
  ::utimensat(AT_FDCWD, PathOf(key).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);  // It was used now.
  return std::string(rest.substr(key.size()));
}

void ObjectCache::Store(std::string_view key, std::string_view object) const {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  static std::atomic<int> count = 0;
  const std::string temporary = fmt::format("{}/{}-{}.new", folder_, ::getpid(), count++);
  Header header;
  header.key_size = key.size();
  header.object_size = object.size();
  header.checksum = Hash(object, Hash(key));
  const std::string_view header_bytes(reinterpret_cast<const char*>(&header), sizeof header);
  if (!WriteFile(temporary, {header_bytes, key, object}) ||
      ::rename(temporary.c_str(), PathOf(key).c_str()) != 0)
    ::unlink(temporary.c_str());
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
    if (!at->is_regular_file(gone)) continue;
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

}  // namespace heddle::codegen
