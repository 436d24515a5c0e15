// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "core/values/matrix.h"

// Convolution, pooling and normalisation of images as literal loops. For tests only.
namespace heddle::ops::reference {

/// Images (n, c, h, w), filters (k, c, r, s), strides and padding of rows and columns.
struct ImageCall {
  int64_t n, c, h, w, k, r, s, stride_h, stride_w, pad_h, pad_w;
  int64_t P() const { return (h + 2 * pad_h - r) / stride_h + 1; }
  int64_t Q() const { return (w + 2 * pad_w - s) / stride_w + 1; }
};

Matrix Conv2d(const ImageCall& call, const Matrix& x, const Matrix& filters);
Matrix Conv2dBackwardData(const ImageCall& call, const Matrix& filters, const Matrix& gradient);
/// Panels of eight images along the tree.
Matrix Conv2dBackwardFilter(const ImageCall& call, const Matrix& x, const Matrix& gradient);
Matrix MaxPool(const ImageCall& call, const Matrix& x);
Matrix AveragePool(const ImageCall& call, const Matrix& x);
Matrix MaxPoolBackward(const ImageCall& call, const Matrix& x, const Matrix& gradient);
Matrix MaxPoolAt(const ImageCall& call, const Matrix& x, const Matrix& y);
Matrix AveragePoolBackward(const ImageCall& call, const Matrix& x, const Matrix& gradient);
Matrix Bias(const Matrix& x, const Matrix& bias, bool multiplies);

/// The results of batch_norm2d and of its gradient.
std::vector<Matrix> BatchNorm(const Matrix& x, const std::array<Matrix, 4>& columns, bool trains,
                              double epsilon, double momentum);
std::vector<Matrix> BatchNormBackward(const Matrix& x, const Matrix& gradient, const Matrix& gamma,
                                      const Matrix& mean, const Matrix& scale);

}  // namespace heddle::ops::reference
