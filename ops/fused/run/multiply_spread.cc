// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/fused/run/tile_steps.h"
#include "ops/product/matmul.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/product/matmul.h"

// X %*% B of a dense X whose rows are 0 but at the entries of a CSR driver, almost always: those are
// multiplied alone. Where zeros count, as 0 * Infinity does, and in rows of other numbers, X is made dense.
namespace heddle::ops {
namespace {

constexpr int64_t kSpreadCells = 1 << 16;  // At a time.

template <typename T>
bool AreFinite(const T* cells, int64_t count) {
  return std::all_of(cells, cells + count, [](T cell) { return std::isfinite(cell); });
}

bool IsFinite(const Matrix& x) {
  const int64_t count = x.IsSparse() ? x.stored() : x.cells(), first = x.IsSparse() ? x.row_offsets()[0] : 0;
  const bool singles = x.element_type() == ElementType::kFloat32;
  if (x.IsSparse())
    return singles ? AreFinite(x.values<float>() + first, count) : AreFinite(x.values() + first, count);
  return singles ? AreFinite(x.data<float>(), count) : AreFinite(x.data(), count);
}

}  // namespace

void TileSteps::PrepareSpread(size_t s) {
  const Step& step = program_.steps[s];
  if (!step.multiplies_zeros) return;
  const auto right = static_cast<size_t>(step.right);
  finite_[s] = IsFinite(MultipliesSingles(program_, step) ? inputs_.singles[right] : inputs_.doubles[right]);
  if (step.columns <= kFewColumns) narrow_spread_[s] = NarrowRight(inputs_.doubles[right], false);
}

bool TileSteps::MustSpread(TileScratch& scratch, size_t s, int64_t row, int64_t rows) const {
  const Step& step = program_.steps[s];
  if (!step.multiplies_zeros) return false;
  if (!finite_[s]) return true;
  const bool zero = step.background.kind == TileRef::Kind::kNone;
  return !zero && HasNonzero(Locate(scratch, step.background, row).cells, rows);
}

void TileSteps::MultiplySpread(TileScratch& scratch, size_t s, int64_t row, int64_t rows) const {
  const Step& step = program_.steps[s];
  const int64_t inner = driver().columns(), k = step.columns;
  const int64_t piece = std::clamp<int64_t>(kSpreadCells / inner, 1, rows);
  const auto right = static_cast<size_t>(step.right);
  double* out = Locate(scratch, step.to, row).cells;
  Entries entries = scratch.EntriesAt(Locate(scratch, step.from, row).cells, row);
  const double* background = Locate(scratch, step.background, row).cells;
  scratch.spread.resize(static_cast<size_t>(piece * inner));
  double* const cells = scratch.spread.data();
  for (int64_t i = 0; i < rows; i += piece) {
    const int64_t count = std::min(piece, rows - i);
    SpreadRowsWithBackground(entries, background, count, inner, cells, inner);
    if (k <= kFewColumns) {
      const NarrowRight& narrow = narrow_spread_[s];
      simd::MultiplyRows(cells, count, inner, inner, narrow.cells.data(), narrow.stride, k, out, k, {});
    } else if (MultipliesSingles(program_, step)) {
      scratch.singles.resize(scratch.spread.size());
      SelectedElementwiseKernels().narrow(cells, scratch.singles.data(), count * inner);
      Run(SingleGemm{.m = count,
                     .n = k,
                     .k = inner,
                     .a = scratch.singles.data(),
                     .a_row = inner,
                     .b = inputs_.singles[right].data<float>(),
                     .b_row = k,
                     .c = out,
                     .c_row = k});
    } else {
      Run(Gemm{.m = count,
               .n = k,
               .k = inner,
               .a = cells,
               .a_row = inner,
               .b = inputs_.doubles[right].data(),
               .b_row = k,
               .c = out,
               .c_row = k,
               .canonical = true});
    }
    out += count * k;
    entries.offsets += count;
    if (background != nullptr) background += count;
  }
}

}  // namespace heddle::ops
