// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "core/status.h"
#include "ops/io/files/descriptor.h"

// Processes in which this program runs one of its own verbs (`heddle executor`, `heddle compiler`), with a
// socket to whoever started them.
namespace heddle::cluster {

/// The same file as a descriptor that lies above those which a child begins with, closed on exec; not ok(),
/// with errno, where there is none left.
ops::Descriptor AboveThoseOfChild(ops::Descriptor descriptor);

/// A socket between this process and a child. Both ends wait for what they read and write, and are closed on
/// exec.
struct ControlSockets {
  ops::Descriptor own;
  ops::Descriptor child;  ///< AboveThoseOfChild.
};
/// kUnavailable: "cannot make a socket for CHILD: ...".
Result<ControlSockets> MakeControlSockets(std::string_view child);

/// A process to start.
struct VerbProcess {
  std::string_view child;  ///< In messages: "an executor".
  std::string_view verb;   ///< It runs `BINARY VERB --control-fd 3`.
  std::string binary;      ///< "": this program (/proc/self/exe).
  int control = -1;        ///< Its end of the socket; AboveThoseOfChild, as `log`.
  int log = -1;            ///< For its standard output and error. -1: both are this process's standard error.
  bool closes_all = false;  ///< No other descriptor stays open in it, whatever a library has left so.
};
/// Starts it: without standard input, with no signal blocked or ignored. Returns its number. kUnavailable:
/// "cannot start CHILD (BINARY): ...".
Result<pid_t> StartVerb(const VerbProcess& process);

}  // namespace heddle::cluster
