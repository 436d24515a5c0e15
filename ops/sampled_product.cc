// SPDX-License-Identifier: Apache-2.0
#include "ops/sampled_product.h"

#include <immintrin.h>

#include <algorithm>

#include "ops/catalog.h"
#include "ops/elementwise_sparse.h"
#include "ops/parallel.h"
#include "ops/reduction_tree.h"

// sampledProduct(W, U, V): the cells of U %*% t(V) at the entries of W.
namespace heddle::ops {
namespace {

Status CheckShapes(const Shape& w, const Shape& u, const Shape& v) {
  const auto differ = [](int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; };
  if (!differ(w.rows, u.rows) && !differ(w.columns, v.rows) && !differ(u.columns, v.columns))
    return OkStatus();
  return InvalidArgument("sampledProduct: shapes {}, {} and {} do not fit", w, u, v);
}

Result<ValueInfo> InferSampled(const InferContext& context) {
  for (const ValueInfo& input : context.inputs)
    if (!input.IsMatrix())
      return InvalidArgument("sampledProduct: operands are matrices, not a {}", Name(input.data_type));
  const Shape &w = context.inputs[0].shape, &u = context.inputs[1].shape, &v = context.inputs[2].shape;
  HEDDLE_RETURN_IF_ERROR(CheckShapes(w, u, v));
  return ValueInfo::OfMatrix({w.rows >= 0 ? w.rows : u.rows, w.columns >= 0 ? w.columns : v.rows},
                             Format::kSparse);
}

RowRule SampledRowRule(const Node&, std::span<const ValueInfo>) { return RowRule::kRowWise; }
InputUse SampledInputUse(const Node&, std::span<const ValueInfo>, int i) {
  return i < 2 ? InputUse::kRows : InputUse::kWhole;
}

// How many entries W has is not known before the run; a CSR matrix is taken to hold a twentieth of its cells.
Cost SampledCost(const Node&, std::span<const ValueInfo> inputs) {
  const Shape &w = inputs[0].shape, &u = inputs[1].shape, &v = inputs[2].shape;
  if (!w.IsKnown() || !u.IsKnown() || !v.IsKnown()) return {};
  const double entries = 0.05 * static_cast<double>(w.Cells());
  return {.flops = 2 * entries * static_cast<double>(u.columns),
          .bytes = 20 * entries + 8 * (static_cast<double>(u.Cells()) + static_cast<double>(v.Cells()))};
}

// The first n (0-3) lanes, for masked loads.
__m256i FirstLanes(int64_t n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}

// Eight lanes over k of s = fma(u_k, v_k, s), lane k mod 8, then L = ((r0+r4)+(r2+r6)) + ((r1+r5)+(r3+r7)),
// plus +0.0. A lane that ends early adds fma(0, 0, s).
class Dot {
 public:
  explicit Dot(int64_t count)
      : whole_(count / 8 * 8),
        low_(FirstLanes(std::min<int64_t>(4, count - whole_))),
        high_(FirstLanes(count - whole_ - 4)) {
    has_rest_ = whole_ < count;
  }

  double operator()(const double* u, const double* v) const {
    __m256d low = _mm256_setzero_pd(), high = _mm256_setzero_pd();
    for (int64_t k = 0; k < whole_; k += 8) {
      low = _mm256_fmadd_pd(_mm256_loadu_pd(u + k), _mm256_loadu_pd(v + k), low);
      high = _mm256_fmadd_pd(_mm256_loadu_pd(u + k + 4), _mm256_loadu_pd(v + k + 4), high);
    }
    if (has_rest_) {
      low = _mm256_fmadd_pd(_mm256_maskload_pd(u + whole_, low_), _mm256_maskload_pd(v + whole_, low_), low);
      high = _mm256_fmadd_pd(_mm256_maskload_pd(u + whole_ + 4, high_),
                             _mm256_maskload_pd(v + whole_ + 4, high_), high);
    }
    const __m256d four = _mm256_add_pd(low, high);  // r0+r4 r1+r5 r2+r6 r3+r7
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return (_mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two))) + 0.0;
  }

  /// One row of u and four of v, whose loads wait for memory side by side.
  __m256d Four(const double* u, const double* const v[4]) const {
    __m256d low[4], high[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) low[r] = high[r] = _mm256_setzero_pd();
    for (int64_t k = 0; k < whole_; k += 8) {
      const __m256d u_low = _mm256_loadu_pd(u + k), u_high = _mm256_loadu_pd(u + k + 4);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        low[r] = _mm256_fmadd_pd(u_low, _mm256_loadu_pd(v[r] + k), low[r]);
        high[r] = _mm256_fmadd_pd(u_high, _mm256_loadu_pd(v[r] + k + 4), high[r]);
      }
    }
    if (has_rest_) {
      const __m256d u_low = _mm256_maskload_pd(u + whole_, low_), u_high = _mm256_maskload_pd(u + whole_ + 4, high_);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        low[r] = _mm256_fmadd_pd(u_low, _mm256_maskload_pd(v[r] + whole_, low_), low[r]);
        high[r] = _mm256_fmadd_pd(u_high, _mm256_maskload_pd(v[r] + whole_ + 4, high_), high[r]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) low[r] = _mm256_add_pd(low[r], high[r]);
    const __m256d ab = _mm256_add_pd(_mm256_permute2f128_pd(low[0], low[1], 0x20), _mm256_permute2f128_pd(low[0], low[1], 0x31));
    const __m256d cd = _mm256_add_pd(_mm256_permute2f128_pd(low[2], low[3], 0x20), _mm256_permute2f128_pd(low[2], low[3], 0x31));
    return _mm256_add_pd(_mm256_permute4x64_pd(_mm256_hadd_pd(ab, cd), 0xd8), _mm256_setzero_pd());
  }

 private:
  int64_t whole_;
  __m256i low_, high_;
  bool has_rest_;
};

}  // namespace

void SampleRows(const Matrix& w, const Matrix& u, const Matrix& v, int64_t begin, int64_t end, double* out) {
  // Far enough ahead that the row of V has come from memory when it is needed.
  constexpr int64_t kAhead = 8;
  const int64_t rank = u.columns(), base = w.row_offsets()[0], last_entry = w.row_offsets()[end];
  const int32_t* columns = w.column_indexes();
  const Dot dot(rank);
  for (int64_t i = begin; i < end; ++i) {
    const double* row = u.data() + i * rank;
    const auto prefetch = [&](int64_t e) {
      if (e >= last_entry) return;
      const char* next = reinterpret_cast<const char*>(v.data() + columns[e] * rank);
      for (int64_t byte = 0; byte < 8 * rank && byte < 512; byte += 64) _mm_prefetch(next + byte, _MM_HINT_T0);
    };
    int64_t e = w.row_offsets()[i];
    const int64_t row_end = w.row_offsets()[i + 1];
    for (; e + 4 <= row_end; e += 4) {
      for (int64_t next = e + kAhead; next < e + kAhead + 4; ++next) prefetch(next);
      const double* const rows[4] = {v.data() + columns[e] * rank, v.data() + columns[e + 1] * rank, v.data() + columns[e + 2] * rank,
                                     v.data() + columns[e + 3] * rank};
      const __m256d cells = dot.Four(row, rows);
      _mm256_storeu_pd(out + (e - base), cells);
    }
    for (; e < row_end; ++e) {
      prefetch(e + kAhead);
      const double cell = dot(row, v.data() + columns[e] * rank);
      out[e - base] = cell;
    }
  }
}

namespace {

Result<Value> RunSampled(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix w, ToSparse(call.inputs[0]->matrix()));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix u, ToDense(call.inputs[1]->matrix()));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix v, ToDense(call.inputs[2]->matrix()));
  if (Status fit = CheckShapes(w.shape(), u.shape(), v.shape()); !fit.ok())
    return fit.WithCode(StatusCode::kFailedPrecondition);
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SamePattern(w));
  if (w.rows() == 0) return Value(std::move(result));
  constexpr int64_t kTaskCells = 1 << 17;
  const int64_t row_work = (w.stored() / w.rows() + 1) * std::max<int64_t>(u.columns(), 8);
  ParallelFor(w.rows(), std::max<int64_t>(1, kTaskCells / row_work), [&](int64_t begin, int64_t end) {
    if (!IsCancelled(call.context.cancelled)) SampleRows(w, u, v, begin, end, result.mutable_values());
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  HEDDLE_ASSIGN_OR_RETURN(result, DropZeros(result));
  return Value(std::move(result));
}

/// sampledProduct(W, U, V): cell (i, j) is sum over k of U[i,k] * V[j,k] where W has an entry, else absent.
///
/// The compiler forms it of W * f(U %*% t(V)) with a CSR W (compiler/optimize/rules_order.cc); scripts cannot
/// name it. Shapes:  W is m x n, U m x r, V n x r; the result is m x n, CSR, with the entries of W that are
/// not zero. Error:   |result - exact| <= (r/8 + 4) * eps * sum |u_ik v_jk|: eight lanes over k, then L
/// (docs/numerics.md, section 3). Cost:    2 r operations an entry of W, whose rows of V come from memory in
/// the order of the entries.
constexpr Operator kOperators[] = {
    {.name = "sampledProduct",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = InferSampled,
     .row_rule = SampledRowRule,
     .input_use = SampledInputUse,
     .cost = SampledCost,
     .run = RunSampled},
};

}  // namespace

std::span<const Operator> SampledProductOperators() { return kOperators; }

}  // namespace heddle::ops
