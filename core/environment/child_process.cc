// SPDX-License-Identifier: Apache-2.0
#include "core/environment/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

namespace heddle {
namespace {

constexpr int kFirstFreeFd = 10;  // above all descriptors that a child begins with

// posix_spawn's argument objects, given back whatever happens.
class SpawnSetup {
 public:
  explicit SpawnSetup(const ChildProcess& process) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    if (process.log >= 0) posix_spawn_file_actions_adddup2(&actions_, process.log, 2);
    posix_spawn_file_actions_adddup2(&actions_, 2, 1);  // standard output belongs to the starting process
    posix_spawn_file_actions_adddup2(&actions_, process.control, kChildControl);
    if (process.file >= 0) posix_spawn_file_actions_adddup2(&actions_, process.file, kChildFile);
    const int first_closed = process.file >= 0 ? kChildFile + 1 : kChildControl + 1;
    if (process.closes_all) posix_spawn_file_actions_addclosefrom_np(&actions_, first_closed);
    posix_spawnattr_init(&attributes_);
    sigset_t blocked;
    sigemptyset(&blocked);
    if (!process.hears_interrupts) sigaddset(&blocked, SIGINT);
    sigset_t defaults;
    sigemptyset(&defaults);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD, SIGXCPU})
      sigaddset(&defaults, number);
    posix_spawnattr_setsigmask(&attributes_, &blocked);
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

Descriptor AboveThoseOfChild(Descriptor descriptor) {
  return Descriptor(fcntl(descriptor.get(), F_DUPFD_CLOEXEC, kFirstFreeFd));
}

Result<ControlSockets> MakeControlSockets(std::string_view child) {
  int pair[2] = {-1, -1};
  ControlSockets sockets;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
    sockets.own = Descriptor(pair[0]);
    sockets.child = AboveThoseOfChild(Descriptor(pair[1]));
  }
  if (!sockets.child.ok()) return Unavailable("cannot make a socket for {}: {}", child, strerror(errno));
  return sockets;
}

Result<pid_t> StartChild(const ChildProcess& process) {
  std::vector<std::string> words = process.arguments;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const SpawnSetup setup(process);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, process.program.c_str(), setup.actions(), setup.attributes(),
                                arguments.data(), environ);
  if (error != 0)
    return Unavailable("cannot start {} ({}): {}", process.child, process.program, strerror(error));
  return pid;
}

}  // namespace heddle
