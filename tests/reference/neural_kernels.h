// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "tests/reference/catalog.h"

// The rows of the table of reference kernels (catalog.h) for operators of neural networks.
namespace heddle::ops::reference {

/// nullptr when there is none of that name.
Kernel FindNeuralKernel(std::string_view name);
SeveralKernel FindNeuralSeveralKernel(std::string_view name);

}  // namespace heddle::ops::reference
