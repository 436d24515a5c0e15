// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

#include "ops/base/operator.h"

// The one place where compressed matrices meet operators (docs/compression.md).
namespace heddle::ops {

/// True if a matrix among the inputs of the call is compressed.
bool HasCompressed(const KernelCall& call);

/// Computes a call as KernelSource::Run does; what is compressed among its inputs it decodes whole.
using RunDecoded = std::function<Status(const KernelCall& call, std::span<Value> results)>;

/// Computes a call some of whose inputs are compressed: from codes and dictionaries where the operator does
/// (Operator::run_compressed); else `run` gets their rows, a tile at a time where the row rule lets rows be
/// cut, or all at once. The results are those of `run` on decoded inputs, to the bit.
/// Errors: those of `run`, of the first tile that has one; kResourceExhausted; Cancelled().
Status RunCompressed(const Operator& op, const KernelCall& call, std::span<Value> results,
                     const RunDecoded& run);

}  // namespace heddle::ops
