// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "python/module/object.h"

namespace heddle::python {

/// The types `Engine`, which runs scripts, and `Session`, which runs statement by statement.
bool AddEngineTypes(PyObject* module);

}  // namespace heddle::python
