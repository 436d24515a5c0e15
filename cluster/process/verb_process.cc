// SPDX-License-Identifier: Apache-2.0
#include "cluster/process/verb_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace heddle::cluster {
namespace {

constexpr int kControlFd = 3;
constexpr int kFirstFreeFd = 10;  // above all descriptors that the child uses

// posix_spawn's argument objects, given back whatever happens.
class SpawnSetup {
 public:
  explicit SpawnSetup(const VerbProcess& process) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    if (process.log >= 0) posix_spawn_file_actions_adddup2(&actions_, process.log, 2);
    posix_spawn_file_actions_adddup2(&actions_, 2, 1);  // standard output belongs to the starting process
    posix_spawn_file_actions_adddup2(&actions_, process.control, kControlFd);
    if (process.closes_all) posix_spawn_file_actions_addclosefrom_np(&actions_, kControlFd + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    sigset_t defaults;
    sigemptyset(&defaults);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) sigaddset(&defaults, number);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

ops::Descriptor AboveThoseOfChild(ops::Descriptor descriptor) {
  return ops::Descriptor(fcntl(descriptor.get(), F_DUPFD_CLOEXEC, kFirstFreeFd));
}

Result<ControlSockets> MakeControlSockets(std::string_view child) {
  int pair[2] = {-1, -1};
  ControlSockets sockets;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
    sockets.own = ops::Descriptor(pair[0]);
    sockets.child = AboveThoseOfChild(ops::Descriptor(pair[1]));
  }
  if (!sockets.child.ok()) return Unavailable("cannot make a socket for {}: {}", child, strerror(errno));
  return sockets;
}

Result<pid_t> StartVerb(const VerbProcess& process) {
  const std::string binary = process.binary.empty() ? "/proc/self/exe" : process.binary;
  std::string words[] = {"heddle", std::string(process.verb), "--control-fd", fmt::format("{}", kControlFd)};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  const SpawnSetup setup(process);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, binary.c_str(), setup.actions(), setup.attributes(), arguments, environ);
  if (error != 0) return Unavailable("cannot start {} ({}): {}", process.child, binary, strerror(error));
  return pid;
}

}  // namespace heddle::cluster
