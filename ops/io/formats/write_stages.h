// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "ops/base/kernel.h"
#include "ops/base/stages.h"
#include "ops/io/formats/file_format.h"

// write() of a matrix or frame that is split: what its ranks do one after the other.
namespace heddle::ops {

/// The options of a call. A format that only the run tells is its third input, nullptr where the script says
/// it.
Result<WriteOptions> WriteOptionsOf(const Node& node, const Scalar* format);
/// The same while it runs.
Result<WriteOptions> WriteOptionsOf(const Node& node, std::span<const Value* const> inputs,
                                    const KernelContext& context);

extern const StagedForm kStagedWrite;
/// The end of it, on rank 0.
Status FinishStagedWrite(const KernelCall& call, const std::string& path, const WriteOptions& options);

/// write() of panels (core/values/row_panels.h), in memory for a few pieces.
Status WritePanels(const KernelCall& call, const std::string& path, const WriteOptions& options);

}  // namespace heddle::ops
