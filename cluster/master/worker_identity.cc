// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/worker_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "cluster/master/message_limits.h"
#include "cluster/security/token.h"
#include "ops/device/device.h"
#include "ops/io/files/own_folders.h"

namespace heddle::cluster {
namespace {

constexpr size_t kLongestName = 64;
constexpr size_t kLongestConfinement = 300;
constexpr size_t kLongestHost = 253;
constexpr size_t kLongestIsolation = 500;
constexpr size_t kLongestDevice = 32;
constexpr size_t kLongestDeviceName = 200;
constexpr size_t kLongestHostInName = 56;  // leaves room for the number
constexpr size_t kLongestSecret = 256;
constexpr size_t kShortestSecret = 32;
constexpr int kMostWorkersOfAHost = 64;

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}
bool IsShown(char c) { return c > ' ' && c <= '~'; }
bool IsPrintable(char c) { return c == ' ' || IsShown(c); }

bool HoldsOnly(const std::string& text, bool (*allowed)(char), size_t shortest, size_t longest) {
  return text.size() >= shortest && text.size() <= longest && std::all_of(text.begin(), text.end(), allowed);
}

// A copy of the folder is elsewhere: on another machine or in another inode.
std::string PlaceOf(const std::string& folder) {
  struct stat status = {};
  if (stat(folder.c_str(), &status) != 0) return "";
  const Result<std::string> boot = ReadFirstLine("/proc/sys/kernel/random/boot_id");
  return ShortHash("place",
                   fmt::format("{} {} {}", boot.ok() ? *boot : HostName(), status.st_dev, status.st_ino));
}

Result<bool> TryIdentity(const std::string& state_folder, const std::string& name, WorkerIdentity* identity) {
  const std::string folder = state_folder + "/workers/" + name;
  HEDDLE_RETURN_IF_ERROR(MakePrivateFolder(folder));
  ops::MarkOwnFolder(state_folder);
  HEDDLE_ASSIGN_OR_RETURN(identity->lock, FolderLock::TryTake(folder + "/lock"));
  if (identity->lock == nullptr) return false;
  HEDDLE_ASSIGN_OR_RETURN(identity->secret, ReadOrMakeSecret(folder + "/identity", &identity->is_new));
  identity->name = name;
  identity->folder = folder;
  identity->place = PlaceOf(folder);
  return true;
}

std::string HostInName() {
  std::string host = HostName().substr(0, kLongestHostInName);
  std::replace_if(
      host.begin(), host.end(), [](char c) { return !IsNameCharacter(c); }, '-');
  if (host[0] == '.') host[0] = '-';
  return host;
}

}  // namespace

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "host";
  std::string host = std::string(name).substr(0, kLongestHost);
  std::replace_if(
      host.begin(), host.end(), [](char c) { return !IsShown(c); }, '?');
  return host;
}

Result<WorkerIdentity> TakeIdentity(const std::string& state_folder, const std::string& name) {
  WorkerIdentity identity;
  if (!name.empty()) {
    if (!IsWorkerName(name))
      return Usage(
          "--name '{}': a name has up to {} letters, digits, '-', '_' and '.', and does not begin with '.'",
          name, kLongestName);
    HEDDLE_ASSIGN_OR_RETURN(const bool taken, TryIdentity(state_folder, name, &identity));
    if (!taken) return Usage("a worker called '{}' is running already", name);
    return identity;
  }
  for (int number = 1; number <= kMostWorkersOfAHost; ++number) {
    HEDDLE_ASSIGN_OR_RETURN(const bool taken,
                            TryIdentity(state_folder, fmt::format("{}-{}", HostInName(), number), &identity));
    if (taken) return identity;
  }
  return Usage("{} workers run on this machine already", kMostWorkersOfAHost);
}

Status CheckDescription(const WorkerDescription& description) {
  if (!IsWorkerName(description.name))
    return Usage(
        "the name of this worker is none: a name has up to {} letters, digits, '-', '_' and '.', and does not "
        "begin with '.'",
        kLongestName);
  if (!HoldsOnly(description.host, IsShown, 1, kLongestHost))
    return Usage("worker {}: the name of its machine has up to {} plain characters", description.name,
                 kLongestHost);
  if (!HoldsOnly(description.secret, IsShown, kShortestSecret, kLongestSecret))
    return Usage("worker {}: the secret of its identity has {} to {} plain characters", description.name,
                 kShortestSecret, kLongestSecret);
  if (!HoldsOnly(description.instance, IsNameCharacter, 1, kLongestName) ||
      !HoldsOnly(description.place, IsNameCharacter, 0, kLongestName) ||
      !HoldsOnly(description.version, IsShown, 0, kLongestName) ||
      !HoldsOnly(description.confinement, IsPrintable, 0, kLongestConfinement) ||
      !HoldsOnly(description.isolation, IsPrintable, 0, kLongestIsolation) ||
      !HoldsOnly(description.device, IsShown, 0, kLongestDevice) ||
      (!description.device.empty() && !ops::ParseDevice(description.device)) ||
      description.device_name.size() > kLongestDeviceName)
    return Usage("worker {}: what it says of itself is malformed", description.name);
  if (description.threads < 1 || description.threads > kMostThreads || description.memory_bytes < 0 ||
      description.pid < 0 || description.pid > std::numeric_limits<int32_t>::max())
    return Usage("worker {}: {} threads, {} bytes of memory, pid {}: out of range", description.name,
                 description.threads, description.memory_bytes, description.pid);
  if (description.slots < 1 || description.slots > description.threads)
    return Usage("worker {}: {} slots of {} threads: out of range", description.name, description.slots,
                 description.threads);
  return OkStatus();
}

}  // namespace heddle::cluster
