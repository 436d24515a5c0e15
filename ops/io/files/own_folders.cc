// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/own_folders.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "core/environment/descriptor.h"

namespace heddle::ops {
namespace {

constexpr mode_t kForUser = 0700;
constexpr mode_t kOpenToOthers = 077;
constexpr size_t kSecretBytes = 32;

std::string AbsoluteFromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

bool WriteAll(int fd, const std::string& bytes) {
  return write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
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

bool MakeFolderForUser(const std::string& path) {
  struct stat status {};
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (stat(folder.c_str(), &status) != 0 && mkdir(folder.c_str(), kForUser) != 0 && errno != EEXIST)
      return false;
    if (slash == std::string::npos) return true;
  }
}

void MarkOwnFolder(const std::string& path) {
  const std::string mark = path + "/" + kOwnFolderMark;
  const Descriptor file(open(mark.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
}

std::optional<std::string> SecretOfUser(const std::string& state_folder, const std::string& name) {
  if (!MakeFolderForUser(state_folder)) return std::nullopt;
  MarkOwnFolder(state_folder);
  const Descriptor folder(open(state_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  // Whoever may write into the folder could put a secret of his own there.
  if (!folder.ok() || fstat(folder.get(), &status) != 0 || status.st_uid != geteuid() ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return std::nullopt;
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
