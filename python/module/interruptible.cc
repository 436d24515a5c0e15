// SPDX-License-Identifier: Apache-2.0
#include "python/module/interruptible.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace heddle::python {
namespace {

constexpr auto kSignalInterval = std::chrono::milliseconds(50);

}  // namespace

void Callbacks::Call(PyObject* function, std::string_view text) {
  const InterpreterLock lock;
  if (function == Py_None || type_ != nullptr) return;
  const Owned argument = ToText(text);
  const Owned result(argument == nullptr ? nullptr
                                         : PyObject_CallFunctionObjArgs(function, argument.get(), nullptr));
  if (result == nullptr) Keep();
}

void Callbacks::Keep() {
  if (type_ != nullptr) {
    PyErr_Clear();
    return;
  }
  PyErr_Fetch(&type_, &value_, &traceback_);
  cancellation_.Request(Cancelled("stopped by an exception of Python"));
}

void Callbacks::CheckSignals() {
  if (PyErr_CheckSignals() < 0) Keep();
}

bool Callbacks::Raise() {
  if (type_ == nullptr) return false;
  PyErr_Restore(type_, value_, traceback_);
  type_ = value_ = traceback_ = nullptr;
  return true;
}

bool RunInterruptibly(Callbacks* callbacks, const std::function<void()>& body) {
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;
  Py_BEGIN_ALLOW_THREADS;
  std::thread thread([&] {
    body();
    std::lock_guard lock(mutex);
    has_ended = true;
    ended.notify_one();
  });
  for (std::unique_lock lock(mutex); !has_ended;) {
    if (ended.wait_for(lock, kSignalInterval, [&] { return has_ended; })) break;
    lock.unlock();
    {
      const InterpreterLock interpreter;
      callbacks->CheckSignals();
    }
    lock.lock();
  }
  thread.join();
  Py_END_ALLOW_THREADS;
  return !callbacks->Raise();
}

}  // namespace heddle::python
