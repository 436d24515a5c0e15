// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

#include "engine/session/cancellation.h"
#include "python/module/object.h"

namespace heddle::python {

/// Functions of Python that a run calls while it goes on. They are called with the interpreter's lock, one at
/// a time. The first exception of one asks the run to stop and is what the caller of the run gets.
class Callbacks {
 public:
  /// `print` and `warn` take a text; None: nobody listens.
  Callbacks(PyObject* print, PyObject* warn) : print_(Share(print)), warn_(Share(warn)) {}

  void Print(std::string_view text) { Call(print_.get(), text); }
  void Warn(std::string_view text) { Call(warn_.get(), text); }

  /// The thread that runs the script, and waits for its end.
  std::thread::id caller() const { return caller_; }
  engine::Cancellation* cancellation() { return &cancellation_; }
  /// Sets the exception of a callback, or that of a signal, in Python. False if there is none.
  bool Raise();
  /// Runs what Python does at signals, and asks the run to stop where that raises. With the interpreter's
  /// lock.
  void CheckSignals();

 private:
  void Call(PyObject* function, std::string_view text);
  void Keep();  // the exception that is set, if it is the first

  Owned print_, warn_;
  const std::thread::id caller_ = std::this_thread::get_id();
  engine::Cancellation cancellation_;
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;  // the first exception
};

/// Runs `body` on a thread of its own, without the interpreter's lock, and waits for its end. Signals are
/// looked for every 50 ms, so that Ctrl-C ends a run. False, with the exception set in Python, where `body`
/// failed or ran out of memory, or where a signal or a callback raised one, which comes first; what `body`
/// did then is to be thrown away. `threads`: of the run's kernels.
bool RunInterruptibly(int threads, Callbacks* callbacks, const std::function<Status()>& body);

/// To be called by the thread that is about to end the interpreter, with the interpreter's lock: stops the
/// runs of other threads (daemons), waits until these are back in Python, where the interpreter can end them,
/// and lets none begin. A thread that asks for the lock of an interpreter that ends would be unwound through
/// our frames.
void EndRuns();

}  // namespace heddle::python
