// SPDX-License-Identifier: Apache-2.0
#include "python/module/interruptible.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

#include "core/memory/counted_heap.h"
#include "python/module/errors.h"

namespace heddle::python {
namespace {

constexpr auto kSignalInterval = std::chrono::milliseconds(50);
// A run looks for cancellation many times a second. What takes longer is left to itself.
constexpr auto kMostWaitForRuns = std::chrono::seconds(5);

// Which runs go on, and whether the interpreter is about to end.
class Runs {
 public:
  bool Begin(Callbacks* callbacks) {
    std::lock_guard lock(mutex_);
    if (!MayEnter(callbacks->caller())) return false;
    active_.insert(callbacks);
    return true;
  }

  void End(Callbacks* callbacks) {
    std::lock_guard lock(mutex_);
    active_.erase(callbacks);
    changed_.notify_all();
  }

  // Whether threads of this caller's run may still call Python.
  bool MayCall(std::thread::id caller) {
    std::lock_guard lock(mutex_);
    return MayEnter(caller) || !was_given_up_;
  }

  // Stops the runs of other threads, and waits for them.
  void EndOthers() {
    std::unique_lock lock(mutex_);
    ending_ = std::this_thread::get_id();
    for (Callbacks* callbacks : active_)
      if (!MayEnter(callbacks->caller())) callbacks->cancellation()->Request(Cancelled("Python ends"));
    was_given_up_ = !changed_.wait_for(lock, kMostWaitForRuns, [this] {
      return std::none_of(active_.begin(), active_.end(),
                          [this](Callbacks* callbacks) { return !MayEnter(callbacks->caller()); });
    });
  }

 private:
  bool MayEnter(std::thread::id caller) const { return !ending_ || *ending_ == caller; }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<Callbacks*> active_;
  std::optional<std::thread::id> ending_;  // the thread that ends the interpreter
  bool was_given_up_ = false;              // some runs did not end in time
};

// Threads of a run beside those of its kernels, and what is mapped for all of them beside their stacks.
constexpr size_t kFurtherThreads = 4;
constexpr size_t kBytesBesideStacks = size_t{32} << 20;

// Where ulimit bounds the address space, whether it has room for the threads of a run. The C library ends a
// process in which a thread that has begun finds no memory for its thread-local data.
Status CheckRoomForThreads(int threads) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return OkStatus();
  size_t stack_bytes = size_t{8} << 20;
  if (pthread_attr_t attributes; pthread_getattr_default_np(&attributes) == 0) {
    pthread_attr_getstacksize(&attributes, &stack_bytes);
    pthread_attr_destroy(&attributes);
  }
  const size_t bytes = (static_cast<size_t>(threads) + kFurtherThreads) * stack_bytes + kBytesBesideStacks;
  void* const room = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return ResourceExhausted(
               "out of memory: a run with threads={} takes {} bytes of address space beside its "
               "values, and there are fewer",
               threads, bytes)
        .WithNote("allow more with ulimit -v, or use fewer threads");
  munmap(room, bytes);
  return OkStatus();
}

Status NoThread() { return ResourceExhausted("the system gives no thread for the run"); }

// Never destroyed: threads of the engine may outlive the interpreter.
Runs& TheRuns() {
  static Runs* const runs = new Runs;
  return *runs;
}

}  // namespace

void EndRuns() {
  Py_BEGIN_ALLOW_THREADS;
  TheRuns().EndOthers();
  Py_END_ALLOW_THREADS;
}

void Callbacks::Call(PyObject* function, std::string_view text) {
  if (!TheRuns().MayCall(caller_)) return;
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

bool RunInterruptibly(int threads, Callbacks* callbacks, const std::function<Status()>& body) {
  if (const Status room = CheckRoomForThreads(threads); !room.ok()) {
    Raise(room);
    return false;
  }
  if (!TheRuns().Begin(callbacks)) {
    Raise(Cancelled("Python ends"));
    return false;
  }
  std::mutex mutex;
  std::condition_variable ended;
  bool has_begun = true, has_ended = false;
  Status status;
  Py_BEGIN_ALLOW_THREADS;
  std::thread thread;
  try {
    thread = std::thread([&] {
      status = WithinMemory("the run", [&]() -> Status {
        try {
          return body();
        } catch (const std::system_error& error) {
          if (error.code() != std::errc::resource_unavailable_try_again) throw;
          return NoThread();
        }
      });
      std::lock_guard lock(mutex);
      has_ended = true;
      ended.notify_one();
    });
  } catch (const std::exception&) {  // a limit of threads or of memory
    has_begun = false;
  }
  for (std::unique_lock lock(mutex); has_begun && !has_ended;) {
    if (ended.wait_for(lock, kSignalInterval, [&] { return has_ended; })) break;
    lock.unlock();
    if (TheRuns().MayCall(callbacks->caller())) {
      const InterpreterLock interpreter;
      callbacks->CheckSignals();
    }
    lock.lock();
  }
  if (has_begun) thread.join();
  // Nobody waits for this thread any more, and Python is gone: it sleeps until the process ends.
  while (!TheRuns().MayCall(callbacks->caller())) std::this_thread::sleep_for(std::chrono::hours(1));
  Py_END_ALLOW_THREADS;
  TheRuns().End(callbacks);
  if (!has_begun) status = NoThread();
  if (callbacks->Raise()) return false;
  if (!status.ok()) Raise(status);
  return status.ok();
}

}  // namespace heddle::python
