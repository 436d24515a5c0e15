// SPDX-License-Identifier: Apache-2.0
// cumsum cumprod cummin cummax, down each column: sequential within a granule of rows (from +0.0, 1.0, +Inf,
// -Inf), granule totals folded left into offsets, result = offset op local (docs/numerics.md, section 3). Two
// passes over X.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/values/panels.h"
#include "ops/base/adjoint.h"
#include "ops/base/parallel.h"
#include "ops/catalog.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/aggregate.h"

namespace heddle::ops {
namespace {

using simd::Fold;

Fold FoldOf(const Node& node) {
  if (node.op == "cumprod") return Fold::kMultiply;
  if (node.op == "cummin") return Fold::kMinimum;
  if (node.op == "cummax") return Fold::kMaximum;
  return Fold::kAdd;
}

Result<ValueInfo> InferCumulative(const InferContext& context) {
  const ValueInfo& x = context.inputs[0];
  if (x.data_type != DataType::kMatrix && x.data_type != DataType::kUnknown)
    return InvalidArgument("{}: needs a matrix, got a {}", context.node.op, Name(x.data_type));
  return ValueInfo::OfMatrix(x.shape);
}

// Rows of one granule: out = offset op (local op x), local carried along.
template <typename Op>
void Scan(const double* x, int64_t rows, int64_t n, const double* offset, double* local, double* out,
          const Op& op) {
  for (int64_t i = 0; i < rows; ++i, x += n, out += n) {
    for (int64_t j = 0; j < n; ++j) {
      local[j] = op(local[j], x[j]);
      out[j] = op(offset[j], local[j]);
    }
  }
}

void ScanGranule(Fold fold, const double* x, int64_t rows, int64_t n, const double* offset, double* local,
                 double* out) {
  switch (fold) {
    case Fold::kAdd: return Scan(x, rows, n, offset, local, out, [](double a, double b) { return a + b; });
    case Fold::kMultiply:
      return Scan(x, rows, n, offset, local, out, [](double a, double b) { return a * b; });
    case Fold::kMinimum: return Scan(x, rows, n, offset, local, out, simd::ExactMinimum);
    case Fold::kMaximum: return Scan(x, rows, n, offset, local, out, simd::ExactMaximum);
  }
}

Result<Value> RunCumulative(const KernelCall& call) {
  const Fold fold = FoldOf(call.node);
  const Matrix& x = call.inputs[0]->matrix();
  const int64_t m = x.rows(), n = x.columns(), padded = (n + 7) / 8 * 8;
  const int64_t height = Granule(m), granules = CeilDivide(m, height);
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(m, n));
  if (m == 0 || n == 0) return Value(std::move(result));
  double* out = result.mutable_data();
  const auto rows_of = [&](int64_t granule) { return std::min(height, m - granule * height); };

  // Row g + 1 holds first the total of granule g, then its offset.
  AlignedArray offsets((granules + 1) * padded);
  std::fill_n(offsets.data(), (granules + 1) * padded, simd::StartOf(fold));
  ParallelFor(granules - 1, 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end && !IsCancelled(call.context.cancelled); ++g)
      simd::FoldColumns(fold, x.data() + g * height * n, rows_of(g), n, n, offsets.data() + (g + 1) * padded);
  });
  for (int64_t g = 0; g + 1 < granules; ++g)
    for (int64_t j = 0; j < n; ++j)
      offsets[(g + 1) * padded + j] =
          simd::FoldTwo(fold, offsets[g * padded + j], offsets[(g + 1) * padded + j]);

  ParallelFor(granules, 1, [&](int64_t begin, int64_t end) {
    AlignedArray local(padded);
    for (int64_t g = begin; g < end && !IsCancelled(call.context.cancelled); ++g) {
      std::fill_n(local.data(), padded, simd::StartOf(fold));
      ScanGranule(fold, x.data() + g * height * n, rows_of(g), n, offsets.data() + g * padded, local.data(),
                  out + g * height * n);
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return Value(std::move(result));
}

// ---- The adjoint of X, from X, y and dy, y the result that attribute "of" names.
//
// cumprod: the derivative of y[i] by X[j], j <= i, is y[j-1] times the product of X[j+1:i]. So that of X[j]
// is y[j-1] * s[j] with s[j] = dy[j] + X[j+1] * s[j+1]: right at zeros as well, one pass upward.
void AdjointOfProducts(const double* x, const double* y, const double* dy, int64_t m, int64_t n, int64_t j,
                       double* out) {
  double sum = 0;
  for (int64_t i = m; i-- > 0;) {
    const int64_t at = i * n + j;
    if (i + 1 < m) sum *= x[at + n];
    sum += dy[at];
    out[at] = i == 0 ? sum : y[at - n] * sum;
  }
}

// cummin, cummax: y[i] is the cell that has changed it last, and its adjoint that cell's.
void AdjointOfExtremes(const double* y, const double* dy, int64_t m, int64_t n, int64_t j, double* out) {
  for (int64_t i = 0, taken = 0; i < m; ++i) {
    const double now = y[i * n + j], before = y[taken * n + j];
    if (now != before && !(std::isnan(now) && std::isnan(before))) taken = i;
    out[i * n + j] = 0;
    out[taken * n + j] += dy[i * n + j];
  }
}

Result<Value> RunAdjoint(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  const int64_t m = x.rows(), n = x.columns();
  const double *const y = call.inputs[1]->matrix().data(), *const dy = call.inputs[2]->matrix().data();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(m, n));
  const bool products = call.node.Text("of") == "cumprod";
  ParallelFor(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end && !IsCancelled(call.context.cancelled); ++j) {
      if (products)
        AdjointOfProducts(x.data(), y, dy, m, n, j, result.mutable_data());
      else
        AdjointOfExtremes(y, dy, m, n, j, result.mutable_data());
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return Value(std::move(result));
}

void Differentiate(AdjointCall& call) {
  call.Give(0, call.Add("cumulative_backward", {call.Input(0), call.Computed(), call.Adjoint()},
                        {{"of", Scalar(std::string(call.node().op))}}));
}

constexpr Operator kBackward = {.name = "cumulative_backward",
                                .parameters = "X y dy",
                                .min_inputs = 3,
                                .max_inputs = 3,
                                .infer = InferCumulative,
                                .run = RunAdjoint,
                                .storages = Storages::kDense};

constexpr Operator Describe(std::string_view name, std::string_view adjoints) {
  return {.name = name,
          .form = CallForm::kPositional,
          .parameters = "X",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = InferCumulative,
          .run = RunCumulative,
          .storages = Storages::kDense,
          .adjoints = adjoints,
          .differentiate = adjoints == "*" ? Differentiate : nullptr};
}

}  // namespace

std::span<const Operator> CumulativeOperators() {
  static constexpr Operator kOperators[] = {Describe("cumsum", "rev(cumsum(rev(dy)))"),
                                            Describe("cumprod", "*"), Describe("cummin", "*"),
                                            Describe("cummax", "*"), kBackward};
  return kOperators;
}

}  // namespace heddle::ops
