// SPDX-License-Identifier: Apache-2.0
// t(X) %*% X of a compressed X whose sums are exact. A column is its least value and a unit times whole
// numbers from 0 on, of seven bits each: planes of bytes. What is added up are products of bytes, the sums of
// planes (their products with a plane of ones) and the number of rows; 64-bit numbers put that together.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/cells/code_units.h"
#include "ops/cells/decode_sparse.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/compressed_products.h"
#include "ops/product/matmul_gemm.h"
#include "ops/simd/codes/codes.h"
#include "ops/simd/product/byte_products.h"
#include "ops/simd/product/gemm.h"

namespace heddle::ops {
namespace {

constexpr int kPlaneBits = 7;
constexpr int64_t kPlaneMask = (1 << kPlaneBits) - 1;
// With more planes products of doubles are as fast, which have fewer instructions for bytes on other CPUs.
constexpr double kMostPlanesOfColumn = 2, kMostPlanesOfColumnAvx2 = 1.3;
constexpr int64_t kMostPlanes = 2048;
// So many products of bytes take as long as one of entries of CSR rows.
constexpr double kProductsOfEntries = 64;
// Bytes of the planes of a tile: two blocks of them stay in the first-level cache, all in the second.
constexpr int64_t kTileBytes = 1 << 18;

// One plane of a column: the byte of each tuple.
struct Plane {
  std::vector<uint8_t> bytes;  // Zeros up to a multiple of 16.
};

struct Column {
  int exponent = 0;    // Of its unit.
  int64_t least = 0;   // In units.
  int64_t first = 0;   // Of its planes.
  int64_t planes = 0;  // None: all cells are the least.
};

struct GroupOfPlanes {
  const ColumnGroup* group;
  int64_t first;  // Of its planes, which follow each other.
  std::vector<Plane> planes;
};

class ByteColumns {
 public:
  explicit ByteColumns(const Matrix& x) : x_(x), columns_(static_cast<size_t>(x.columns())) {}

  // False where sums of `rows` rows might be rounded, or another product is faster.
  bool Prepare(double rows, bool of_singles, bool skips_zeros) {
    if (x_.columns() > kMostTileColumns) return false;
    std::vector<ExactUnits> units(columns_.size());
    for (const ColumnGroup& group : x_.groups().groups)
      for (int64_t k = 0; k < group.width(); ++k)
        units[static_cast<size_t>(group.columns[static_cast<size_t>(k)])] = UnitsOfColumn(group, k);
    for (size_t i = 0; i < units.size(); ++i)
      for (size_t j = i; j < units.size(); ++j) {
        const ExactUnits products = ProductsOf(units[i], units[j]);
        if (!AddExactly(products, rows)) return false;
        if (of_singles && !AddExactly(products, static_cast<double>(kSingleBlock), kFloatDigits))
          return false;
      }
    for (const ColumnGroup& group : x_.groups().groups) {
      if (group.encoding == Encoding::kEmpty) continue;
      HoldsSingles(group.dictionary) ? AddGroup<float>(group, units) : AddGroup<double>(group, units);
    }
    const auto planes = static_cast<double>(planes_), entries = SparseRows(x_).EntriesOfRow();
    const bool is_wide = &simd::SelectedByteProducts() == &simd::kByteProductsVnni;
    const double most = is_wide ? kMostPlanesOfColumn : kMostPlanesOfColumnAvx2;
    return planes_ <= kMostPlanes && planes <= most * static_cast<double>(x_.columns()) + 8 &&
           (!skips_zeros || planes * planes <= kProductsOfEntries * entries * entries);
  }

  // The cells of t(X) %*% X of rows [begin, end), all of them.
  void Multiply(int64_t begin, int64_t end, const KernelContext& context, double* cells) const {
    const simd::ByteProductKernel& kernel = simd::SelectedByteProducts();
    const int64_t blocks = CeilDivide(planes_ + 1, kernel.side), block_cells = kernel.side * kernel.side;
    std::vector<int64_t> sums(static_cast<size_t>(blocks * (blocks + 1) / 2 * block_cells), 0);
    const int64_t height = std::clamp<int64_t>(FloorPowerOfTwo(kTileBytes / (blocks * kernel.side)),
                                               8 * simd::kByteRows, simd::kMostByteRows);
    const int64_t grain =
        CeilDivide(CeilDivide(end - begin, 4 * int64_t{ParallelThreads()}), height) * height;
    std::mutex joining;
    ParallelFor(end - begin, std::max(grain, height), [&](int64_t from, int64_t to) {
      std::vector<int64_t> own(sums.size(), 0);
      std::vector<uint8_t> planes(static_cast<size_t>(blocks * kernel.side * height));
      for (int64_t row = from; row < to && !IsCancelled(context.cancelled); row += height)
        AddTile(kernel, begin + row, begin + std::min(to, row + height), height, planes.data(), own.data());
      const std::lock_guard lock(joining);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += own[i];
    });
    WriteCells(
        [&](int64_t i, int64_t j) {
          const int64_t a = i / kernel.side, b = j / kernel.side;
          const int64_t block = a * blocks - a * (a - 1) / 2 + b - a;
          return sums[static_cast<size_t>(block * block_cells + i % kernel.side * kernel.side +
                                          j % kernel.side)];
        },
        end - begin, cells);
  }

 private:
  template <typename T>
  void AddGroup(const ColumnGroup& group, const std::vector<ExactUnits>& units) {
    GroupOfPlanes of{&group, planes_, {}};
    const int64_t tuples = group.tuples();
    std::vector<int64_t> numbers(static_cast<size_t>(tuples));
    for (int64_t k = 0; k < group.width(); ++k) {
      const auto j = static_cast<size_t>(group.columns[static_cast<size_t>(k)]);
      Column& column = columns_[j];
      column.exponent = units[j].most == 0 ? 0 : units[j].exponent;
      for (int64_t t = 0; t < tuples; ++t)
        numbers[static_cast<size_t>(t)] = WholeNumber(
            static_cast<double>(group.dictionary.data<T>()[t * group.width() + k]), column.exponent);
      const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
      column.least = tuples == 0 ? 0 : *least;
      const int64_t span = tuples == 0 ? 0 : *most - *least;
      column.first = planes_;
      for (int bits = 0; span >> bits != 0; bits += kPlaneBits) {
        Plane plane{std::vector<uint8_t>(static_cast<size_t>(CeilDivide(tuples, 16) * 16), 0)};
        for (int64_t t = 0; t < tuples; ++t)
          plane.bytes[static_cast<size_t>(t)] =
              static_cast<uint8_t>((numbers[static_cast<size_t>(t)] - column.least) >> bits & kPlaneMask);
        of.planes.push_back(std::move(plane));
        ++planes_;
      }
      column.planes = planes_ - column.first;
    }
    if (!of.planes.empty()) groups_.push_back(std::move(of));
  }

  // cell * 2^-exponent, below 2^53.
  static int64_t WholeNumber(double cell, int exponent) {
    const int half = -exponent / 2;
    return static_cast<int64_t>(std::ldexp(std::ldexp(cell, half), -exponent - half));
  }

  // Rows of this matrix, as bytes, at most `height`, times each other.
  void AddTile(const simd::ByteProductKernel& kernel, int64_t begin, int64_t end, int64_t height,
               uint8_t* planes, int64_t* sums) const {
    const int64_t rows = end - begin, padded = CeilDivide(rows, simd::kByteRows) * simd::kByteRows;
    for (const GroupOfPlanes& group : groups_)
      WritePlanes(group, x_.first_row() + begin, x_.first_row() + end, height, planes);
    for (int64_t p = 0; p < planes_; ++p)
      std::memset(planes + p * height + rows, 0, static_cast<size_t>(padded - rows));
    std::memset(planes + planes_ * height, 1, static_cast<size_t>(rows));
    std::memset(planes + planes_ * height + rows, 0, static_cast<size_t>(padded - rows));
    const int64_t blocks = CeilDivide(planes_ + 1, kernel.side);
    for (int64_t a = 0; a < blocks; ++a)
      for (int64_t b = a; b < blocks; ++b, sums += kernel.side * kernel.side)
        kernel.add(planes + a * kernel.side * height, planes + b * kernel.side * height, height, padded,
                   sums);
  }

  static void WritePlanes(const GroupOfPlanes& of, int64_t begin, int64_t end, int64_t height,
                          uint8_t* planes) {
    const ColumnGroup& group = *of.group;
    const auto count = static_cast<int64_t>(of.planes.size());
    uint8_t* const first = planes + of.first * height;
    if (group.encoding == Encoding::kDenseCodes) {
      for (int64_t p = 0; p < count; ++p)
        WriteCodes(group.codes, of.planes[static_cast<size_t>(p)], group.tuples(), begin, end,
                   first + p * height);
      return;
    }
    const auto write = [&](int64_t from, int64_t to, uint32_t code) {
      for (int64_t p = 0; p < count; ++p)
        std::memset(first + p * height + (from - begin), of.planes[static_cast<size_t>(p)].bytes[code],
                    static_cast<size_t>(to - from));
    };
    if (group.encoding == Encoding::kConstant) return write(begin, end, 0);
    GroupPlace place = PlaceOfRow(group, begin);
    if (group.encoding == Encoding::kRuns) return VisitRuns(group, begin, end, &place, write);
    write(begin, end, 0);
    VisitExceptions(group, begin, end, &place, [&](int64_t row, uint32_t code) {
      for (int64_t p = 0; p < count; ++p)
        first[p * height + (row - begin)] = of.planes[static_cast<size_t>(p)].bytes[code];
    });
  }

  static void WriteCodes(const Codes& codes, const Plane& plane, int64_t tuples, int64_t begin, int64_t end,
                         uint8_t* out) {
    const uint8_t* const bytes = plane.bytes.data();
    switch (codes.bits()) {
      case 4: return LookUpFourBits(codes, bytes, begin, end, out);
      case 8: return simd::LookUpBytes(codes.data() + begin, end - begin, bytes, tuples, out);
      default: {
        const auto* const wide = reinterpret_cast<const uint16_t*>(codes.data()) + begin;
        for (int64_t i = 0; i < end - begin; ++i) out[i] = bytes[wide[i]];
      }
    }
  }

  static void LookUpFourBits(const Codes& codes, const uint8_t* bytes, int64_t begin, int64_t end,
                             uint8_t* out) {
    simd::FourBits part{codes.data(), {}};
    std::copy_n(bytes, part.bytes.size(), part.bytes.data());
    // The first of two codes in a byte may be that of another row.
    if (begin < end && begin % 2 != 0) *out++ = bytes[codes.At(begin++)];
    simd::AddFourBits({&part, 1}, begin, end - begin, out);
  }

  // sum(p, q): what has been added up for planes p <= q.
  template <typename Sum>
  void WriteCells(const Sum& sum, int64_t rows, double* cells) const {
    const int64_t n = x_.columns();
    std::vector<int64_t> totals(columns_.size(), 0);  // Of a column, in units from the least on.
    for (size_t j = 0; j < columns_.size(); ++j)
      for (int64_t p = 0; p < columns_[j].planes; ++p)
        totals[j] += sum(columns_[j].first + p, planes_) << (kPlaneBits * p);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i; j < n; ++j) {
        const Column &a = columns_[static_cast<size_t>(i)], &b = columns_[static_cast<size_t>(j)];
        int64_t cell = rows * a.least * b.least + a.least * totals[static_cast<size_t>(j)] +
                       b.least * totals[static_cast<size_t>(i)];
        for (int64_t p = 0; p < a.planes; ++p)
          for (int64_t q = 0; q < b.planes; ++q)
            cell += sum(std::min(a.first + p, b.first + q), std::max(a.first + p, b.first + q))
                    << (kPlaneBits * (p + q));
        cells[i * n + j] = cells[j * n + i] = std::ldexp(static_cast<double>(cell), a.exponent + b.exponent);
      }
  }

  const Matrix& x_;
  std::vector<Column> columns_;
  std::vector<GroupOfPlanes> groups_;
  int64_t planes_ = 0;  // Behind them is one of ones.
};

}  // namespace

Result<std::optional<Value>> MultiplyByteColumns(const KernelCall& call, const TransposedOrder& order) {
  if (order.accumulation == Accumulation::kLanes && call.phase != Phase::kWhole)
    return std::optional<Value>();
  if (order.m == 0) return std::optional<Value>();
  ByteColumns columns(call.inputs[0]->matrix());
  if (!columns.Prepare(static_cast<double>(order.m), order.single, SkipsZeros(call)))
    return std::optional<Value>();
  HEDDLE_ASSIGN_OR_RETURN(Value result,
                          ExactSums(call, order, [&](int64_t begin, int64_t end, double* cells) {
                            columns.Multiply(begin, end, call.context, cells);
                          }));
  return std::optional<Value>(std::move(result));
}

}  // namespace heddle::ops
