// SPDX-License-Identifier: Apache-2.0
// t(X) %*% Y whose sums are exact, one or both of which are compressed: columns are planes of bytes
// (byte_planes.h), and what is added up are products of planes. 64-bit numbers put digits, least values and
// units together.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/cells/decode_sparse.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/byte_planes.h"
#include "ops/product/compressed_products.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/product/byte_products.h"
#include "ops/simd/product/gemm.h"

namespace heddle::ops {
namespace {

// With more planes products of doubles are as fast, which have fewer instructions for bytes on other CPUs.
constexpr double kMostPlanesOfColumn = 2, kMostPlanesOfColumnAvx2 = 1.3;
constexpr int64_t kMostPlanes = 2048;
// So many products of bytes take as long as one of entries of CSR rows.
constexpr double kProductsOfEntries = 64;
// Bytes of the planes of a tile: two blocks of them stay in the first-level cache, all in the second.
constexpr int64_t kTileBytes = 1 << 18;

double EntriesOfRow(const Matrix& x) {
  return x.IsCompressed() ? SparseRows(x).EntriesOfRow() : static_cast<double>(x.columns());
}

// t(X) %*% Y; Y may be X.
class ByteProduct {
 public:
  ByteProduct(const Matrix& x, const Matrix& y)
      : kernel_(simd::SelectedByteProducts()), is_square_(x.IsSameView(y)), x_(x), y_(is_square_ ? x : y) {
    for (int64_t a = 0; a < Blocks(x_); ++a)
      for (int64_t b = is_square_ ? a : 0; b < Blocks(y_); ++b) ++blocks_;
  }

  // False where sums of `rows` rows might be rounded, or another product is faster.
  bool IsFaster(const Matrix& x, const Matrix& y, double rows, bool of_singles, bool skips_zeros) const {
    if (!x_.AreExact() || !y_.AreExact()) return false;
    for (size_t i = 0; i < x_.units().size(); ++i)
      for (size_t j = is_square_ ? i : 0; j < y_.units().size(); ++j) {
        const ExactUnits products = ProductsOf(x_.units()[i], y_.units()[j]);
        if (!AddExactly(products, rows)) return false;
        if (of_singles && !AddExactly(products, static_cast<double>(kSingleBlock), kFloatDigits))
          return false;
      }
    const bool is_wide = &kernel_ == &simd::kByteProductsVnni;
    const double most = is_wide ? kMostPlanesOfColumn : kMostPlanesOfColumnAvx2;
    for (const auto* planes : {&x_, &y_})
      if (planes->count() > kMostPlanes ||
          static_cast<double>(planes->count()) > most * static_cast<double>(planes->columns().size()) + 8)
        return false;
    return !skips_zeros || static_cast<double>(x_.count() * y_.count()) <=
                               kProductsOfEntries * EntriesOfRow(x) * EntriesOfRow(y);
  }

  // The cells of rows [begin, end), all of them. False, and something, where those of a dense matrix are no
  // bytes.
  bool Multiply(int64_t begin, int64_t end, const KernelContext& context, double* cells) const {
    const int64_t block_cells = kernel_.side * kernel_.side;
    std::vector<int64_t> sums(static_cast<size_t>(blocks_ * block_cells), 0);
    const int64_t blocks = Blocks(x_) + (is_square_ ? 0 : Blocks(y_));
    const int64_t height =
        std::clamp<int64_t>(FloorPowerOfTwo(kTileBytes / std::max<int64_t>(1, blocks * kernel_.side)),
                            8 * simd::kByteRows, simd::kMostByteRows);
    const int64_t grain =
        CeilDivide(CeilDivide(end - begin, 4 * int64_t{ParallelThreads()}), height) * height;
    std::atomic<bool> are_bytes = true;
    std::mutex joining;
    ParallelFor(end - begin, std::max(grain, height), [&](int64_t from, int64_t to) {
      std::vector<int64_t> own(sums.size(), 0);
      std::vector<uint8_t> planes(static_cast<size_t>(blocks * kernel_.side * height));
      for (int64_t row = from; row < to && are_bytes && !IsCancelled(context.cancelled); row += height)
        if (!AddTile(begin + row, begin + std::min(to, row + height), height, planes.data(), own.data()))
          are_bytes = false;
      const std::lock_guard lock(joining);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += own[i];
    });
    if (are_bytes) WriteCells(sums.data(), end - begin, cells);
    return are_bytes;
  }

 private:
  int64_t Blocks(const BytePlanes& planes) const { return CeilDivide(planes.count(), kernel_.side); }

  // Rows of the matrices, as bytes, at most `height`, times each other.
  bool AddTile(int64_t begin, int64_t end, int64_t height, uint8_t* x_planes, int64_t* sums) const {
    uint8_t* const y_planes = is_square_ ? x_planes : x_planes + Blocks(x_) * kernel_.side * height;
    if (!WriteTile(x_, begin, end, height, x_planes)) return false;
    if (!is_square_ && !WriteTile(y_, begin, end, height, y_planes)) return false;
    const int64_t padded = CeilDivide(end - begin, simd::kByteRows) * simd::kByteRows;
    for (int64_t a = 0; a < Blocks(x_); ++a)
      for (int64_t b = is_square_ ? a : 0; b < Blocks(y_); ++b, sums += kernel_.side * kernel_.side)
        kernel_.add(x_planes + a * kernel_.side * height, y_planes + b * kernel_.side * height, height,
                    padded, sums);
    return true;
  }
  static bool WriteTile(const BytePlanes& of, int64_t begin, int64_t end, int64_t height, uint8_t* planes) {
    if (!of.Write(begin, end, height, planes)) return false;
    const int64_t rows = end - begin, padded = CeilDivide(rows, simd::kByteRows) * simd::kByteRows;
    for (int64_t p = 0; p < of.count(); ++p)
      std::memset(planes + p * height + rows, 0, static_cast<size_t>(padded - rows));
    return true;
  }

  // What has been added up for plane p of X and q of Y.
  int64_t Sum(const int64_t* sums, int64_t p, int64_t q) const {
    if (is_square_ && p > q) std::swap(p, q);
    const int64_t side = kernel_.side, a = p / side, b = q / side;
    const int64_t block = is_square_ ? a * Blocks(x_) - a * (a - 1) / 2 + b - a : a * Blocks(y_) + b;
    return sums[block * side * side + p % side * side + q % side];
  }

  // Of each column of `of`, in units from the least on. sum(p): of the plane with ones of the other matrix.
  template <typename SumOfPlane>
  static std::vector<int64_t> Totals(const BytePlanes& of, const BytePlanes& other, const SumOfPlane& sum) {
    std::vector<int64_t> totals(of.columns().size(), 0);
    for (size_t j = 0; j < totals.size() && other.HasOnes(); ++j)
      for (int64_t p = 0; p < of.columns()[j].planes; ++p)
        totals[j] += sum(of.columns()[j].first + p) << (BytePlanes::kDigitBits * p);
    return totals;
  }

  void WriteCells(const int64_t* sums, int64_t rows, double* cells) const {
    const std::vector<int64_t> x_totals =
        Totals(x_, y_, [&](int64_t p) { return Sum(sums, p, y_.count() - 1); });
    const std::vector<int64_t> y_totals =
        Totals(y_, x_, [&](int64_t q) { return Sum(sums, x_.count() - 1, q); });
    const size_t n = x_.columns().size(), k = y_.columns().size();
    for (size_t i = 0; i < n; ++i)
      for (size_t j = is_square_ ? i : 0; j < k; ++j) {
        const BytePlanes::Column &a = x_.columns()[i], &b = y_.columns()[j];
        int64_t cell = rows * a.least * b.least + a.least * y_totals[j] + b.least * x_totals[i];
        for (int64_t p = 0; p < a.planes; ++p)
          for (int64_t q = 0; q < b.planes; ++q)
            cell += Sum(sums, a.first + p, b.first + q) << (BytePlanes::kDigitBits * (p + q));
        cells[i * k + j] = std::ldexp(static_cast<double>(cell), a.exponent + b.exponent);
        if (is_square_) cells[j * k + i] = cells[i * k + j];
      }
  }

  const simd::ByteProductKernel& kernel_;
  const bool is_square_;
  const BytePlanes x_;
  const BytePlanes y_;
  int64_t blocks_ = 0;  // Of the results.
};

// Whether its columns may be planes, as far as its storage goes.
bool MayBePlanes(const Matrix& x) {
  constexpr int64_t kFirstRows = 64;
  if (x.IsCompressed()) return x.columns() <= kMostTileColumns;
  if (!x.IsDense() || HoldsSingles(x) || x.columns() > kMostPlanes) return false;
  std::vector<uint8_t> planes(static_cast<size_t>(x.columns() * kFirstRows));
  return BytePlanes(x).Write(0, std::min(x.rows(), kFirstRows), kFirstRows, planes.data());
}

}  // namespace

Result<std::optional<Value>> MultiplyByteColumns(const KernelCall& call, const TransposedOrder& order) {
  const Matrix &x = call.inputs[0]->matrix(), &y = call.inputs[1]->matrix();
  if ((order.accumulation == Accumulation::kLanes && call.phase != Phase::kWhole) || order.m == 0 ||
      !MayBePlanes(x) || !MayBePlanes(y))
    return std::optional<Value>();
  const ByteProduct product(x, y);
  if (!product.IsFaster(x, y, static_cast<double>(order.m), order.single,
                        SkipsZeros(call, 0) || SkipsZeros(call, 1)))
    return std::optional<Value>();
  bool are_bytes = true;
  HEDDLE_ASSIGN_OR_RETURN(
      Value result, ExactSums(call, order, [&](int64_t begin, int64_t end, double* cells) {
        are_bytes = are_bytes && product.Multiply(begin, end, call.context, cells);
      }));
  if (!are_bytes) return std::optional<Value>();
  return std::optional<Value>(std::move(result));
}

}  // namespace heddle::ops
