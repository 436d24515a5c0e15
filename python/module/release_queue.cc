// SPDX-License-Identifier: Apache-2.0
#include "python/module/release_queue.h"

#include <list>
#include <memory>
#include <mutex>

namespace heddle::python {
namespace {

struct Queue {
  std::mutex mutex;
  std::list<PyObject*> objects;
};

// Never destroyed: threads of the engine may outlive the interpreter.
Queue& TheQueue() {
  static Queue* const queue = new Queue;
  return *queue;
}

int ReleasePending(void*) {
  ReleaseNow();
  return 0;
}

}  // namespace

std::function<void()> ReleaseLater(PyObject* object) {
  // Its place in the queue is made now: destructors call the function, which must not need memory.
  const auto place = std::make_shared<std::list<PyObject*>>(1, object);
  std::function<void()> release = [place] {
    {
      std::lock_guard lock(TheQueue().mutex);
      TheQueue().objects.splice(TheQueue().objects.end(), *place);
    }
    // The interpreter calls it between two of its instructions. Its list of such calls may be full: whoever
    // enters the module next gives back as well.
    Py_AddPendingCall(ReleasePending, nullptr);
  };
  Py_INCREF(object);
  return release;
}

void ReleaseNow() {
  std::list<PyObject*> objects;
  {
    std::lock_guard lock(TheQueue().mutex);
    objects.swap(TheQueue().objects);
  }
  for (PyObject* object : objects) Py_DECREF(object);  // may run code of Python, so without the mutex
}

}  // namespace heddle::python
