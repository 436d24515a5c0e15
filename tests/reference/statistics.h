// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/values/matrix.h"
#include "core/values/value.h"

// Order statistics and moments as literal loops. `weights` may be null: 1 each. For tests only.
namespace heddle::ops::reference {

/// quantile(X, p) with a number p (`may_average`) or for one cell of a column p.
double Quantile(const Matrix& x, const Matrix* weights, double p, bool may_average);
double InterQuartileMean(const Matrix& x, const Matrix* weights);
/// The adjoint of X of one of these, `of` = "quantile" "median" "interQuartileMean": `p` as quantile has it.
Matrix RanksAdjoint(std::string_view of, const Matrix& x, const Matrix* weights, const Value* p,
                    const Value& adjoint);
/// sum(w * (x - mean)^k) / sum(w); the mean for k = 0. Plain sums: near the kernel, not equal.
double Moment(const Matrix& x, const Matrix* weights, int64_t k);
double Covariance(const Matrix& a, const Matrix& b, const Matrix* weights);
/// histograms(G, B, W, groups, bins).
Matrix Histograms(const Matrix& g, const Matrix& b, const Matrix& w, int64_t groups, int64_t bins);

}  // namespace heddle::ops::reference
