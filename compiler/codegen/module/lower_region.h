// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llvm/IR/Module.h>

#include <memory>

#include "ops/region/region.h"

namespace heddle::codegen {

inline constexpr char kEntryPoint[] = "heddle_region";

/// The IR of a verified region: one function `void heddle_region(const RegionCall*)`.
///
/// Rows are the outer loop, columns the inner one, eight at a time; the loop over whole eights is unrolled
/// where the body is light, ragged ends are masked. What does not depend on the column or the row is computed
/// before the loop. A region of nothing but cells whose rows lie without gaps runs as one row.
///
/// `register_lanes` (4 or 8) is the width of a vector register in doubles; it has no influence on the
/// results.
std::unique_ptr<llvm::Module> LowerRegion(const ops::Region& region, int register_lanes,
                                          llvm::LLVMContext& context);

}  // namespace heddle::codegen
