// SPDX-License-Identifier: Apache-2.0
// cumsum cumprod cummin cummax, down each column: sequential within a granule of rows (from +0.0, 1.0, +Inf,
// -Inf), granule totals folded left into offsets, result = offset op local (docs/numerics.md, section 3). Two
// passes over X.
#include "ops/elementwise/cumulative.h"

#include <algorithm>
#include <string>

#include "core/values/panels.h"
#include "ops/base/adjoint.h"
#include "ops/base/columns.h"
#include "ops/base/device_forms.h"
#include "ops/base/parallel.h"
#include "ops/catalog.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/aggregate.h"

namespace heddle::ops {
namespace {

using simd::Fold;

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

// The rows of x in granules of `height`; the last may be shorter.
class Granules {
 public:
  Granules(const KernelContext& context, Fold fold, const Matrix& x, int64_t height)
      : context_(context), fold_(fold), x_(x), height_(height) {}

  int64_t count() const { return CeilDivide(x_.rows(), height_); }

  // Row g of `totals`, rows of `stride` (a multiple of a vector), becomes the fold of granule g, for the
  // first `count` of them.
  void Totals(int64_t count, double* totals, int64_t stride) const {
    ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end && !IsCancelled(context_.cancelled); ++g) {
        std::fill_n(totals + g * stride, stride, simd::StartOf(fold_));
        simd::FoldColumns(fold_, Cells(g), RowsOf(g), x_.columns(), x_.columns(), totals + g * stride);
      }
    });
  }

  // The result, where row g of `offsets` is the fold of all that comes before granule g.
  Result<Value> Scan(const double* offsets, int64_t stride) const {
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x_.rows(), x_.columns()));
    double* out = result.mutable_data();
    ParallelFor(count(), 1, [&](int64_t begin, int64_t end) {
      AlignedArray local(stride);
      for (int64_t g = begin; g < end && !IsCancelled(context_.cancelled); ++g) {
        std::fill_n(local.data(), stride, simd::StartOf(fold_));
        ScanGranule(fold_, Cells(g), RowsOf(g), x_.columns(), offsets + g * stride, local.data(),
                    out + g * height_ * x_.columns());
      }
    });
    if (IsCancelled(context_.cancelled)) return Cancelled("cancelled");
    return Value(std::move(result));
  }

 private:
  const double* Cells(int64_t granule) const { return x_.data() + granule * height_ * x_.columns(); }
  int64_t RowsOf(int64_t granule) const { return std::min(height_, x_.rows() - granule * height_); }

  const KernelContext& context_;
  const Fold fold_;
  const Matrix& x_;
  const int64_t height_;
};

// Makes row g + 1 the fold of row g and itself: totals become offsets.
void FoldLeft(Fold fold, double* rows, int64_t count, int64_t n, int64_t stride) {
  for (int64_t g = 0; g + 1 < count; ++g)
    for (int64_t j = 0; j < n; ++j)
      rows[(g + 1) * stride + j] = simd::FoldTwo(fold, rows[g * stride + j], rows[(g + 1) * stride + j]);
}

// Rows of totals and offsets are a multiple of a vector.
int64_t Padded(int64_t columns) { return CeilDivide(columns, 8) * 8; }

Result<Value> RunCumulative(const KernelCall& call) {
  const Fold fold = FoldOfCumulative(call.node);
  const Matrix& x = call.inputs[0]->matrix();
  if (x.cells() == 0) return Value(x);
  const int64_t stride = Padded(x.columns());
  const Granules granules(call.context, fold, x, Granule(x.rows()));
  AlignedArray offsets(granules.count() * stride);
  std::fill_n(offsets.data(), stride, simd::StartOf(fold));
  granules.Totals(granules.count() - 1, offsets.data() + stride, stride);
  FoldLeft(fold, offsets.data(), granules.count(), x.columns(), stride);
  return granules.Scan(offsets.data(), stride);
}

// The totals of this rank's granules go to all ranks, each of which folds those before its own.
Status RunCumulativeStage(const StageCall& call, std::span<Value> outputs) {
  const Fold fold = FoldOfCumulative(call.node);
  const Matrix& x = call.inputs[0]->matrix();
  const int64_t total_rows = call.rows.Length(), n = x.columns(), stride = Padded(n);
  const Granules granules(call.context, fold, x, Granule(total_rows));
  if (call.stage == 0) {
    AlignedArray padded(granules.count() * stride);
    if (n > 0) granules.Totals(granules.count(), padded.data(), stride);
    HEDDLE_ASSIGN_OR_RETURN(Matrix totals, Matrix::Dense(granules.count(), n));
    for (int64_t g = 0; g < granules.count(); ++g)
      std::copy_n(padded.data() + g * stride, n, totals.mutable_data() + g * n);
    outputs[0] = Value(std::move(totals));
    return OkStatus();
  }
  outputs[0] = Value(x);
  if (x.cells() == 0) return OkStatus();
  const Matrix& totals = call.Received(0).matrix();
  const int64_t first = call.rows.Begin(call.rank) / Granule(total_rows), last = first + granules.count();
  AlignedArray offsets(last * stride);
  std::fill_n(offsets.data(), stride, simd::StartOf(fold));
  for (int64_t g = 1; g < last; ++g) std::copy_n(totals.data() + (g - 1) * n, n, offsets.data() + g * stride);
  FoldLeft(fold, offsets.data(), last, n, stride);
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], granules.Scan(offsets.data() + first * stride, stride));
  return OkStatus();
}

constexpr Reach kTotals[] = {Reach::kAll};
constexpr Stage kStages[] = {{.outputs = kTotals, .reads_inputs = true}, {.reads_inputs = true}};
constexpr StagedForm kColumns = ByColumns(AllByRows);
constexpr StagedForm kStaged = {.stages = kStages,
                                .result = StagedResult::kSameRows,
                                .needs_granules = true,
                                .other = &kColumns,
                                .run = RunCumulativeStage};

void Differentiate(AdjointCall& call) {
  call.Give(0, call.Add("cumulative_backward", {call.Input(0), call.Computed(), call.Adjoint()},
                        {{"of", Scalar(std::string(call.node().op))}}));
}

constexpr Operator Describe(std::string_view name, std::string_view adjoints) {
  return {.name = name,
          .form = CallForm::kPositional,
          .parameters = "X",
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = InferCumulative,
          .input_use = AllByRows,
          .staged = &kStaged,
          .run = RunCumulative,
          .run_on_device = CumulateOnDevice,
          .storages = Storages::kDense,
          .adjoints = adjoints,
          .differentiate = adjoints == "*" ? Differentiate : nullptr};
}

}  // namespace

Fold FoldOfCumulative(const Node& node) {
  if (node.op == "cumprod") return Fold::kMultiply;
  if (node.op == "cummin") return Fold::kMinimum;
  if (node.op == "cummax") return Fold::kMaximum;
  return Fold::kAdd;
}

std::span<const Operator> CumulativeOperators() {
  static constexpr Operator kOperators[] = {Describe("cumsum", "rev(cumsum(rev(dy)))"),
                                            Describe("cumprod", "*"), Describe("cummin", "*"),
                                            Describe("cummax", "*")};
  return kOperators;
}

}  // namespace heddle::ops
