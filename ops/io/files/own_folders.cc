// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/own_folders.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::ops {
namespace {

constexpr mode_t kForUser = 0700;
constexpr mode_t kOpenToOthers = 077;
constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;
constexpr int kFindsFolders = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr size_t kSecretBytes = 32;

std::string AbsoluteFromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

bool WriteAll(int fd, const std::string& bytes) {
  return write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

struct FoundFolder {
  Descriptor descriptor;  // O_PATH
  struct stat status {};
};

// Also of a folder that the umask has closed to this user, which a descriptor for reading is not to be had
// of.
bool CloseToOthers(int folder) {
  return chmod(fmt::format("/proc/self/fd/{}", folder).c_str(), kForUser) == 0;
}

// The folder `name` inside of `above`, for messages at `path`.
Result<FoundFolder> EnterFolder(const FoundFolder& above, const std::string& name, const std::string& path,
                                const FolderRules& rules) {
  const auto cannot = [&](const char* what) {
    return PermissionDenied("cannot {} the folder '{}': {}", what, path, std::strerror(errno));
  };
  const int in = above.descriptor.get();
  const auto find = [&] { return Descriptor(openat(in, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)); };
  FoundFolder found{.descriptor = find()};
  const bool is_missing = !found.descriptor.ok() && errno == ENOENT && rules.is_made;
  const bool is_new = is_missing && mkdirat(in, name.c_str(), kForUser) == 0;
  if (is_missing && !is_new && errno != EEXIST) return cannot("make");
  if (is_missing) found.descriptor = find();
  if (!found.descriptor.ok() || fstat(found.descriptor.get(), &found.status) != 0) return cannot("find");
  const bool anybody_may_plant = (above.status.st_mode & S_IWOTH) != 0;
  if (S_ISLNK(found.status.st_mode)) {
    if (anybody_may_plant)
      return PermissionDenied("'{}' is a link in a folder that everybody may write to", path)
          .WithNote("somebody else may have made it: remove it, or name another folder");
    found.descriptor = Descriptor(openat(in, name.c_str(), kFindsFolders));
    if (!found.descriptor.ok() || fstat(found.descriptor.get(), &found.status) != 0) return cannot("find");
  }
  if (!S_ISDIR(found.status.st_mode)) return PermissionDenied("'{}' is not a folder", path);
  if (anybody_may_plant && found.status.st_uid != geteuid() && found.status.st_uid != 0)
    return PermissionDenied("the folder '{}' belongs to another user", path);
  if (is_new && (found.status.st_mode & ACCESSPERMS) != kForUser) {
    if (!CloseToOthers(found.descriptor.get())) return cannot("make");
    found.status.st_mode = S_IFDIR | kForUser;
  }
  return found;
}

std::optional<std::string> ReadSecret(int folder, const std::string& name) {
  const Descriptor file(openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.ok() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != geteuid() || (status.st_mode & kOpenToOthers) != 0 || status.st_nlink != 1)
    return std::nullopt;
  std::string secret(kSecretBytes + 1, '\0');
  const ssize_t got = read(file.get(), secret.data(), secret.size());
  if (got != static_cast<ssize_t>(kSecretBytes)) return std::nullopt;
  secret.resize(kSecretBytes);
  return secret;
}

}  // namespace

std::string UserStateFolder() {
  if (const std::string state = AbsoluteFromEnvironment("XDG_STATE_HOME"); !state.empty())
    return state + "/heddle";
  const char* const home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? fmt::format("/tmp/heddle-{}", geteuid())
                                          : std::string(home) + "/.local/state/heddle";
}

std::string UserCacheFolder() {
  if (const std::string cache = AbsoluteFromEnvironment("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/heddle";
  const std::string home = AbsoluteFromEnvironment("HOME");
  return home.empty() ? home : home + "/.cache/heddle";
}

std::vector<std::string> OwnPathsOfUser() {
  std::vector<std::string> paths = {UserStateFolder()};
  if (std::string cache = UserCacheFolder(); !cache.empty()) paths.push_back(std::move(cache));
  if (const std::string home = AbsoluteFromEnvironment("HOME"); !home.empty())
    paths.push_back(home + "/.heddle_history");
  return paths;
}

Result<Descriptor> OpenFolderForUser(const std::string& path, const FolderRules& rules) {
  size_t end = path.starts_with('/') ? 1 : 0;
  FoundFolder folder;
  folder.descriptor = Descriptor(open(end == 1 ? "/" : ".", kFindsFolders));
  if (!folder.descriptor.ok() || fstat(folder.descriptor.get(), &folder.status) != 0)
    return PermissionDenied("cannot find the folder '{}': {}", path, std::strerror(errno));
  while (end < path.size()) {
    const size_t begin = end;
    end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    const std::string so_far = path.substr(0, end);
    ++end;
    if (name.empty()) continue;
    HEDDLE_ASSIGN_OR_RETURN(folder, EnterFolder(folder, name, so_far, rules));
  }
  const int descriptor = folder.descriptor.get();
  if (folder.status.st_uid != geteuid())
    return PermissionDenied("the folder '{}' belongs to another user", path);
  const mode_t of_others = folder.status.st_mode & kOpenToOthers;
  if ((of_others & kWritableByOthers) != 0 || (of_others != 0 && !rules.is_closed))
    return PermissionDenied("the folder '{}' is open to others", path)
        .WithNote("close it: chmod 700 " + path);
  if (of_others != 0 && !CloseToOthers(descriptor))
    return PermissionDenied("cannot close the folder '{}' to others: {}", path, std::strerror(errno));
  Descriptor readable(openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable.ok()) return PermissionDenied("cannot open the folder '{}': {}", path, std::strerror(errno));
  return readable;
}

void MarkOwnFolder(const std::string& path) {
  const std::string mark = path + "/" + kOwnFolderMark;
  const Descriptor file(open(mark.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
}

std::optional<std::string> SecretOfUser(const std::string& state_folder, const std::string& name) {
  // Whoever may write into the folder could put a secret of his own there.
  const Result<Descriptor> opened = OpenFolderForUser(state_folder, {.is_closed = true});
  if (!opened.ok()) return std::nullopt;
  const Descriptor& folder = *opened;
  MarkOwnFolder(state_folder);
  if (std::optional<std::string> present = ReadSecret(folder.get(), name)) return present;
  std::array<char, kSecretBytes> random{};
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) return std::nullopt;
  // A name of this thread alone.
  const std::string next = fmt::format("{}-{}.new", name, gettid());
  (void)unlinkat(folder.get(), next.c_str(), 0);
  {
    const Descriptor file(openat(folder.get(), next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.ok() || !WriteAll(file.get(), {random.data(), random.size()})) {
      (void)unlinkat(folder.get(), next.c_str(), 0);
      return std::nullopt;
    }
  }
  // One that another process has put there meanwhile stays, unless it is no secret.
  if (renameat2(folder.get(), next.c_str(), folder.get(), name.c_str(), RENAME_NOREPLACE) != 0 &&
      (ReadSecret(folder.get(), name) ||
       renameat(folder.get(), next.c_str(), folder.get(), name.c_str()) != 0))
    (void)unlinkat(folder.get(), next.c_str(), 0);
  return ReadSecret(folder.get(), name);
}

}  // namespace heddle::ops
