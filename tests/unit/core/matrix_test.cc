// SPDX-License-Identifier: Apache-2.0
#include "core/values/matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace heddle {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Cell (i, j) is 10 i + j where (i + j) is even, else zero.
Matrix Chequered(int64_t rows, int64_t columns, ElementType type = ElementType::kFloat64) {
  Matrix matrix = *Matrix::Dense(rows, columns, type);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      const double value = (i + j) % 2 == 0 ? static_cast<double>(10 * i + j) : 0.0;
      if (type == ElementType::kFloat64)
        matrix.mutable_data()[i * columns + j] = value;
      else
        matrix.mutable_data<float>()[i * columns + j] = static_cast<float>(value);
    }
  return matrix;
}

Matrix Cells(int64_t rows, int64_t columns, std::initializer_list<double> cells) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  std::copy(cells.begin(), cells.end(), matrix.mutable_data());
  return matrix;
}

// One shared pointer beside sizes and pointers into the cells, so that a copy touches one counter.
TEST(MatrixTest, AMatrixFitsInACacheLine) { EXPECT_LE(sizeof(Matrix), 64u); }

TEST(MatrixTest, PartsOfASparseMatrixAreAligned) {
  for (const int64_t entries : {0, 1, 7, 100}) {
    Matrix sparse = *Matrix::Sparse(3, 1000, entries);
    for (const void* part :
         {static_cast<const void*>(sparse.values()), static_cast<const void*>(sparse.column_indexes()),
          static_cast<const void*>(sparse.row_offsets())})
      EXPECT_EQ(reinterpret_cast<uintptr_t>(part) % 64, 0u);
    // Every part can be filled without touching another.
    std::fill_n(sparse.mutable_values(), entries, 2.0);
    std::fill_n(sparse.mutable_column_indexes(), entries, 3);
    sparse.mutable_row_offsets()[3] = entries;
    EXPECT_EQ(sparse.stored(), entries);
    EXPECT_TRUE(std::all_of(sparse.values(), sparse.values() + entries, [](double x) { return x == 2; }));
    EXPECT_TRUE(std::all_of(sparse.column_indexes(), sparse.column_indexes() + entries,
                            [](int32_t x) { return x == 3; }));
  }
}

TEST(MatrixTest, MemoryIsThatOfTheHost) { EXPECT_EQ((*Buffer::Allocate(100))->space(), MemorySpace::kHost); }

TEST(MatrixTest, DenseAndSparseHoldTheSameCells) {
  for (const ElementType type : {ElementType::kFloat64, ElementType::kFloat32}) {
    for (const auto& [rows, columns] :
         {std::pair<int64_t, int64_t>{0, 0}, {0, 3}, {3, 0}, {1, 1}, {1, 7}, {7, 1}, {5, 4}}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      const Matrix dense = Chequered(rows, columns, type);
      const Matrix sparse = *ToSparse(dense);
      EXPECT_TRUE(sparse.IsSparse());
      EXPECT_EQ(sparse.element_type(), type);
      int64_t nonzeros = 0;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          nonzeros += dense.At(i, j) != 0;
          EXPECT_EQ(sparse.At(i, j), dense.At(i, j));
        }
      EXPECT_EQ(sparse.stored(), nonzeros);
      EXPECT_EQ(dense.CountNonzeros(), nonzeros);
      EXPECT_EQ(sparse.CountNonzeros(), nonzeros);
      EXPECT_EQ(dense.stored(), rows * columns);
      const Matrix back = *ToDense(sparse);
      EXPECT_FALSE(back.IsSparse());
      EXPECT_TRUE(Matrix::SameCells(back, dense));
      EXPECT_TRUE(Matrix::SameCells(sparse, dense));
      EXPECT_EQ(ToDense(dense)->data(), dense.data()) << "no copy where nothing changes";
      EXPECT_EQ(ToSparse(sparse)->values(), sparse.values());
    }
  }
}

TEST(MatrixTest, RowsAreViewsOfTheSameMemory) {
  const Matrix dense = Chequered(6, 3);
  const Matrix sparse = *ToSparse(dense);
  const Matrix dense_view = dense.Rows(2, 5);
  const Matrix sparse_view = sparse.Rows(2, 5);
  EXPECT_EQ(dense_view.data(), dense.data() + 6);
  EXPECT_EQ(sparse_view.values(), sparse.values());
  EXPECT_EQ(sparse_view.row_offsets(), sparse.row_offsets() + 2);
  EXPECT_EQ(sparse_view.row_offsets()[0], 2) << "(0, 2) and (1, 1) come before";
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(dense_view.At(i, j), dense.At(i + 2, j));
      EXPECT_EQ(sparse_view.At(i, j), dense.At(i + 2, j));
    }
  EXPECT_TRUE(Matrix::SameCells(dense_view, sparse_view));
  EXPECT_EQ(sparse_view.CountNonzeros(), dense_view.CountNonzeros());
  EXPECT_TRUE(Matrix::SameCells(*ToDense(sparse_view), dense_view));
  EXPECT_TRUE(Matrix::SameCells(sparse_view.Rows(1, 2), dense.Rows(3, 4)));
  EXPECT_EQ(sparse.Rows(6, 6).stored(), 0);
  EXPECT_EQ(Matrix().Rows(0, 0).rows(), 0);
}

TEST(MatrixTest, BytesCountTheRowsOfAView) {
  const Matrix dense = Chequered(6, 3);
  EXPECT_EQ(dense.bytes(), 6 * 3 * 8);
  EXPECT_EQ(dense.Rows(1, 3).bytes(), 2 * 3 * 8);
  const Matrix sparse = *ToSparse(Chequered(4, 4, ElementType::kFloat32));
  EXPECT_EQ(sparse.bytes(), sparse.stored() * 8 + 5 * 8);
}

TEST(MatrixTest, AViewKeepsTheMemoryAlive) {
  Matrix view;
  {
    const Matrix whole = Chequered(100, 50);
    view = whole.Rows(98, 100);
  }
  EXPECT_EQ(view.At(0, 2), 982.0);
}

TEST(MatrixTest, ReshapeReadsRowsOneAfterTheOther) {
  const Matrix matrix = Cells(2, 3, {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(Matrix::SameCells(matrix.Reshaped(3, 2), Cells(3, 2, {1, 2, 3, 4, 5, 6})));
  EXPECT_EQ(matrix.Reshaped(6, 1).data(), matrix.data());
}

TEST(MatrixTest, SameCellsComparesBits) {
  EXPECT_TRUE(Matrix::SameCells(Cells(1, 2, {kNan, 1}), Cells(1, 2, {-kNan, 1})));
  EXPECT_FALSE(Matrix::SameCells(Cells(1, 2, {kNan, 1}), Cells(1, 2, {0, 1})));
  EXPECT_FALSE(Matrix::SameCells(Cells(1, 2, {1, 2}), Cells(2, 1, {1, 2})));
  EXPECT_FALSE(Matrix::SameCells(Cells(1, 1, {1}), Cells(1, 1, {std::nextafter(1.0, 2.0)})));
  EXPECT_FALSE(Matrix::SameCells(Cells(1, 1, {0.0}), Cells(1, 1, {-0.0})));
  EXPECT_TRUE(Matrix::SameCells(*ToSparse(Cells(1, 1, {0.0})), Cells(1, 1, {-0.0}))) << "no cell, no sign";
  EXPECT_FALSE(Matrix::SameCells(*ToSparse(Cells(2, 2, {1, 0, 0, 2})), *ToSparse(Cells(2, 2, {1, 0, 2, 0}))));
  EXPECT_FALSE(Matrix::SameCells(*ToSparse(Cells(1, 3, {1, 0, 3})), *ToSparse(Cells(1, 3, {1, 0, 0}))));
}

TEST(MatrixTest, ExplicitZerosAreZeros) {
  Matrix sparse = *Matrix::Sparse(1, 3, 2);
  sparse.mutable_row_offsets()[1] = 2;
  sparse.mutable_column_indexes()[0] = 0;
  sparse.mutable_column_indexes()[1] = 2;
  sparse.mutable_values()[0] = 0;
  sparse.mutable_values()[1] = 5;
  EXPECT_EQ(sparse.stored(), 2);
  EXPECT_EQ(sparse.CountNonzeros(), 1);
  EXPECT_TRUE(Matrix::SameCells(sparse, Cells(1, 3, {0, 0, 5})));
  EXPECT_TRUE(Matrix::SameCells(sparse, *ToSparse(Cells(1, 3, {0, 0, 5}))));
}

TEST(MatrixTest, NanCountsAsNonzero) {
  EXPECT_EQ(Cells(1, 3, {kNan, 0, -0.0}).CountNonzeros(), 1);
  EXPECT_EQ(ToSparse(Cells(1, 3, {kNan, 0, -0.0}))->stored(), 1);
}

TEST(MatrixTest, FilledHoldsOneValue) {
  const Matrix matrix = *FilledMatrix(3, 2, 7.5);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 2; ++j) EXPECT_EQ(matrix.At(i, j), 7.5);
}

TEST(MatrixTest, MemoryIsAligned) {
  for (const int64_t columns : {1, 3, 100, 5000, 400000}) {
    const Matrix matrix = *Matrix::Dense(1, columns);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(matrix.data()) % 64, 0u);
    if (matrix.bytes() >= 2 << 20) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(matrix.data()) % (2 << 20), 0u);
    }
  }
}

TEST(MatrixTest, AbsurdSizesAreErrorsAndNeverWrap) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const auto expect_refused = [](const Result<Matrix>& result) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted);
    EXPECT_TRUE(result.status().message().starts_with("out of memory: a matrix of "))
        << result.status().message();
    EXPECT_FALSE(result.status().notes().empty());
  };
  expect_refused(Matrix::Dense(-1, 3));
  expect_refused(Matrix::Dense(3, -1));
  expect_refused(Matrix::Dense(-1, -1));
  expect_refused(Matrix::Dense(kHuge, kHuge));
  expect_refused(Matrix::Dense(int64_t{1} << 32, int64_t{1} << 32));  // 2^64 cells: 0 when it wraps
  expect_refused(Matrix::Dense(int64_t{1} << 61, 1));                 // 2^64 bytes
  expect_refused(Matrix::Dense(int64_t{1} << 60, 1));
  expect_refused(FilledMatrix(kHuge, 2, 0));
  expect_refused(Matrix::Sparse(kHuge, 1, 0));
  expect_refused(Matrix::Sparse(2, int64_t{1} << 31, 0));
  expect_refused(Matrix::Sparse(1, 1, -1));
  expect_refused(Matrix::Sparse(1, 1, kHuge));
  expect_refused(Matrix::Sparse(-1, 1, 1));
  EXPECT_TRUE(Matrix::Dense(0, kHuge).ok()) << "no cells need no memory";
}

}  // namespace
}  // namespace heddle
