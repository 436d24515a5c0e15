// SPDX-License-Identifier: Apache-2.0
// Products of compressed matrices have the bytes of those of dense and CSR ones.
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>

#include "core/values/panels.h"
#include "ops/base/cpu.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"
#include "ops/product/compressed_products.h"
#include "ops/simd/product/byte_products.h"
#include "tests/unit/ops/compressed/encoded.h"

namespace heddle::ops::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of a product, whose right operand may be the left one.
class ProductCall {
 public:
  ProductCall(std::string op, Matrix x, std::optional<Matrix> y) : op_(FindOperator(op)) {
    node_.op = std::move(op);
    node_.inputs = {0, y ? 1 : 0};
    infos_.assign(2, ValueInfo::OfMatrix(x.shape(), FormatOf(x.storage())));
    if (y) infos_[1] = ValueInfo::OfMatrix(y->shape(), FormatOf(y->storage()));
    for (ValueInfo& info : infos_) info.element_type = x.element_type();
    node_.info = *op_->infer({.node = node_, .inputs = infos_, .scalars = {}});
    node_.info.element_type = x.element_type();
    whole_ = {Value(x), Value(y ? *y : x)};
    rows_ = x.rows();
  }

  /// As `run` makes it of the operands as they are.
  Matrix Expected() {
    const Value* const inputs[] = {&whole_[0], &whole_[1]};
    return CatalogKernels().Run(Whole(inputs))->matrix();
  }
  /// From codes, with `x` in the place of X (and of Y, if that is X).
  Result<std::optional<Value>> Compressed(const Matrix& x) {
    const Value left(x), right(IsSquare() ? x : whole_[1].matrix());
    const Value* const inputs[] = {&left, &right};
    return op_->run_compressed(Whole(inputs));
  }
  /// With `x` and `y` in the place of both.
  Result<std::optional<Value>> CompressedBoth(const Matrix& x, const Matrix& y) {
    const Value left(x), right(y);
    const Value* const inputs[] = {&left, &right};
    return op_->run_compressed(Whole(inputs));
  }
  /// With `y` in the place of the right operand.
  Result<std::optional<Value>> CompressedRight(const Matrix& y) {
    const Value right(y);
    const Value* const inputs[] = {&whole_[0], &right};
    return op_->run_compressed(Whole(inputs));
  }
  /// A reduction of several workers, some of which have compressed rows, and others have not.
  Matrix OfWorkers(const Matrix& x, int workers) {
    std::vector<Matrix> lists;
    int64_t count = 0;
    for (int worker = 0; worker < workers; ++worker) {
      const int64_t begin = CutRow(rows_, worker, workers), end = CutRow(rows_, worker + 1, workers);
      const Matrix& all = worker % 2 == 0 ? x : whole_[0].matrix();
      const Value left(all.Rows(begin, end));
      const Value right((IsSquare() ? all : whole_[1].matrix()).Rows(begin, end));
      const Value* const inputs[] = {&left, &right};
      lists.push_back(CatalogKernels()
                          .Run({.node = node_,
                                .phase = Phase::kPartial,
                                .inputs = inputs,
                                .input_infos = infos_,
                                .row_begin = begin,
                                .row_end = end,
                                .total_rows = rows_,
                                .context = context_})
                          ->matrix());
      count += lists.back().rows();
    }
    Matrix nodes = *Matrix::Dense(count, lists[0].columns());
    double* to = nodes.mutable_data();
    for (const Matrix& list : lists) to = std::copy_n(list.data(), list.cells(), to);
    const Value list(nodes);
    const Value* const inputs[] = {&list};
    return CatalogKernels()
        .Run({.node = node_,
              .phase = Phase::kFinish,
              .inputs = inputs,
              .input_infos = infos_,
              .total_rows = rows_,
              .context = context_})
        ->matrix();
  }
  bool IsReduced() const { return node_.op == "t%*%"; }

 private:
  bool IsSquare() const { return node_.inputs[0] == node_.inputs[1]; }
  KernelCall Whole(std::span<const Value* const> inputs) {
    return {.node = node_,
            .phase = Phase::kWhole,
            .inputs = inputs,
            .input_infos = infos_,
            .row_end = rows_,
            .total_rows = rows_,
            .context = context_};
  }

  const Operator* op_;
  Node node_;
  std::vector<ValueInfo> infos_;
  std::vector<Value> whole_;
  int64_t rows_ = 0;
  KernelContext context_;
};

// Every way to store x gives the bytes of dense x, on one and two threads, and each CPU; `takes`: the call
// must not be left to decoded rows.
void ExpectSame(const std::string& op, const Matrix& x, const std::optional<Matrix>& y, bool takes,
                const std::vector<Matrix>& stored) {
  SCOPED_TRACE(::testing::Message() << op << " of " << x.rows() << "x" << x.columns() << ", "
                                    << (y ? y->columns() : x.columns()) << " columns");
  ProductCall call(op, x, y);
  const Matrix expected = call.Expected();
  for (const Matrix& compressed : stored) {
    for (const Cpu cpu : {Cpu::kAvx2, Cpu::kAvx512}) {
      if (!IsSupported(cpu)) continue;
      ASSERT_TRUE(ForceCpu(cpu).ok());
      for (const int threads : {1, 2})
        Arena(threads).Execute([&] {
          const Result<std::optional<Value>> result = call.Compressed(compressed);
          ASSERT_TRUE(result.ok()) << result.status().ToString();
          ASSERT_TRUE(!takes || *result) << "left to decoded rows";
          if (!*result) return;
          EXPECT_TRUE(Matrix::SameCells((*result)->matrix(), expected));
          EXPECT_EQ((*result)->matrix().storage(), expected.storage());
          EXPECT_EQ((*result)->matrix().element_type(), expected.element_type());
        });
    }
    ASSERT_TRUE(ForceCpu("auto").ok());
    for (const int workers : {2, 3}) {
      if (!call.IsReduced()) break;
      EXPECT_TRUE(Matrix::SameCells(call.OfWorkers(compressed, workers), expected)) << workers << " workers";
    }
    if (::testing::Test::HasFailure()) return;
  }
}

std::vector<Matrix> Stored(const Matrix& x) {
  return {EncodedMatrix(x, MixedGroups(x.columns(), true)), EncodedMatrix(x, MixedGroups(x.columns(), false)),
          EncodedMatrix(x, SingleGroups(x.columns(), Encoding::kDenseCodes))};
}

double Quarters(int64_t number) { return static_cast<double>(number - 1) / 4; }
double Thirds(int64_t number) { return static_cast<double>(number - 1) / 3; }
double NegativeZeros(int64_t number) { return number == 0 ? -0.0 : static_cast<double>(number); }
double Specials(int64_t number) {
  return number == 1 ? std::nan("") : number == 2 ? -kInfinity : number == 0 ? -0.0 : 0.1;
}

Matrix Filled(int64_t rows, int64_t columns, const std::function<double(int64_t)>& cell,
              ElementType type = ElementType::kFloat64) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < matrix.cells(); ++i) matrix.mutable_data()[i] = cell(i);
  return *ToElementType(matrix, type);
}
double WholeNumbers(int64_t i) { return static_cast<double>(Drawn(i, 21)) - 10; }
double Fractions(int64_t i) { return std::sin(static_cast<double>(i)); }

const std::vector<Shape> kShapes = {{1, 1},     {3, 2},     {9, 7},      {100, 8},   {65, 9},
                                    {1000, 13}, {4100, 21}, {66'000, 3}, {4099, 40}, {300, 130}};

void ExpectSameWithFew(const std::string& op, const std::vector<int64_t>& widths) {
  for (const auto& [m, n] : kShapes)
    for (const auto& value : {Quarters, Thirds, NegativeZeros, Specials})
      for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
        const Matrix x = FewDifferent(m, n, value, type);
        const std::vector<Matrix> stored = Stored(x);
        for (const int64_t k : widths)
          for (const auto& cell : {WholeNumbers, Fractions})
            ExpectSame(op, x, Filled(op == "%*%" ? n : m, k, cell, type), true, stored);
        if (::testing::Test::HasFailure()) return;
      }
}

// Columns of which eight are looked up together.
TEST(CompressedProductTest, OfColumnsWithFewTuples) {
  const Matrix x = FewDifferent(5000, 21, [](int64_t number) { return static_cast<double>(number % 7) / 3; });
  const std::vector<Matrix> stored = {EncodedMatrix(x, SingleGroups(21, Encoding::kDenseCodes), 0),
                                      EncodedMatrix(x, SingleGroups(21, Encoding::kDenseCodes), 3)};
  for (const int64_t k : {1, 4, 20}) {
    ExpectSame("%*%", x, Filled(21, k, Fractions), true, stored);
    ExpectSame("t%*%", x, Filled(5000, k, Fractions), true, stored);
  }
}

TEST(CompressedProductTest, WithFewColumns) { ExpectSameWithFew("%*%", {1, 2, 3, 8}); }
TEST(CompressedProductTest, OfTheTransposed) { ExpectSameWithFew("t%*%", {1, 2, 8}); }

TEST(CompressedProductTest, WithManyColumnsWhereItIsExact) {
  // Columns of a few groups, so that there are few additions for a row.
  for (const int64_t k : {9, 33, 100}) {
    const Matrix x = FewDifferent(5000, 24, NegativeZeros);
    std::vector<EncodedGroup> plan;
    for (int32_t j = 0; j < 24; j += 8) {
      plan.push_back({});
      for (int32_t i = 0; i < 8; ++i) plan.back().columns.push_back(j + i);
    }
    ExpectSame("%*%", x, Filled(24, k, WholeNumbers), true, {EncodedMatrix(x, plan)});
  }
}

TEST(CompressedProductTest, WithManyColumns) {
  for (const auto& [m, n] : kShapes)
    for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
      const Matrix x = FewDifferent(m, n, Thirds, type);
      const std::vector<Matrix> stored = Stored(x);
      for (const int64_t k : {9, 13, 40, 130})
        ExpectSame("%*%", x, Filled(n, k, Fractions, type), true, stored);
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(CompressedProductTest, OfTheTransposedWithManyColumns) {
  for (const auto& [m, n] : kShapes)
    for (const auto& value : {Quarters, Specials}) {
      const Matrix x = FewDifferent(m, n, value);
      const std::vector<Matrix> stored = Stored(x);
      for (const int64_t k : {9, 33}) ExpectSame("t%*%", x, Filled(m, k, Fractions), true, stored);
      if (::testing::Test::HasFailure()) return;
    }
}

// Rows of X that are weighted: X is on the right.
TEST(CompressedProductTest, OfAFewRows) {
  for (const auto& [m, n] : kShapes)
    for (const auto& value : {Quarters, Thirds, NegativeZeros, Specials}) {
      if (IsNarrow(n)) continue;
      const Matrix x = FewDifferent(m, n, value);
      for (const Matrix& stored : Stored(x))
        for (const int64_t k : {1, 3, 8})
          for (const auto& cell : {WholeNumbers, Fractions})
            for (const std::string op : {"%*%", "t%*%"}) {
              ProductCall call(op, op == "%*%" ? Filled(k, m, cell) : Filled(m, k, cell), x);
              const Result<std::optional<Value>> result = call.CompressedRight(stored);
              ASSERT_TRUE(result.ok() && *result) << op;
              EXPECT_TRUE(Matrix::SameCells((*result)->matrix(), call.Expected()))
                  << op << " of " << m << "x" << n << ", k = " << k;
            }
    }
  // The inner dimension is cut into panels.
  const Matrix x = FewDifferent(70'000, 9, Thirds);
  ProductCall call("%*%", Filled(2, 70'000, Fractions), x);
  const Result<std::optional<Value>> result = call.CompressedRight(EncodedMatrix(x, MixedGroups(9, true)));
  ASSERT_TRUE(result.ok() && *result);
  EXPECT_TRUE(Matrix::SameCells((*result)->matrix(), call.Expected()));
}

// Rows of X that a sparse matrix picks and adds up.
TEST(CompressedProductTest, OfRowsThatAreLookedUp) {
  for (const auto& [m, n] : {Shape{70'000, 9}, Shape{4100, 21}, Shape{70'000, 3}})
    for (const auto& value : {Quarters, Thirds, Specials}) {
      const Matrix x = FewDifferent(m, n, value);
      Matrix picks = *Matrix::Sparse(30, m, 40);
      for (int64_t i = 0, at = 0; i <= 30; ++i) {
        picks.mutable_row_offsets()[i] = at;
        for (int64_t k = 0; k < (i == 30 ? 0 : i % 3 == 0 ? 2 : 1); ++k, ++at) {
          picks.mutable_column_indexes()[at] = static_cast<int32_t>((7919 * i) % (m / 2) + k * (m / 2));
          picks.mutable_values()[at] = 1.0 / static_cast<double>(i + 1 + k);
        }
      }
      ProductCall call("%*%", picks, x);
      for (const Matrix& stored : Stored(x)) {
        const Result<std::optional<Value>> result = call.CompressedRight(stored);
        ASSERT_TRUE(result.ok());
        ASSERT_EQ(result->has_value(), n > 8);  // Narrow products turn their right operand around.
        if (*result) {
          EXPECT_TRUE(Matrix::SameCells((*result)->matrix(), call.Expected())) << m << "x" << n;
        }
      }
    }
}

// Two compressed matrices, and dense ones with whole numbers of up to seven bits on either side.
TEST(CompressedProductTest, OfTheTransposedAndBytes) {
  const auto byte = [](int64_t i) { return static_cast<double>(Drawn(i, 128)); };
  const auto dummy = [](int64_t i) { return Drawn(i, 5) == 0 ? 1.0 : -0.0; };
  const auto whole = [](int64_t i) { return static_cast<double>(Drawn(i, 1000)) - 3; };
  for (const auto& [m, n] : kShapes)
    for (const int64_t k : {1, 5, 12}) {
      const Matrix x = FewDifferent(m, n, Quarters), other = FewDifferent(m, k, whole);
      const std::vector<Matrix> stored = Stored(x), others = Stored(other);
      ProductCall both("t%*%", x, other);
      for (size_t i = 0; i < stored.size(); ++i) {
        const Result<std::optional<Value>> result = both.CompressedBoth(stored[i], others[i]);
        ASSERT_TRUE(result.ok() && *result);
        EXPECT_TRUE(Matrix::SameCells((*result)->matrix(), both.Expected())) << m << "x" << n << ", " << k;
      }
      for (const auto& cell : std::vector<std::function<double(int64_t)>>{byte, dummy}) {
        Matrix y = Filled(m, k, cell);
        ExpectSame("t%*%", x, y, true, {stored[0], stored[2]});
        if (m > 4000) y.mutable_data()[(m - 1) * k] = 0.5;  // Seen in the last tile.
        ExpectSame("t%*%", x, y, true, {stored[2]});
        ProductCall weighted("t%*%", y, x);
        for (const Matrix& right : stored) {
          const Result<std::optional<Value>> result = weighted.CompressedRight(right);
          ASSERT_TRUE(result.ok());
          if (!*result) continue;
          EXPECT_TRUE(Matrix::SameCells((*result)->matrix(), weighted.Expected()))
              << m << "x" << n << ", " << k;
        }
      }
      if (::testing::Test::HasFailure()) return;
    }
  // Sums of such a product are rounded.
  const Matrix x = FewDifferent(4500, 12, [](int64_t number) { return std::ldexp(number % 8 + 1, 47); });
  for (const Matrix& stored : Stored(x)) {
    ProductCall large("t%*%", Filled(4500, 5, byte), x);
    const Result<std::optional<Value>> result = large.CompressedRight(stored);
    ASSERT_TRUE(result.ok() && *result);
    EXPECT_TRUE(Matrix::SameCells((*result)->matrix(), large.Expected()));
  }
}

// Views of no rows: every chain is empty.
TEST(CompressedProductTest, OfNoRows) {
  const Matrix some = FewDifferent(40, 12, [](int64_t number) { return static_cast<double>(number) / 3; });
  const Matrix x = EncodedMatrix(some, MixedGroups(12, true)).Rows(0, 0);
  const Matrix none = *Matrix::Dense(0, 12), v = *Matrix::Dense(3, 0), w = *Matrix::Dense(0, 3);
  ProductCall right("%*%", v, none);
  const Result<std::optional<Value>> product = right.CompressedRight(x);
  ASSERT_TRUE(product.ok()) << product.status().ToString();
  if (*product) {
    EXPECT_TRUE(Matrix::SameCells((*product)->matrix(), right.Expected()));
  }
  ProductCall left("t%*%", none, w);
  const Result<std::optional<Value>> transposed = left.Compressed(x);
  ASSERT_TRUE(transposed.ok()) << transposed.status().ToString();
  if (*transposed) {
    EXPECT_TRUE(Matrix::SameCells((*transposed)->matrix(), left.Expected()));
  }
}

TEST(CompressedProductTest, InfiniteFactorsMeetZeros) {
  const auto infinite = [](int64_t i) { return i % 3 == 1 ? kInfinity : static_cast<double>(i % 5); };
  const Matrix x = FewDifferent(4500, 12, Quarters);
  ExpectSame("%*%", x, Filled(12, 2, infinite), true, Stored(x));
  ExpectSame("%*%", x, Filled(12, 20, infinite), true, Stored(x));
  ExpectSame("t%*%", x, Filled(4500, 2, infinite), true, Stored(x));
  // CSR leaves out 0 * Infinity.
  const Matrix sparse = *ToSparse(x);
  for (const std::string op : {"%*%", "t%*%"}) {
    ProductCall call(op, sparse, Filled(op == "%*%" ? 12 : 4500, 2, infinite));
    EXPECT_FALSE(*call.Compressed(EncodedMatrix(x, MixedGroups(12, true))));
    ProductCall finite(op, sparse, Filled(op == "%*%" ? 12 : 4500, 2, Fractions));
    const Result<std::optional<Value>> result = finite.Compressed(EncodedMatrix(x, MixedGroups(12, true)));
    ASSERT_TRUE(result.ok() && *result);
    EXPECT_TRUE(Matrix::SameCells((*result)->matrix(), finite.Expected()));
  }
}

TEST(CompressedProductTest, OfTheTransposedAndItself) {
  for (const auto& [m, n] : kShapes) {
    for (const auto& value : {Quarters, NegativeZeros})
      for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
        // Chains of 64 floats of larger numbers are rounded.
        const bool is_exact = type == ElementType::kFloat64 || n <= 8;
        const Matrix x = FewDifferent(m, n, value, type);
        ExpectSame("t%*%", x, {}, is_exact, Stored(x));
      }
    for (const auto& value : {Thirds, Specials}) {
      const Matrix x = FewDifferent(m, n, value);
      ExpectSame("t%*%", x, {}, true, Stored(x));
    }
    if (::testing::Test::HasFailure()) return;
  }
  const auto few = [](int64_t number) { return static_cast<double>(number % 4); };
  const Matrix x = FewDifferent(5000, 12, few, ElementType::kFloat32);
  ExpectSame("t%*%", x, {}, true, Stored(x));
}

// Numbers of several planes, below and above zero, with units that differ by column.
TEST(CompressedProductTest, OfTheTransposedAndItselfOfLargeNumbers) {
  for (const int64_t m : {100, 6000}) {
    Matrix x = FewDifferent(m, 10, [](int64_t number) { return static_cast<double>(number % 6); });
    for (int64_t i = 0; i < m; ++i) {
      double* const row = x.mutable_data() + i * 10;
      row[0] = 200'101 + static_cast<double>(i / 100);  // A date.
      row[3] = std::ldexp(row[3] - 20, -30);
      row[4] = 1000 * (row[4] - 150);
      row[7] = -7;
    }
    ExpectSame("t%*%", x, {}, true, Stored(x));
    x.mutable_data()[0] = 1e12;  // Its square is more than 2^53.
    ExpectSame("t%*%", x, {}, true, Stored(x));
  }
}

TEST(CompressedProductTest, RowsOfFewEntriesAreLeftToCsr) {
  const Matrix x = Filled(8000, 300, [](int64_t i) { return Drawn(i, 150) == 0 ? 1.0 : 0.0; });
  const Matrix stored = EncodedMatrix(x, SingleGroups(300, Encoding::kDefault), 0);
  ProductCall call("t%*%", *ToSparse(x), {});
  EXPECT_FALSE(*call.Compressed(stored));
  EXPECT_TRUE(*call.Compressed(EncodedMatrix(x, SingleGroups(300, Encoding::kDenseCodes), 0)));
  // A dense product has as many terms for a zero as for any other cell.
  ExpectSame("t%*%", x, {}, true, {stored});
}

TEST(ByteProductsTest, BytesAreWholeNumbersOfSevenBits) {
  std::vector<double> cells(37);
  std::vector<uint8_t> bytes(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<double>(7 * i % 128);
  cells[3] = -0.0;
  cells[4] = 127;
  ASSERT_TRUE(simd::ToBytes(cells.data(), 37, bytes.data()));
  for (size_t i = 0; i < cells.size(); ++i) EXPECT_EQ(bytes[i], cells[i]) << i;
  for (const double other : {128.0, -1.0, 0.5, 126.999, 4294967296.0, -2147483648.0, 1e300, kInfinity,
                             -kInfinity, std::nan("")})
    for (const size_t place : {0, 17, 31, 32, 36}) {
      std::vector<double> changed = cells;
      changed[place] = other;
      EXPECT_FALSE(simd::ToBytes(changed.data(), 37, bytes.data())) << other << " at " << place;
    }
}

TEST(ByteProductsTest, AreThoseOfWholeNumbers) {
  for (const simd::ByteProductKernel* kernel : {&simd::kByteProductsAvx2, &simd::kByteProductsVnni}) {
    if (kernel == &simd::kByteProductsVnni &&
        (!IsSupported(Cpu::kAvx512) || !__builtin_cpu_supports("avx512vnni")))
      continue;
    const int64_t side = kernel->side, rows = simd::kMostByteRows;
    std::vector<uint8_t> a(static_cast<size_t>(side * rows), 127), b = a;
    for (size_t i = 0; i < a.size() / 2; ++i) {
      a[i] = static_cast<uint8_t>(Drawn(static_cast<int64_t>(i), 128));
      b[i] = static_cast<uint8_t>(Drawn(static_cast<int64_t>(i) + 5, 128));
    }
    std::vector<int64_t> sums(static_cast<size_t>(side * side), 1);
    kernel->add(a.data(), b.data(), rows, rows, sums.data());
    for (int64_t i = 0; i < side; ++i)
      for (int64_t j = 0; j < side; ++j) {
        int64_t sum = 1;
        for (int64_t r = 0; r < rows; ++r)
          sum += int64_t{a[static_cast<size_t>(i * rows + r)]} * b[static_cast<size_t>(j * rows + r)];
        EXPECT_EQ(sums[static_cast<size_t>(i * side + j)], sum) << i << " " << j;
      }
  }
}

}  // namespace
}  // namespace heddle::ops::testing
