// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "python/module/object.h"

namespace heddle::python {

/// The type `Boundary`: wraps a function of the package that users call. An exception that leaves it has lost
/// the frames inside of the package, so that a traceback ends in the line of the user.
bool AddBoundaryType(PyObject* module);

}  // namespace heddle::python
