// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/sampled_product.h"

#include <cmath>

namespace heddle::ops::reference {

Matrix SampledProduct(const Matrix& w, const Matrix& u, const Matrix& v) {
  Matrix result = *FilledMatrix(w.rows(), w.columns(), 0.0);
  for (int64_t i = 0; i < w.rows(); ++i) {
    for (int64_t j = 0; j < w.columns(); ++j) {
      if (w.At(i, j) == 0.0) continue;
      double r[8] = {0, 0, 0, 0, 0, 0, 0, 0};
      for (int64_t k = 0; k < u.columns(); ++k) r[k % 8] = std::fma(u.At(i, k), v.At(j, k), r[k % 8]);
      result.mutable_data()[i * w.columns() + j] =
          (((r[0] + r[4]) + (r[2] + r[6])) + ((r[1] + r[5]) + (r[3] + r[7]))) + 0.0;
    }
  }
  return result;
}

}  // namespace heddle::ops::reference
