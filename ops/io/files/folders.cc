// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/folders.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/environment/log.h"

namespace heddle::ops {
namespace {

constexpr int kMostLinks = 40;  // as many as Linux follows
constexpr int kFindsFiles = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr mode_t kAsTheUmaskSays = 0777;

// The parts of a path, last first.
std::vector<std::string> PartsOf(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (slash != 0) parts.emplace_back(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

// Not by glibc, which has no such function before 2.42.
int OpenAt2(int folder, const char* path) {
  open_how how{};
  how.flags = kFindsFiles;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, folder, path, &how, sizeof how));
}

// Open as long as the process runs.
int Root() {
  static const int root = open("/", kFindsFiles);
  return root;
}

bool HasOpenAt2() {
  static const bool has = [] {
    if (Descriptor(OpenAt2(Root(), ".")).ok()) return true;
    HEDDLE_LOG(kInfo, "openat2 is not available: paths are opened folder by folder", {"error", errno});
    return false;
  }();
  return has;
}

}  // namespace

std::string FollowLinks(const std::string& path, bool* circle) {
  std::vector<std::string> rest = PartsOf(path);
  std::string identity;
  for (int links = 0; !rest.empty();) {
    const std::string part = std::move(rest.back());
    rest.pop_back();
    if (part == ".") continue;
    if (part == "..") {
      identity.resize(identity.empty() ? 0 : identity.rfind('/'));
      continue;
    }
    const std::string here = identity + "/" + part;
    std::array<char, PATH_MAX> target{};
    const ssize_t length = readlink(here.c_str(), target.data(), target.size());
    if (length > 0 && links == kMostLinks && circle != nullptr) *circle = true;
    if (length <= 0 || links == kMostLinks) {
      identity = here;
      continue;
    }
    ++links;
    const std::string_view text(target.data(), static_cast<size_t>(length));
    if (text.starts_with('/')) identity.clear();
    for (std::string& inner : PartsOf(text)) rest.push_back(std::move(inner));
  }
  return identity.empty() ? "/" : identity;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool IsWithin(std::string_view path, std::string_view folder) {
  if (!path.starts_with(folder)) return false;
  return path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/';
}

Descriptor OpenFolder(const std::string& path) {
  if (!HasOpenAt2()) return WalkToFolder(path, /*make=*/false);
  Descriptor folder(OpenAt2(Root(), path == "/" ? "." : path.c_str() + 1));
  // The kernel asks to try again when something was renamed meanwhile.
  if (!folder.ok() && errno == EAGAIN) return WalkToFolder(path, /*make=*/false);
  return folder;
}

Descriptor WalkToFolder(const std::string& path, bool make) {
  Descriptor folder(open("/", kFindsFiles));
  std::vector<std::string> parts = PartsOf(path);
  for (; folder.ok() && !parts.empty(); parts.pop_back()) {
    const char* const name = parts.back().c_str();
    Descriptor next(openat(folder.get(), name, kFindsFiles | O_NOFOLLOW));
    if (!next.ok() && errno == ENOENT && make) {
      if (mkdirat(folder.get(), name, kAsTheUmaskSays) != 0 && errno != EEXIST) return Descriptor();
      next = Descriptor(openat(folder.get(), name, kFindsFiles | O_NOFOLLOW));
    }
    // Its error stays in errno: closing what was open before does not touch it.
    folder = std::move(next);
  }
  return folder;
}

}  // namespace heddle::ops
