// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/programs/graph.h"
#include "core/values/value.h"

// The reference kernels by the name of the operator, for tests that go over the catalog.
namespace heddle::ops::reference {

/// The value of `node` on whole inputs, nullptr where one is left out. The inputs are such that inference
/// accepts them; a matrix that comes back is dense.
using Kernel = Value (*)(const Node& node, std::span<const Value* const> inputs);

/// nullptr when there is none.
Kernel FindKernel(std::string_view name);

/// The same of operators with several results.
using SeveralKernel = std::vector<Value> (*)(const Node& node, std::span<const Value* const> inputs);
SeveralKernel FindSeveralKernel(std::string_view name);

// Matrices as values: what most kernels of several results give.
std::vector<Value> ValuesOf(const std::vector<Matrix>& matrices);

}  // namespace heddle::ops::reference
