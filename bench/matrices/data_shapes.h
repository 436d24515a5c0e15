// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/values/matrix.h"

namespace heddle::bench {

/// How the cells of a column are drawn: a rank below `distinct` by Zipf's law, and a value for it.
struct ColumnShape {
  int64_t distinct = 2;   ///< Different values; 0: every cell another one, uniform in [0, 1).
  double zipf = 0;        ///< Exponent of Zipf's law; 0: all ranks are as frequent.
  double zeros = 0;       ///< Share of cells that are zero beside those of the law.
  int64_t run = 1;        ///< So many rows one below the other have the same rank.
  int32_t follows = -1;   ///< The column whose ranks decide this one's,
  uint64_t strays = 50;   ///< but for one row in so many; 0: in all rows.
  int32_t draws_as = -1;  ///< The column whose ranks this one has; it has the same law.
  int32_t hot = -1;       ///< The cell is 1 where the rank is this, else 0: a dummy of one of several.
  double first = 1;       ///< The value of rank 0.
  double step = 1;        ///< From the value of a rank to that of the next.
};

/// The shape of a data set: numbers of rows and columns and the share of cells that are not zero as they are
/// published; distinct values, frequencies, runs and correlations of its columns so that they give about the
/// published ratio. Not the data.
/// Source: Baunsgaard and Boehm, SIGMOD 2023, section 6; UCI Machine Learning Repository (bench/README.md).
struct DataShape {
  std::string name;
  int64_t rows = 0;      ///< Of the data set.
  int64_t few_rows = 0;  ///< For a look.
  std::vector<ColumnShape> columns;
};

/// Airline78, Covtype, Census (US Census 1990), Mnist and Higgs.
std::vector<DataShape> DataShapes();

/// A matrix of that shape, a function of shape and rows alone.
Result<Matrix> MatrixOfShape(const DataShape& shape, int64_t rows);

}  // namespace heddle::bench
