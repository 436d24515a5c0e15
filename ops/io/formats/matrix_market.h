// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "ops/io/files/text_file.h"
#include "ops/io/formats/file_format.h"

namespace heddle::ops {

/// Of a matrix whose file holds the cells on and below the diagonal only.
enum class Symmetry : uint8_t { kGeneral, kSymmetric, kSkew };

/// What the lines before the cells of a MatrixMarket file say.
struct MatrixMarketHeader {
  bool coordinates = true;  ///< Else an array, column by column.
  bool pattern = false;     ///< Cells without values, all 1.
  Symmetry symmetry = Symmetry::kGeneral;
  Shape shape;
  int64_t entries = kUnknown;  ///< Lines with a cell.
  int64_t body = 0;            ///< Offset of the line behind.
  int64_t lines = 0;           ///< Before that.
};

/// Whether a file that begins with this line is a MatrixMarket file. Words may be written in any case.
bool IsMatrixMarketBanner(std::string_view line);

/// Real matrices of all kinds: coordinate and array; real, integer and pattern; general, symmetric and
/// skew-symmetric; hermitian, which is symmetric where numbers are real. kDataLoss says what the file holds
/// else, and when its size is not the one that was asked for.
Result<MatrixMarketHeader> ReadMatrixMarketHeader(const ReadOptions& options, const TextFile& text);

/// Cuts the first word off a line, and blanks around it.
std::string_view TakeBlankWord(std::string_view* line);
/// The first word as a whole number; false if it is none.
bool TakeInteger(std::string_view* line, int64_t* value);

}  // namespace heddle::ops
