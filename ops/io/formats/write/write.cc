// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <climits>
#include <nlohmann/json.hpp>
#include <string>

#include "core/environment/log.h"
#include "core/memory/counted_heap.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/io/formats/format_table.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/ordered_pieces.h"
#include "ops/io/formats/write/piece_text.h"
#include "ops/io/formats/write/write_frame.h"
#include "ops/io/formats/write/write_parts.h"

namespace heddle::ops {
namespace {

// The text of a matrix is made slot by slot: a slot is what is looked at to write one number, the entries of
// a sparse row where zeros are not written and the columns of a row elsewhere.
class Slots {
 public:
  Slots(const Matrix& matrix, FileFormat format)
      : matrix_(matrix), are_entries_(matrix.IsSparse() && format != FileFormat::kCsv) {}
  int64_t OfRow(int64_t row) const {
    return are_entries_ ? matrix_.row_offsets()[row + 1] - matrix_.row_offsets()[row] : matrix_.columns();
  }

 private:
  const Matrix& matrix_;
  const bool are_entries_;
};

// A part of a row: slots [first, last) of `slots`.
struct RowPart {
  int64_t row = 0;
  int64_t first = 0;
  int64_t last = 0;
  int64_t slots = 0;
};

template <typename T, typename Visit>
void VisitEntries(const Matrix& matrix, int64_t first, int64_t last, const Visit& visit) {
  for (int64_t k = first; k < last; ++k)
    if (matrix.values<T>()[k] != 0) visit(int64_t{matrix.column_indexes()[k]}, matrix.values<T>()[k]);
}

template <typename T, typename Visit>
void VisitCells(const Matrix& matrix, const RowPart& part, const Visit& visit) {
  const T* cells = matrix.data<T>() + part.row * matrix.columns();
  for (int64_t j = part.first; j < part.last; ++j)
    if (cells[j] != 0) visit(j, cells[j]);
}

// Visits the cells of a part that are not zero, doubles or floats, columns ascending. Of a sparse row the
// part names entries, or with `by_columns` columns.
template <typename Visit>
void VisitNonzeros(const Matrix& matrix, const RowPart& part, bool by_columns, const Visit& visit) {
  const bool doubles = matrix.element_type() == ElementType::kFloat64;
  if (!matrix.IsSparse()) {
    return doubles ? VisitCells<double>(matrix, part, visit) : VisitCells<float>(matrix, part, visit);
  }
  int64_t first = matrix.row_offsets()[part.row] + part.first;
  int64_t last = matrix.row_offsets()[part.row] + part.last;
  if (by_columns) {
    const int32_t* const begin = matrix.column_indexes() + matrix.row_offsets()[part.row];
    const int32_t* const end = matrix.column_indexes() + matrix.row_offsets()[part.row + 1];
    first = std::lower_bound(begin, end, part.first) - matrix.column_indexes();
    last = std::lower_bound(begin, end, part.last) - matrix.column_indexes();
  }
  return doubles ? VisitEntries<double>(matrix, first, last, visit)
                 : VisitEntries<float>(matrix, first, last, visit);
}

template <typename Text>
void AppendCsv(const Matrix& matrix, const RowPart& part, const WriteOptions& options, Text* out) {
  int64_t next = part.first;
  auto zeros_until = [&](int64_t column) {
    for (; next < column; ++next) {
      if (next > 0) out->Append(options.separator);
      // A line without anything would be no row.
      if (!options.sparse || matrix.columns() == 1) out->Append('0');
    }
  };
  VisitNonzeros(matrix, part, true, [&](int64_t column, auto value) {
    zeros_until(column);
    if (column > 0) out->Append(options.separator);
    out->AppendNumber(value);
    next = column + 1;
  });
  zeros_until(part.last);
  if (part.last == part.slots) out->Append('\n');
}

template <typename Text>
void AppendCells(const Matrix& matrix, const RowPart& part, const WriteOptions& options, Text* out) {
  VisitNonzeros(matrix, part, false, [&](int64_t column, auto value) {
    out->AppendNumber(options.rows_before + part.row + 1);
    out->Append(' ');
    out->AppendNumber(column + 1);
    out->Append(' ');
    out->AppendNumber(value);
    out->Append('\n');
  });
}

// The label, which is the last column, comes first.
template <typename Text>
void AppendLibsvm(const Matrix& matrix, const RowPart& part, const WriteOptions& options, Text* out) {
  const int64_t label_column = matrix.columns() - 1;
  if (part.first == 0) {
    const size_t before = out->size();
    RowPart label = part;
    label.first = std::max<int64_t>(0, part.slots - 1);
    label.last = part.slots;
    VisitNonzeros(matrix, label, false, [&](int64_t column, auto value) {
      if (column == label_column) out->AppendNumber(value);
    });
    if (out->size() == before) out->Append("0.0");
  }
  VisitNonzeros(matrix, part, false, [&](int64_t column, auto value) {
    if (column == label_column) return;
    out->Append(options.separator);
    out->AppendNumber(column + 1);
    out->Append(options.index_separator);
    out->AppendNumber(value);
  });
  if (part.last == part.slots) out->Append('\n');
}

template <typename Text>
void AppendPart(const Matrix& matrix, const RowPart& part, const WriteOptions& options, Text* out) {
  switch (options.format) {
    case FileFormat::kCsv: return AppendCsv(matrix, part, options, out);
    case FileFormat::kLibsvm: return AppendLibsvm(matrix, part, options, out);
    case FileFormat::kMatrixMarket:
    case FileFormat::kText: return AppendCells(matrix, part, options, out);
    default: break;
  }
}

// Where the text of a matrix is cut: before slot `slot` of row `row`.
struct Place {
  int64_t row = 0;
  int64_t slot = 0;
};

// A piece is so short that many of them are little memory, and so long that threads are busy with it.
constexpr int64_t kSlotsOfPiece = 1 << 14;

// Behind `count` cells of a row that give some text, from a slot on, and how many there are.
template <typename T>
int64_t BehindCells(std::span<const T> slots, int64_t slot, int64_t count, int64_t* taken) {
  for (; slot < std::ssize(slots) && *taken < count; ++slot) *taken += slots[static_cast<size_t>(slot)] != 0;
  return slot;
}

// Where a piece that begins at `at` ends. The end of a row counts as a slot, so that empty rows end a piece,
// too. What is packed may not depend on how cells are stored: a slot is then a cell that gives text, and
// after every `rows_of_unit` rows a new piece begins.
class PieceEnds {
 public:
  PieceEnds(const Matrix& matrix, const WriteOptions& options, int64_t rows_of_unit)
      : matrix_(matrix),
        slots_(matrix, options.format),
        is_packed_(options.packing.has_value()),
        counts_cells_(is_packed_ && options.format != FileFormat::kCsv),
        rows_of_unit_(rows_of_unit) {}

  const Slots& slots() const { return slots_; }

  Place EndOf(Place at) const {
    int64_t end = matrix_.rows();
    if (is_packed_) end = std::min(end, (at.row / rows_of_unit_ + 1) * rows_of_unit_);
    for (int64_t left = kSlotsOfPiece; at.row < end && left > 0;) {
      int64_t taken = 0;
      const int64_t slot = Behind(at, left, &taken);
      left -= taken + 1;
      at = slot == slots_.OfRow(at.row) ? Place{at.row + 1, 0} : Place{at.row, slot};
    }
    return at;
  }

 private:
  int64_t Behind(const Place& at, int64_t count, int64_t* taken) const {
    const int64_t of_row = slots_.OfRow(at.row);
    if (!counts_cells_) {
      *taken = std::min(count, of_row - at.slot);
      return at.slot + *taken;
    }
    const int64_t first = matrix_.IsSparse() ? matrix_.row_offsets()[at.row] : at.row * matrix_.columns();
    const auto behind = [&]<typename T>(const T* cells) {
      int64_t slot = BehindCells<T>({cells + first, static_cast<size_t>(of_row)}, at.slot, count, taken);
      // Zeros at the end of a row are no piece of their own.
      int64_t more = 0;
      if (BehindCells<T>({cells + first, static_cast<size_t>(of_row)}, slot, 1, &more) == of_row && more == 0)
        slot = of_row;
      return slot;
    };
    return matrix_.element_type() == ElementType::kFloat64 ? behind(matrix_.values<double>())
                                                           : behind(matrix_.values<float>());
  }

  const Matrix& matrix_;
  const Slots slots_;
  const bool is_packed_;
  const bool counts_cells_;
  const int64_t rows_of_unit_;
};

struct Piece {
  Place begin;
  Place end;
  PieceText text;
  std::string packed;
};

template <typename Text>
void AppendBetween(const Matrix& matrix, const Slots& slots, Place begin, Place end,
                   const WriteOptions& options, Text* out) {
  for (int64_t row = begin.row; row < end.row + (end.slot > 0); ++row) {
    const int64_t of_row = slots.OfRow(row);
    const RowPart part = {.row = row,
                          .first = row == begin.row ? begin.slot : 0,
                          .last = row == end.row ? end.slot : of_row,
                          .slots = of_row};
    AppendPart(matrix, part, options, out);
  }
}

}  // namespace

int64_t RowsOfTextUnit(const Shape& shape, int64_t nonzeros, FileFormat format) {
  const int64_t rows = std::max<int64_t>(1, shape.rows);
  const int64_t slots_of_row = format == FileFormat::kCsv ? shape.columns : nonzeros / rows;
  return std::max<int64_t>(1, kSlotsOfPiece / (slots_of_row + 1));
}

Status WriteTextRows(const Matrix& matrix, int64_t rows_of_unit, const WriteOptions& options,
                     const ByteSink& sink) {
  const PieceEnds ends(matrix, options, rows_of_unit);
  Place at;
  return GiveInOrder<Piece>(
      options.cancelled,
      [&](Piece* piece) {
        if (at.row >= matrix.rows()) return false;
        piece->begin = at;
        piece->end = at = ends.EndOf(at);
        return true;
      },
      [&](Piece* piece) {
        piece->text.Clear();
        AppendBetween(matrix, ends.slots(), piece->begin, piece->end, options, &piece->text);
        return PackPiece(options.packing, piece->text.view(), &piece->packed);
      },
      [&](Piece* piece) {
        return sink(options.packing ? std::string_view(piece->packed) : piece->text.view());
      });
}

int64_t BytesOfTextRows(const Matrix& matrix, const WriteOptions& options) {
  const Slots slots(matrix, options.format);
  const int64_t nonzeros = options.format == FileFormat::kCsv ? kUnknown : matrix.CountNonzeros();
  const int64_t rows_at_once = RowsOfTextUnit(matrix.shape(), nonzeros, options.format);
  std::atomic<int64_t> bytes = 0;
  ParallelFor(matrix.rows(), rows_at_once, [&](int64_t begin, int64_t end) {
    for (; begin < end && !IsCancelled(options.cancelled); begin += rows_at_once) {
      TextLength length;
      AppendBetween(matrix, slots, {begin, 0}, {std::min(begin + rows_at_once, end), 0}, options, &length);
      bytes += static_cast<int64_t>(length.size());
    }
  });
  return bytes;
}

Status GiveTextBeginning(const Shape& shape, int64_t nonzeros, const WriteOptions& options,
                         const ByteSink& sink) {
  if (options.format == FileFormat::kMatrixMarket)
    return sink(fmt::format("%%MatrixMarket matrix coordinate real general\n{} {} {}\n", shape.rows,
                            shape.columns, nonzeros));
  if (options.format != FileFormat::kCsv || !options.header) return OkStatus();
  PieceText names;
  for (int64_t j = 1; j <= shape.columns; ++j) {
    if (j > 1) names.Append(options.separator);
    names.Append('C');
    names.AppendNumber(j);
    if (j == shape.columns) names.Append('\n');
    if (j % kSlotsOfPiece != 0 && j != shape.columns) continue;
    HEDDLE_RETURN_IF_ERROR(sink(names.view()));
    names.Clear();
  }
  return OkStatus();
}

namespace {

Status WriteScalar(const Scalar& scalar, const ByteSink& sink) {
  HEDDLE_RETURN_IF_ERROR(scalar.IsString() ? sink(scalar.AsString()) : sink(scalar.ToText()));
  return sink("\n");
}

std::string Metadata(const WrittenValue& value, const WriteOptions& options) {
  const HeapModeScope unlimited(HeapMode::kCounts);  // The library ends the process when it gets no memory.
  nlohmann::ordered_json json;
  switch (value.kind) {
    case Value::Kind::kMatrix:
      json["data_type"] = "matrix";
      json["value_type"] = "double";
      json["rows"] = value.shape.rows;
      // In a libsvm file the label is not one of the columns.
      json["cols"] = value.shape.columns - (options.format == FileFormat::kLibsvm ? 1 : 0);
      json["nnz"] = value.nonzeros;
      json["format"] = Name(options.format);
      break;
    case Value::Kind::kScalar:
      json["data_type"] = "scalar";
      json["value_type"] =
          value.scalar_type == ValueType::kInteger ? "int" : std::string(Name(value.scalar_type));
      json["format"] = "text";
      break;
    case Value::Kind::kPanels: break;  // Of what is written the kind is that of its rows.
    case Value::Kind::kFrame:
      json["data_type"] = "frame";
      json["schema"] = SchemaText(*value.schema);
      json["rows"] = value.shape.rows;
      json["cols"] = value.shape.columns;
      json["format"] = Name(options.format);
      break;
  }
  if (!options.description.empty()) json["description"] = options.description;
  if (value.kind != Value::Kind::kScalar && options.format == FileFormat::kCsv) {
    json["header"] = options.header;
    json["sep"] = options.separator;
  }
  if (value.kind == Value::Kind::kMatrix && options.format == FileFormat::kLibsvm)
    json["indSep"] = options.index_separator;
  // A path or description that is no UTF-8 must not stop the write.
  return json.dump(4, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// False where the name of the metadata would be longer than names can be.
bool CanHaveMetadata(const std::string& path) {
  constexpr std::string_view kExtension = ".mtd";
  const size_t slash = path.rfind('/');
  return path.size() - (slash == std::string::npos ? 0 : slash + 1) + kExtension.size() <= NAME_MAX;
}

Status CheckFormatHolds(Value::Kind kind, const WriteOptions& options) {
  const FormatEntry& entry = EntryOf(options.format);
  if (kind == Value::Kind::kScalar) return OkStatus();  // One line, whatever the format.
  const bool is_frame = kind == Value::Kind::kFrame;
  const DataType type = is_frame ? DataType::kFrame : DataType::kMatrix;
  if (is_frame ? !entry.writes_frames : !entry.writes_matrices)
    return FailedPrecondition("write: a {} cannot be written in format '{}'", Name(type), entry.name)
        .WithNote(fmt::format("formats of {} are {}", is_frame ? "frames" : "matrices",
                              NamesOfWrittenFormats(type)));
  if (options.by_groups && is_frame)
    return FailedPrecondition("write: compression=\"groups\" is of matrices, this is a frame");
  if (options.parts > 0 && entry.in_folders == InFolders::kNot)
    return FailedPrecondition("write: parts={}, but a folder in format '{}' is no value", options.parts,
                              entry.name)
        .WithNote("formats of folders are " + NamesOfFolderFormats());
  return OkStatus();
}

}  // namespace

Status CheckWrite(Value::Kind kind, const Shape& shape, const std::string& path,
                  const WriteOptions& options) {
  if (path.empty()) return NotFound("cannot write '': the path is empty");
  HEDDLE_RETURN_IF_ERROR(CheckSeparators(options));
  HEDDLE_RETURN_IF_ERROR(CheckFormatHolds(kind, options));
  if (kind == Value::Kind::kMatrix && options.format == FileFormat::kLibsvm && shape.columns < 1)
    return FailedPrecondition("write: a libsvm file needs a label column, the matrix is {}", shape);
  const bool needs_cells = options.format == FileFormat::kCsv || options.format == FileFormat::kLibsvm;
  if (kind == Value::Kind::kMatrix && needs_cells && shape.IsKnown() && shape.Cells() == 0)
    return FailedPrecondition("write: a {} file cannot hold a matrix of {}", Name(options.format), shape)
        .WithNote("text, mm and binary files can");
  return OkStatus();
}

Status WriteMetadata(const WrittenValue& value, const std::string& path, const WriteOptions& options,
                     Files& files) {
  if (value.kind == Value::Kind::kMatrix && options.format == FileFormat::kMatrixMarket)
    // The header says it all; metadata of an older output would contradict it.
    return CanHaveMetadata(path) ? files.Remove(path + ".mtd") : OkStatus();
  if (!CanHaveMetadata(path)) {
    HEDDLE_LOG(kWarning, "no metadata: its name would be too long", {"path", path});
    return OkStatus();
  }
  return files.Replace(path + ".mtd", Metadata(value, options));
}

Status WriteValue(const Value& value, const std::string& path, const WriteOptions& options, Files& files) {
  HEDDLE_RETURN_IF_ERROR(CheckWrite(value.kind(), value.shape(), path, options));
  if (!value.IsScalar()) return WriteRows(value, path, options, files);
  const Packing packing = options.packing.value_or(PackingOfPath(path));
  HEDDLE_RETURN_IF_ERROR(files.Replace(path, [&](const ByteSink& sink) {
    return Pack(
        packing, [&](const ByteSink& to) { return WriteScalar(value.scalar(), to); }, sink);
  }));
  const WrittenValue written{.kind = value.kind(), .scalar_type = value.scalar().type()};
  return WriteMetadata(written, path, options, files);
}

}  // namespace heddle::ops
