// SPDX-License-Identifier: Apache-2.0
#include "bench/links/peer_process.h"

#include <sched.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

extern char** environ;

namespace heddle::bench {

void Stop(const std::string& why) {
  std::fprintf(stderr, "heddle-bench transport: %s\n", why.c_str());
  std::exit(1);
}

void Pin(int rank) {
  const unsigned processors = std::thread::hardware_concurrency();
  if (processors < 2) return;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  CPU_SET(static_cast<unsigned>(rank) % processors, &allowed);
  sched_setaffinity(0, sizeof(allowed), &allowed);
}

PeerProcess::PeerProcess(std::string word) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) Stop("no socket");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pair[1], STDIN_FILENO);
  std::string program = "heddle-bench";
  char* arguments[] = {program.data(), word.data(), nullptr};
  if (posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, arguments, environ) != 0)
    Stop("no second process");
  posix_spawn_file_actions_destroy(&actions);
  close(pair[1]);
  channel_ = std::make_unique<cluster::LineChannel>(pair[0]);
}

PeerProcess::~PeerProcess() {
  if (channel_ == nullptr) return;  // Moved away.
  channel_->WriteLine("end");
  int status = 0;
  waitpid(pid_, &status, 0);
}

void PeerProcess::Tell(const std::string& line) {
  if (!channel_->WriteLine(line)) Stop("another process has gone");
}

std::string PeerProcess::Answer() {
  std::string answer;
  if (channel_->ReadLine(&answer) != cluster::LineChannel::Outcome::kLine) Stop("another process has gone");
  return answer;
}

}  // namespace heddle::bench
