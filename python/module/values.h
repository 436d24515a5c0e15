// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/engine.h"
#include "python/module/object.h"

namespace heddle::python {

/// The type `Value`: what a script has made, in the engine's memory.
bool AddValueType(PyObject* module);

/// What Python calls a value: bool, int, float, str, or a `Value`. Empty with an error set.
Owned ToPython(engine::HostValue value);

/// What an input is, as python/heddle/_convert.py describes it:
///   bool, int, float, str                                                        a scalar
///   Value                                                                        what it holds
///   ("dense", address, rows, columns, "f8"|"f4", owner)                          cells row by row
///   ("csr", values, column indexes, row offsets, rows, columns, "f8"|"f4", owner)
///   ("frame", names, [(type, rows, cells, texts, missing, owner), ...])          addresses, 0 for none
///   ("texts", [str or None, ...])                                                a column inside of "frame"
///   ("arrow", capsule)                                                           a frame by a stream of
///   Arrow
///   ("list", names or None, [input, ...])
/// Memory at the addresses stays as long as `owner`, which the engine holds until it no longer reads there.
/// False with an error set: ValueError for what no matrix or frame is.
bool FromPython(PyObject* object, engine::HostValue* value);

}  // namespace heddle::python
