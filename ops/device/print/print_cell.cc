// SPDX-License-Identifier: Apache-2.0
#define HEDDLE_SIMD_VECTOR_HEADER "ops/device/print/printed_vector.h"
#include "ops/device/print/print_cell.h"

#include "ops/region/region_cell.h"

namespace heddle::ops::printed {

std::string PrintNode(const RegionNode& node, const std::string& a, const std::string& b,
                      const std::string& c) {
  Vector value = Broadcast(node.literal);
  if (node.op != RegionOp::kLiteral) value = CellOf(node, {a}, {b}, {c});
  return (node.drops_negative_zero ? value + Zero() : value).name;
}

std::string StartOf(simd::Fold fold) {
  const Printer printer("", "");
  return StartOfFold(fold).name;
}

std::string PrintFold(simd::Fold fold, const std::string& accumulator, const std::string& x) {
  return FoldOf(fold, {accumulator}, {x}).name;
}

}  // namespace heddle::ops::printed
