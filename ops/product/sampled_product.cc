// SPDX-License-Identifier: Apache-2.0
#include "ops/product/sampled_product.h"

#include <immintrin.h>

#include <algorithm>

#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/catalog.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/elementwise_sparse.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/rows.h"
#include "ops/sparse/gathered_rows.h"

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

InputUse SampledInputUse(const Node&, std::span<const ValueInfo>, int i) {
  return i < 2 ? InputUse::kRows : InputUse::kWhole;
}

// How many entries W has is not known before the run; a CSR matrix is taken to hold a twentieth of its cells.
Cost SampledCost(const Node&, std::span<const ValueInfo> inputs) {
  const Shape &w = inputs[0].shape, &u = inputs[1].shape, &v = inputs[2].shape;
  if (!w.IsKnown() || !u.IsKnown() || !v.IsKnown()) return {};
  const double entries = 0.05 * static_cast<double>(w.Cells());
  return {.work = entries * static_cast<double>(u.columns),
          .bytes = 20 * entries + 8 * (static_cast<double>(u.Cells()) + static_cast<double>(v.Cells()))};
}

// Eight lanes over k of s = fma(u_k, v_k, s), lane k mod 8, for one row of u and four of v whose loads wait
// for memory side by side; then L = ((r0+r4)+(r2+r6)) + ((r1+r5)+(r3+r7)), plus +0.0.
inline __attribute__((always_inline)) __m256d JoinLanes(const __m256d low[4], const __m256d high[4]) {
  __m256d four[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) four[r] = _mm256_add_pd(low[r], high[r]);  // r0+r4 r1+r5 r2+r6 r3+r7
  // The halves of rows 0 and 2 side by side, and of 1 and 3.
  const __m256d even = _mm256_add_pd(_mm256_blend_pd(four[0], four[2], 0b1100),
                                     _mm256_permute2f128_pd(four[0], four[2], 0x21));
  const __m256d odd = _mm256_add_pd(_mm256_blend_pd(four[1], four[3], 0b1100),
                                    _mm256_permute2f128_pd(four[1], four[3], 0x21));
  return _mm256_add_pd(_mm256_add_pd(_mm256_unpacklo_pd(even, odd), _mm256_unpackhi_pd(even, odd)),
                       _mm256_setzero_pd());
}

// A rank of at most 32: the row of u stays in registers. Of the lines of a row every second one is fetched;
// the processor's prefetcher finds the others.
template <int kVectors, bool kMasked>
class ShortRow {
 public:
  static constexpr int64_t kAhead = 16;  // Entries whose rows of v are on the way from memory.
  explicit ShortRow(int64_t rank) : last_(rank - 4 * (kVectors - 1)) {}
  void Take(const double* u) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) u_[i] = Load(u, i);
  }
  void Fetch(const double* v) const {
#pragma GCC unroll 4
    for (int line = 0; line < (kVectors + 1) / 2; line += 2)
      _mm_prefetch(reinterpret_cast<const char*>(v + 8 * line), _MM_HINT_T0);
  }
  __attribute__((always_inline)) __m256d Dots(const double* const v[4]) const {
    __m256d sums[2][4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) sums[0][r] = sums[1][r] = _mm256_setzero_pd();
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i)
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) sums[i % 2][r] = _mm256_fmadd_pd(u_[i], Load(v[r], i), sums[i % 2][r]);
    return JoinLanes(sums[0], sums[1]);
  }

 private:
  __m256d Load(const double* row, int i) const {
    return kMasked && i == kVectors - 1 ? simd::LoadFirst(row + 4 * i, last_) : _mm256_loadu_pd(row + 4 * i);
  }
  int64_t last_;
  __m256d u_[kVectors];
};

class LongRow {
 public:
  static constexpr int64_t kAhead = 8;
  explicit LongRow(int64_t rank)
      : whole_(rank / 8 * 8), low_(std::min<int64_t>(rank - whole_, 4)), high_(rank - whole_ - low_) {}
  void Take(const double* u) { u_ = u; }
  /// The machine goes on with what follows.
  void Fetch(const double* v) const {
    for (int64_t k = 0; k < whole_ && k < 64; k += 8)
      _mm_prefetch(reinterpret_cast<const char*>(v + k), _MM_HINT_T0);
  }
  __attribute__((always_inline)) __m256d Dots(const double* const v[4]) const {
    __m256d low[4], high[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) low[r] = high[r] = _mm256_setzero_pd();
    for (int64_t k = 0; k < whole_; k += 8) {
      const __m256d u_low = _mm256_loadu_pd(u_ + k), u_high = _mm256_loadu_pd(u_ + k + 4);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        low[r] = _mm256_fmadd_pd(u_low, _mm256_loadu_pd(v[r] + k), low[r]);
        high[r] = _mm256_fmadd_pd(u_high, _mm256_loadu_pd(v[r] + k + 4), high[r]);
      }
    }
    const auto add_rest = [&](int64_t from, int64_t count, __m256d * sums) __attribute__((always_inline)) {
      const __m256d cells = simd::LoadFirst(u_ + from, count);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r)
        sums[r] = _mm256_fmadd_pd(cells, simd::LoadFirst(v[r] + from, count), sums[r]);
    };
    if (low_ > 0) add_rest(whole_, low_, low);
    if (high_ > 0) add_rest(whole_ + 4, high_, high);
    return JoinLanes(low, high);
  }

 private:
  int64_t whole_, low_, high_;  // Cells by eights, and the rest of each half.
  const double* u_ = nullptr;
};

// How far on entries are whose values, which what follows reads next, and columns are fetched meanwhile.
constexpr int64_t kValuesAhead = 128, kColumnsAhead = 512;

// Entries [first, last) of one row, which `row` has taken; rows of v of entries before `known` are fetched.
template <typename Row>
inline __attribute__((always_inline)) void SampleEntries(const Row& row, const int32_t* columns,
                                                         const double* cells, int64_t rank, int64_t first,
                                                         int64_t last, int64_t known, const double* beside,
                                                         double* out) {
  if (last - first < 4) {
    if (first == last) return;
    const double* rows[4];
    for (int64_t r = 0; r < 4; ++r) rows[r] = cells + columns[std::min(first + r, last - 1)] * rank;
    const __m256d dots = row.Dots(rows);
    for (int64_t r = 0; r < last - first; ++r) out[first + r] = dots[r];
    return;
  }
  // The last four overlap those before them.
  for (int64_t e = first; e < last; e += 4) {
    e = std::min(e, last - 4);
    if (e + Row::kAhead + 4 <= known)
#pragma GCC unroll 4
      for (int64_t k = Row::kAhead; k < Row::kAhead + 4; ++k) row.Fetch(cells + columns[e + k] * rank);
    _mm_prefetch(reinterpret_cast<const char*>(beside + e + kValuesAhead), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(columns + e + kColumnsAhead), _MM_HINT_T0);
    const double* const rows[4] = {cells + columns[e] * rank, cells + columns[e + 1] * rank,
                                   cells + columns[e + 2] * rank, cells + columns[e + 3] * rank};
    _mm256_storeu_pd(out + e, row.Dots(rows));
  }
}

template <typename Row>
void SampleWith(Row row, const Matrix& w, const Matrix& u, const Matrix& v, int64_t begin, int64_t end,
                double* out) {
  const int64_t rank = u.columns();
  const int64_t* offsets = w.row_offsets();
  const int32_t* columns = w.column_indexes();
  out -= offsets[0];
  for (int64_t i = begin; i < end; ++i) {
    row.Take(u.data() + i * rank);
    SampleEntries(row, columns, v.data(), rank, offsets[i], offsets[i + 1], offsets[w.rows()], w.values(),
                  out);
  }
}

void SampleBlocks(const Matrix& w, const Matrix& u, const Matrix& v, int64_t begin, int64_t end,
                  int64_t block, double* out) {
  const int64_t rank = u.columns();
  const int32_t* columns = w.column_indexes();
  LongRow row(rank);
  out -= w.row_offsets()[0];
  ForBlocks(w.row_offsets() + begin, columns, end - begin, v.rows(), block,
            [&](int64_t i, int64_t first, int64_t last) {
              row.Take(u.data() + (begin + i) * rank);
              SampleEntries(row, columns, v.data(), rank, first, last, last, w.values(), out);
            });
}

}  // namespace

void SampleRows(const Matrix& w, const Matrix& u, const Matrix& v, int64_t begin, int64_t end, double* out) {
  const int64_t rank = u.columns();
  const int64_t block = GatheredBlock(w, v);
  if (block > 0 && w.row_offsets()[end] - w.row_offsets()[begin] >= kEntriesTogether / 4)
    return SampleBlocks(w, u, v, begin, end, block, out);
  const bool is_short = simd::WithConstant<1, 8>(CeilDivide(rank, 4), [&](auto vectors) {
    if (rank % 4 != 0)
      SampleWith(ShortRow<vectors, true>(rank), w, u, v, begin, end, out);
    else
      SampleWith(ShortRow<vectors, false>(rank), w, u, v, begin, end, out);
  });
  if (!is_short) SampleWith(LongRow(rank), w, u, v, begin, end, out);
}

namespace {

Result<Value> RunSampled(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix w, AsSparse(call.inputs[0]->matrix()));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix u, AsDense(call.inputs[1]->matrix()));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix v, AsDense(call.inputs[2]->matrix()));
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
  HEDDLE_ASSIGN_OR_RETURN(result, DropZerosOfOwn(std::move(result)));
  return Value(std::move(result));
}

/// sampledProduct(W, U, V): cell (i, j) is sum over k of U[i,k] * V[j,k] where W has an entry, else absent.
///
/// The compiler forms it of W * f(U %*% t(V)) with a CSR W (compiler/rules/rules_order.cc); scripts cannot
/// name it. Shapes:  W is m x n, U m x r, V n x r; the result is m x n, CSR, with the entries of W that are
/// not zero. Error:   |result - exact| <= (r/8 + 4) * eps * sum |u_ik v_jk|: eight lanes over k, then L
/// (docs/numerics.md, section 3). Cost:    2 r operations an entry of W, whose rows of V come from memory in
/// the order of the entries.
constexpr Operator kOperators[] = {
    {.name = "sampledProduct",
     .parameters = "W U V",
     .min_inputs = 3,
     .max_inputs = 3,
     .infer = InferSampled,
     .row_rule = RowWise,
     .input_use = SampledInputUse,
     .cost = SampledCost,
     .run = RunSampled,
     .role = Role::kSampledProduct,
     .fusion = {.use = RowUse::kSampledProduct, .outer = true}},
};

}  // namespace

std::span<const Operator> SampledProductOperators() { return kOperators; }

}  // namespace heddle::ops
