// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/values/matrix.h"

namespace heddle::bench {

/// How the cells of a column are drawn: a rank below `distinct` by Zipf's law, and a value for it.
struct ColumnShape {
  int64_t distinct = 2;      ///< Different values; 0: every cell another one, uniform in [0, 1).
  double zipf = 0;           ///< Exponent of Zipf's law; 0: all ranks are as frequent.
  double zeros = 0;          ///< Share of cells that are zero beside those of the law.
  int64_t run = 1;           ///< So many rows one below the other have the same rank.
  int32_t follows = -1;      ///< The column whose ranks decide this one's, but for one row in 50.
  bool is_fraction = false;  ///< Values have digits behind the point; else they are whole numbers.
};

/// The shape of a data set: its number of columns, their distinct values and frequencies, runs and
/// correlations, as they are published. Not the data.
struct DataShape {
  std::string name;
  int64_t rows = 0;      ///< Of the data set.
  int64_t few_rows = 0;  ///< For a look.
  std::vector<ColumnShape> columns;
  bool is_sparse = false;  ///< Mostly zeros: CSR is a contender.
};

/// Airline78, Covtype, Census (US Census 1990), Mnist and Higgs.
std::vector<DataShape> DataShapes();

/// A matrix of that shape, a function of shape and rows alone.
Result<Matrix> MatrixOfShape(const DataShape& shape, int64_t rows);

}  // namespace heddle::bench
