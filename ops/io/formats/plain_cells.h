// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/values/matrix.h"
#include "core/values/value.h"
#include "ops/io/files/files.h"
#include "ops/io/formats/file_format.h"

// Matrices in files whose cells lie one after the other, row by row, as doubles.
namespace heddle::ops {

/// Puts the cells of rows [begin, end) into `out`, row by row. Called by several threads at once.
using FillRows = std::function<Status(int64_t begin, int64_t end, double* out)>;

/// Rows [row_begin, row_end) of a matrix of `columns` columns, filled piece by piece, several pieces at once.
/// A sparse one is filled twice, first to count its cells, so that it is never whole in memory as a dense
/// one; cells that are not +0.0 are stored. A piece has at least `least_rows` rows where there are so many.
/// kCancelled, kDataLoss when a second look gives other cells, what `fill` says of the first piece that
/// fails.
Result<Matrix> CollectRows(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                           int64_t row_end, int64_t least_rows, const FillRows& fill);

/// Gives all cells of a matrix to the sink, row by row, as doubles in little endian. What is no number has
/// always the same bits: which NaN it is depends on the plan (docs/numerics.md R7), a file must not.
/// Pieces are packed, each for itself, where `packing` says how; after so many rows as RowsOfCellPiece() says
/// a new one begins.
int64_t RowsOfCellPiece(int64_t columns);
Status GiveCells(const Matrix& matrix, const std::optional<Packing>& packing,
                 const std::atomic<bool>* cancelled, const ByteSink& sink);

/// kDataLoss if rows= or cols= say another size than the file has.
Status CheckSaidSizes(const ReadOptions& options, const Shape& found);

/// FileSummary::table of a matrix that is this table; nullptr of columns of FP64 without names.
std::shared_ptr<const Schema> TableOfMatrix(std::shared_ptr<const Schema> schema);

/// A file that is no folder of part files: those are for formats of lines.
Result<std::unique_ptr<InputFile>> OpenOneFile(const ReadOptions& options, Files& files);

/// A cell as it is written.
double CanonicalCell(double cell);

}  // namespace heddle::ops
