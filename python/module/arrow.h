// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/status.h"
#include "core/values/frame.h"
#include "python/module/object.h"

// Arrow's C stream interface (https://arrow.apache.org/docs/format/CStreamInterface.html), by which libraries
// of tables hand over columns without knowing each other.
namespace heddle::python {

/// The frame that a capsule "arrow_array_stream" gives, which is then used up. Doubles, integers of 64 bits
/// and texts with long offsets of a stream of one batch are not copied unless some are missing.
/// kInvalidArgument for a column of a type that no frame has, with its name.
Result<Frame> FrameFromArrow(PyObject* capsule);

/// A capsule "arrow_array_stream" of one batch, whose numbers and texts are the frame's own. Empty with an
/// error set.
Owned FrameToArrow(const Frame& frame);

}  // namespace heddle::python
