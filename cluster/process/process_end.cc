// SPDX-License-Identifier: Apache-2.0
#include "cluster/process/process_end.h"

#include <signal.h>

namespace heddle::cluster {

bool IsSignalOfBug(int signal) {
  return signal == SIGABRT || signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE;
}

bool IsSignalOfStop(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

}  // namespace heddle::cluster
