// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/region/region.h"

// Cells of regions in OpenCL C: names of doubles in, the name of a double out. The statements between go to
// the printer that lives on this thread (print/printer.h).
namespace heddle::ops::printed {

/// The operator of a kUnary, kBinary or kSelect node, with the zero rules of the node; of a kLiteral its
/// number.
std::string PrintNode(const RegionNode& node, const std::string& a, const std::string& b,
                      const std::string& c);
/// A number to start a fold with, and the fold of one more cell into it, or of eight cells into eight.
std::string StartOf(simd::Fold fold);
std::string PrintFold(simd::Fold fold, const std::string& accumulator, const std::string& x);

}  // namespace heddle::ops::printed
