// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "ops/base/operator.h"
#include "ops/transform/spec.h"

// What the transforms have in common: arguments that are frames, and the spec.
namespace heddle::ops {

/// kInvalidArgument unless input i can be a frame.
Status RequireFrame(const InferContext& context, int i, std::string_view name);

/// The spec, where it and the columns that it speaks of are known already; nullopt else.
Result<std::optional<TransformSpec>> InferSpec(const InferContext& context, int i,
                                               const std::shared_ptr<const Schema>& schema);
/// The spec of a running kernel: its errors are kFailedPrecondition.
Result<TransformSpec> GivenSpec(const KernelCall& call, int i, const Schema& schema);

}  // namespace heddle::ops
