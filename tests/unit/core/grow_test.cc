// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/values/matrix.h"

namespace heddle {
namespace {

TEST(GrowTest, CellsStayWhereTheyAreWhileThereIsRoom) {
  Matrix matrix = *Matrix::DenseWithRoom(2, 3, 6);
  for (int i = 0; i < 6; ++i) matrix.mutable_data()[i] = i;
  const double* cells = matrix.data();
  ASSERT_TRUE(matrix.GrowTo(4, 3));
  EXPECT_EQ(matrix.data(), cells);
  EXPECT_EQ(matrix.rows(), 4);
  EXPECT_EQ(matrix.At(1, 2), 5);
  EXPECT_FALSE(matrix.GrowTo(5, 3));
  EXPECT_EQ(matrix.rows(), 4);
}

TEST(GrowTest, WhatOthersHoldDoesNotGrow) {
  Matrix matrix = *Matrix::DenseWithRoom(2, 3, 6);
  {
    const Matrix copy = matrix;
    EXPECT_FALSE(matrix.GrowTo(3, 3));
  }
  EXPECT_TRUE(matrix.GrowTo(3, 3));
  EXPECT_FALSE(Matrix().GrowTo(1, 1));
}

// Entries are held as dense cells are, and do not grow.
TEST(GrowTest, EntriesAreHeldAlone) {
  Matrix matrix = *Matrix::Sparse(3, 3, 4);
  EXPECT_TRUE(matrix.HoldsCellsAlone());
  {
    const Matrix rows = matrix.Rows(1, 2);
    EXPECT_FALSE(matrix.HoldsCellsAlone());
  }
  EXPECT_TRUE(matrix.HoldsCellsAlone());
  EXPECT_FALSE(matrix.GrowTo(4, 3));
}

TEST(GrowTest, ARowPanelHasTheRoomBehindItsRows) {
  Matrix matrix = *Matrix::DenseWithRoom(4, 2, 2);
  Matrix panel = matrix.Rows(1, 3);
  matrix = Matrix();
  EXPECT_TRUE(panel.GrowTo(4, 2));
  EXPECT_FALSE(panel.GrowTo(5, 2));
}

}  // namespace
}  // namespace heddle
