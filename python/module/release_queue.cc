// SPDX-License-Identifier: Apache-2.0
#include "python/module/release_queue.h"

#include <mutex>
#include <vector>

namespace heddle::python {
namespace {

struct Queue {
  std::mutex mutex;
  std::vector<PyObject*> objects;
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
  Py_INCREF(object);
  return [object] {
    {
      std::lock_guard lock(TheQueue().mutex);
      TheQueue().objects.push_back(object);
    }
    // The interpreter calls it between two of its instructions. Its list of such calls may be full: whoever
    // enters the module next gives back as well.
    Py_AddPendingCall(ReleasePending, nullptr);
  };
}

void ReleaseNow() {
  std::vector<PyObject*> objects;
  {
    std::lock_guard lock(TheQueue().mutex);
    objects.swap(TheQueue().objects);
  }
  for (PyObject* object : objects) Py_DECREF(object);  // may run code of Python, so without the mutex
}

}  // namespace heddle::python
