// SPDX-License-Identifier: Apache-2.0
// X %*% M with a compressed X.
#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "ops/base/parallel.h"
#include "ops/cells/decode_sparse.h"
#include "ops/cells/decode_tile.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/single_precision.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/compressed_products.h"
#include "ops/product/matmul.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/aggregate.h"
#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/product/matmul.h"
#include "ops/simd/rows.h"

namespace heddle::ops {
namespace {

constexpr int64_t kTaskCells = 1 << 18;
// Doubles of the products of a unit's tuples, which stay in the first-level cache.
constexpr int64_t kMostProducts = 2048;
// A look-up with an addition takes as long as so many multiply-adds of a packed product.
constexpr int64_t kTermsOfLookUp = 4;

// X %*% M where no sum is rounded: each tuple is multiplied once, and rows add up what their tuples gave.
class ExactProduct {
 public:
  ExactProduct(const Matrix& x, const Matrix& m) : x_(x), m_(m), k_(m.columns()), start_(Cells(1), 0.0) {
    std::vector<const ColumnGroup*> dense;
    for (const ColumnGroup& group : x_.groups().groups) {
      if (group.encoding == Encoding::kEmpty) continue;
      if (group.encoding == Encoding::kDenseCodes) {
        dense.push_back(&group);
        continue;
      }
      Moving moving{&group, ProductsOf(group)};
      if (group.encoding != Encoding::kRuns) AddTo(start_.data(), moving.products.data());
      if (group.encoding == Encoding::kDefault) {
        // What an exception has more than the default.
        for (int64_t t = group.tuples() - 1; t >= 0; --t)
          for (int64_t c = 0; c < k_; ++c) moving.products[Cells(t) + Index(c)] -= moving.products[Index(c)];
      }
      if (group.encoding != Encoding::kConstant) moving_.push_back(std::move(moving));
    }
    JoinUnits(dense);
  }

  // Rows [begin, end) to out, row-major.
  void Multiply(int64_t begin, int64_t end, double* out) const {
    std::vector<GroupPlace> places;
    for (const Moving& moving : moving_) places.push_back(PlaceOfRow(*moving.group, x_.first_row() + begin));
    for (int64_t row = begin; row < end; row += kCodesAtOnce) {
      const int64_t last = std::min(end, row + kCodesAtOnce);
      MultiplyBlock(x_.first_row() + row, x_.first_row() + last, places, out + (row - begin) * k_);
    }
  }

 private:
  struct Unit {
    CodeUnit codes;
    std::vector<double> products;  // tuples x k
  };
  struct Moving {
    const ColumnGroup* group;
    std::vector<double> products;
  };

  static size_t Index(int64_t i) { return static_cast<size_t>(i); }
  size_t Cells(int64_t rows) const { return Index(rows * k_); }

  void AddTo(double* sums, const double* terms) const {
    for (int64_t c = 0; c < k_; ++c) sums[c] += terms[c];
  }

  template <typename T>
  void FillProducts(const ColumnGroup& group, double* products) const {
    const T* tuple = group.dictionary.data<T>();
    for (int64_t t = 0; t < group.tuples(); ++t, products += k_)
      for (const int32_t column : group.columns) {
        const double cell = static_cast<double>(*tuple++);
        for (int64_t c = 0; c < k_; ++c) products[c] += cell * m_.data()[column * k_ + c];
      }
  }
  std::vector<double> ProductsOf(const ColumnGroup& group) const {
    std::vector<double> products(Cells(group.tuples()), 0.0);
    if (HoldsSingles(group.dictionary))
      FillProducts<float>(group, products.data());
    else
      FillProducts<double>(group, products.data());
    return products;
  }

  void JoinUnits(const std::vector<const ColumnGroup*>& dense) {
    const int64_t most = std::min(CodeUnit::kMostJoined, kMostProducts / k_);
    CodeUnit open;
    for (const ColumnGroup* group : dense) {
      if (!open.CanJoin(*group, x_.rows() < kLeastJoinedRows ? 0 : most)) {
        AddUnit(open);
        open = {};
      }
      open.Join(*group);
    }
    if (!open.groups.empty()) AddUnit(open);
    std::stable_partition(units_.begin(), units_.end(),
                          [](const Unit& unit) { return !unit.codes.HasWideCodes(); });
  }

  void AddUnit(const CodeUnit& codes) {
    std::vector<std::vector<double>> own;
    for (const ColumnGroup* group : codes.groups) own.push_back(ProductsOf(*group));
    Unit unit{codes, {}};
    if (own.size() == 1) {
      unit.products = std::move(own[0]);
    } else {
      unit.products.assign(Cells(codes.tuples), 0.0);
      for (int64_t code = 0; code < codes.tuples; ++code)
        codes.ForCodes(code, [&](size_t g, int64_t tuple) {
          AddTo(unit.products.data() + code * k_, own[g].data() + tuple * k_);
        });
    }
    units_.push_back(std::move(unit));
  }

  // Rows of the groups. kCount: k, where the compiler is to know it; else 0.
  template <int kCount>
  void AddBlock(int64_t begin, int64_t end, std::vector<GroupPlace>& places, double* out) const {
    const int64_t k = kCount > 0 ? kCount : k_;
    const auto add = [k](double* sums, const double* terms) __attribute__((always_inline)) {
      if constexpr (kCount > 0) return simd::AddTo<kCount>(sums, terms);
      for (int64_t c = 0; c < k; ++c) sums[c] += terms[c];
    };
    size_t done = 0;
    if constexpr (kCount == 1)
      for (; done + 4 <= units_.size() && !units_[done + 3].codes.HasWideCodes(); done += 4)
        AddFour(&units_[done], begin, end, out);
    for (const Unit& unit : std::span(units_).subspan(done))
      WithCodes(unit.codes, begin, end, [&](const auto* codes) {
        const double* const products = unit.products.data();
        for (int64_t i = 0; i < end - begin; ++i) add(out + i * k, products + codes[i] * k);
      });
    for (size_t g = 0; g < moving_.size(); ++g) {
      const double* const products = moving_[g].products.data();
      if (moving_[g].group->encoding == Encoding::kDefault)
        VisitExceptions(*moving_[g].group, begin, end, &places[g], [&](int64_t row, uint32_t code) {
          add(out + (row - begin) * k, products + code * k);
        });
      else
        VisitRuns(*moving_[g].group, begin, end, &places[g], [&](int64_t first, int64_t last, uint32_t code) {
          for (int64_t row = first; row < last; ++row) add(out + (row - begin) * k, products + code * k);
        });
    }
  }

  // One column of M: four units in one pass over the results.
  void AddFour(const Unit* units, int64_t begin, int64_t end, double* out) const {
    std::array<CodeRoom, 4> rooms;
    std::array<const uint8_t*, 4> codes;
    std::array<const double*, 4> terms;
    for (size_t u = 0; u < 4; ++u) {
      codes[u] = ByteCodes(units[u].codes, begin, end, &rooms[u]);
      terms[u] = units[u].products.data();
    }
    for (int64_t i = 0; i < end - begin; ++i)
      out[i] +=
          (terms[0][codes[0][i]] + terms[1][codes[1][i]]) + (terms[2][codes[2][i]] + terms[3][codes[3][i]]);
  }

  void MultiplyBlock(int64_t begin, int64_t end, std::vector<GroupPlace>& places, double* out) const {
    for (int64_t i = 0; i < end - begin; ++i) std::copy_n(start_.data(), k_, out + i * k_);
    const auto add = [&](auto count) { AddBlock<decltype(count)::value>(begin, end, places, out); };
    if (!simd::WithConstant<1, 8>(k_, add)) AddBlock<0>(begin, end, places, out);
  }

  const Matrix& x_;
  const Matrix& m_;
  const int64_t k_;
  std::vector<double> start_;  // What rows of defaults have.
  std::vector<Unit> units_;
  std::vector<Moving> moving_;
};

// Calls multiply(begin, end, sums) for runs of rows, whose results are doubles; they are stored as the cells
// of the result are.
template <typename Multiply>
Result<Matrix> RowsOfResult(const Matrix& x, int64_t k, const KernelContext& context,
                            const Multiply& multiply) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), k, x.element_type()));
  const int64_t grain = std::max<int64_t>(
      kCodesAtOnce, kTaskCells / std::max<int64_t>(x.columns(), 8) / kCodesAtOnce * kCodesAtOnce);
  ParallelFor(x.rows(), grain, [&](int64_t begin, int64_t end) {
    if (IsCancelled(context.cancelled)) return;
    if (!HoldsSingles(x)) return multiply(begin, end, result.mutable_data() + begin * k);
    AlignedArray sums((end - begin) * k);
    multiply(begin, end, sums.data());
    SelectedElementwiseKernels().narrow(sums.data(), result.mutable_data<float>() + begin * k,
                                        (end - begin) * k);
  });
  if (IsCancelled(context.cancelled)) return Cancelled("cancelled");
  return result;
}

template <typename T>
Result<Matrix> MultiplyTiles(const Matrix& x, Matrix m, const KernelContext& context) {
  const TileDecoder<T> decoder(x);
  const NarrowRight right(std::move(m), false);
  const int64_t n = x.columns(), k = right.count, height = TileDecoder<T>::RowsOfTile(n);
  return RowsOfResult(x, k, context, [&](int64_t begin, int64_t end, double* out) {
    typename TileDecoder<T>::Cursor cursor;
    AlignedArray room(height * n);
    T* const cells = reinterpret_cast<T*>(room.data());
    for (int64_t row = begin; row < end; row += height) {
      const int64_t rows = std::min(height, end - row);
      decoder.Decode(&cursor, row, row + rows, cells);
      simd::MultiplyRows(cells, rows, n, n, right.cells.data(), right.stride, k, out + (row - begin) * k, k);
    }
  });
}

// More columns: a block of rows is decoded, M is packed once.
template <typename T>
Result<Matrix> MultiplyBlocks(const Matrix& x, const Matrix& m, const KernelContext& context) {
  const TileDecoder<T> decoder(x);
  const int64_t n = x.columns(), k = m.columns();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), k, x.element_type()));
  const PackedRightOf<T> packed(m.data<T>(), n, k);
  ParallelFor(CeilDivide(x.rows(), kBlockRows), 1, [&](int64_t begin, int64_t end) {
    typename TileDecoder<T>::Cursor cursor;
    AlignedArray room(kBlockRows * n);
    T* const cells = reinterpret_cast<T*>(room.data());
    for (int64_t block = begin; block < end && !IsCancelled(context.cancelled); ++block) {
      const int64_t row = block * kBlockRows, rows = std::min(kBlockRows, x.rows() - row);
      decoder.Decode(&cursor, row, row + rows, cells);
      GemmOf<T> product{.m = rows,
                        .n = k,
                        .k = n,
                        .a = cells,
                        .a_row = n,
                        .b = m.data<T>(),
                        .b_row = k,
                        .packed = &packed,
                        .c_row = k};
      WriteCells(result.mutable_data<T>() + row * k, &product);
      Run(product);
    }
  });
  if (IsCancelled(context.cancelled)) return Cancelled("cancelled");
  return result;
}

// The product of two CSR matrices is one.
Result<std::optional<Value>> InFormat(const KernelCall& call, Matrix result) {
  if (call.node.info.format == Format::kSparse) {
    HEDDLE_ASSIGN_OR_RETURN(result, AsSparse(result));
  }
  return std::optional<Value>(std::move(result));
}

}  // namespace

bool SkipsZeros(const KernelCall& call, size_t i) { return call.input_infos[i].format == Format::kSparse; }

bool HasFewEntries(const KernelCall& call) {
  return SkipsZeros(call) && SparseRows(call.inputs[0]->matrix()).HasFewEntries();
}

ExactUnits UnitsOfGroups(const ColumnGroups& groups) {
  ExactUnits units;
  for (const ColumnGroup& group : groups.groups) units = Joined(units, UnitsOf(group));
  return units;
}

bool AddExactlyWith(const ExactUnits& units, const Matrix& cells, double terms) {
  constexpr int64_t kFirst = 256, kTogether = 1 << 15;
  const auto count = static_cast<size_t>(cells.cells());
  const std::span<const double> all(cells.data(), count);
  const auto add_exactly = [&](const ExactUnits& of_cells) {
    return AddExactly(ProductsOf(units, of_cells), terms) && AddExactly(of_cells, terms);
  };
  if (!add_exactly(UnitsOf(all.first(std::min<size_t>(count, kFirst))))) return false;
  std::vector<ExactUnits> parts(static_cast<size_t>(CeilDivide(cells.cells(), kTogether)));
  ParallelFor(static_cast<int64_t>(parts.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part)
      parts[static_cast<size_t>(part)] =
          UnitsOf(all.subspan(static_cast<size_t>(part * kTogether),
                              std::min<size_t>(kTogether, count - static_cast<size_t>(part * kTogether))));
  });
  ExactUnits joined;
  for (const ExactUnits& part : parts) joined = Joined(joined, part);
  return add_exactly(joined);
}

Result<std::optional<Value>> MultiplyCompressed(const KernelCall& call) {
  const Matrix &x = call.inputs[0]->matrix(), &given = call.inputs[1]->matrix();
  const int64_t n = x.columns(), k = given.columns();
  if (!x.IsCompressed()) return MultiplyByCompressed(call);
  if (n != given.rows() || n == 0 || k == 0 || n > kColumnChunk || x.element_type() != given.element_type() ||
      call.node.info.element_type != x.element_type())
    return std::optional<Value>();
  const bool is_narrow = IsNarrow(k);
  // The terms of a cell are cut into panels, or the product of two CSR matrices has few of them.
  if (!is_narrow && (SplitsInner(call.input_infos[0].shape.rows, n, k) || SkipsZeros(call, 1)))
    return std::optional<Value>();
  HEDDLE_ASSIGN_OR_RETURN(const Matrix dense, AsDense(given));
  HEDDLE_ASSIGN_OR_RETURN(Matrix m, Widen(dense));
  Matrix result;
  const bool has_few_groups = kTermsOfLookUp * static_cast<int64_t>(x.groups().groups.size()) <= n;
  // Twice: an exception adds what it has more than the default.
  if ((is_narrow || (has_few_groups && !HoldsSingles(x))) &&
      AddExactlyWith(UnitsOfGroups(x.groups()), m, 2.0 * static_cast<double>(n))) {
    const ExactProduct product(x, m);
    HEDDLE_ASSIGN_OR_RETURN(result,
                            RowsOfResult(x, k, call.context, [&](int64_t begin, int64_t end, double* out) {
                              product.Multiply(begin, end, out);
                            }));
    return InFormat(call, std::move(result));
  }
  if (n > kMostTileColumns || HasFewEntries(call) ||
      (SkipsZeros(call) && !simd::AllFinite(m.data(), m.cells())))
    return std::optional<Value>();
  if (!is_narrow) {
    HEDDLE_ASSIGN_OR_RETURN(result, HoldsSingles(x) ? MultiplyBlocks<float>(x, dense, call.context)
                                                    : MultiplyBlocks<double>(x, dense, call.context));
  } else if (MultipliesByColumns(x, k)) {
    HEDDLE_ASSIGN_OR_RETURN(result, Matrix::Dense(x.rows(), k));
    MultiplyByColumns(x, m, call.context, result.mutable_data());
    if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  } else if (HoldsSingles(x)) {
    HEDDLE_ASSIGN_OR_RETURN(result, MultiplyTiles<float>(x, std::move(m), call.context));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(result, MultiplyTiles<double>(x, std::move(m), call.context));
  }
  return InFormat(call, std::move(result));
}

}  // namespace heddle::ops
