// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "python/module/object.h"

namespace heddle::python {

/// A function that gives the object back some time after it was called, on any thread. Threads of the engine
/// call it, which must not wait for the interpreter's lock: whoever holds that lock may wait for them. The
/// caller holds the lock now.
std::function<void()> ReleaseLater(PyObject* object);

/// Gives back what waits for it. The caller holds the interpreter's lock.
void ReleaseNow();

}  // namespace heddle::python
