// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "core/values/matrix.h"
#include "tests/reference/lstm.h"
#include "tests/reference/neural.h"

// What operators of neural networks compute of floats (docs/numerics.md, section 9), as literal loops: their
// products are chains of floats over blocks of 64 terms, joined in doubles. All matrices hold floats. For
// tests only.
namespace heddle::ops::reference {

Matrix Conv2dSingles(const ImageCall& call, const Matrix& x, const Matrix& filters);
Matrix Conv2dBackwardDataSingles(const ImageCall& call, const Matrix& filters, const Matrix& gradient);
Matrix Conv2dBackwardFilterSingles(const ImageCall& call, const Matrix& x, const Matrix& gradient);

/// The results of batch_norm2d: those of doubles, rounded, but for the first, which is made of them by the
/// arithmetic of floats.
std::vector<Matrix> BatchNormSingles(const Matrix& x, const std::array<Matrix, 4>& columns, bool trains,
                                     double epsilon, double momentum);

std::vector<Matrix> LstmSingles(const LstmCall& call);
std::vector<Matrix> LstmBackwardSingles(const LstmCall& call, const Matrix& of_out, const Matrix& of_cell);

}  // namespace heddle::ops::reference
