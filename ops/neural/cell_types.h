// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "ops/base/operator.h"
#include "ops/product/matmul_gemm.h"

// Operators that are written once for matrices of doubles and of floats (docs/numerics.md, section 9).
namespace heddle::ops {

template <typename Cell>
constexpr ElementType kElementTypeOf =
    std::is_same_v<Cell, float> ? ElementType::kFloat32 : ElementType::kFloat64;

/// True if all of these inputs of a call hold floats. (In a program of single precision all matrices do;
/// others come from tests and from operators that have no floats.)
inline bool HoldSingles(const KernelCall& call, std::initializer_list<int> inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [&](int i) {
    return call.inputs[static_cast<size_t>(i)]->matrix().element_type() == ElementType::kFloat32;
  });
}

/// The cells of an input, a dense matrix of that type.
template <typename Cell>
const Cell* CellsOf(const KernelCall& call, int i) {
  return call.inputs[static_cast<size_t>(i)]->matrix().data<Cell>();
}

}  // namespace heddle::ops
