// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/environment/descriptor.h"
#include "core/status.h"

// Programs that run as children of this process, with a socket to whoever started them. They are spawned and
// not forked: threads of this process may hold any lock at that moment.
namespace heddle {

/// The descriptors that a child begins with, beside the three standard ones.
inline constexpr int kChildControl = 3;
inline constexpr int kChildFile = 4;

/// The same file as a descriptor that lies above those which a child begins with, closed on exec; not ok(),
/// with errno, where there is none left.
Descriptor AboveThoseOfChild(Descriptor descriptor);

/// A socket between this process and a child. Both ends wait for what they read and write, and are closed on
/// exec.
struct ControlSockets {
  Descriptor own;
  Descriptor child;  ///< AboveThoseOfChild.
};
/// kUnavailable: "cannot make a socket for CHILD: ...".
Result<ControlSockets> MakeControlSockets(std::string_view child);

/// A process to start. Its descriptors are those of AboveThoseOfChild.
struct ChildProcess {
  std::string_view child;              ///< In messages: "an executor".
  std::string program;                 ///< The path of its program.
  std::vector<std::string> arguments;  ///< The first one is the name of the program.
  int control = -1;                    ///< Its end of the socket, its kChildControl.
  int file = -1;                       ///< Its kChildFile; -1: none.
  int log = -1;                        ///< Its standard output and error. -1: this process's standard error.
  bool closes_all = false;       ///< No other descriptor stays open in it, whatever a library has left so.
  bool hears_interrupts = true;  ///< False: Ctrl-C at the terminal does not reach it.
};
/// Starts it: without standard input, with no signal ignored, and none blocked but SIGINT where it does not
/// hear that. Returns its number. kUnavailable: "cannot start CHILD (PROGRAM): ...".
Result<pid_t> StartChild(const ChildProcess& process);

}  // namespace heddle
