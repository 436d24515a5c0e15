// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/programs/plan.h"
#include "core/values/value.h"
#include "ops/base/kernel.h"

namespace heddle::actor {

/// A handle to the rows of a task of the plan that makes rows of nothing: its kernel makes them whenever they
/// are read, which may be after the run. `inputs` are copied, nullptr for one left out; `kernels`, and what
/// `context` points to, outlive the handle. Fails as ops::OriginOf does; reading rows fails as the kernel
/// does, and with kDataLoss when what they come from has changed since.
Result<Value> MakeLazyRows(const std::shared_ptr<const Plan>& plan, const Task& task, const ops::Operator* op,
                           const std::vector<ValueInfo>& input_infos, std::span<const Value* const> inputs,
                           const ops::KernelSource& kernels, const ops::KernelContext& context);

}  // namespace heddle::actor
