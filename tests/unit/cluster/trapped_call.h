// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace heddle::cluster {

// From now on a filter decides on the system call `number` of this thread, and of those that it starts. There
// is no way back: in a process of its own.
inline void FilterCall(int number, uint32_t action) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {.len = std::size(filter), .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(3);
}

// The call fails.
inline void RefuseCall(int number, int error) {
  FilterCall(number, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
}

// `answer` is called in its place, on the thread that makes it and with its arguments. It returns the result,
// or a negative number of an error.
using CallAnswer = int64_t (*)(const std::array<int64_t, 3>& arguments);
inline CallAnswer trapped_call_answer = nullptr;
inline void TrapCall(int number, CallAnswer answer) {
  trapped_call_answer = answer;
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const int error = errno;
    registers[REG_RAX] = trapped_call_answer({registers[REG_RDI], registers[REG_RSI], registers[REG_RDX]});
    errno = error;
  };
  sigaction(SIGSYS, &action, nullptr);
  FilterCall(number, SECCOMP_RET_TRAP);
}

}  // namespace heddle::cluster
