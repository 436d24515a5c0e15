// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>
#include <string>

#include "core/environment/log.h"
#include "ops/base/kernel.h"
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

void AppendCsv(const Matrix& matrix, const RowPart& part, const WriteOptions& options, PieceText* out) {
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

void AppendCells(const Matrix& matrix, const RowPart& part, const WriteOptions& options, PieceText* out) {
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
void AppendLibsvm(const Matrix& matrix, const RowPart& part, const WriteOptions& options, PieceText* out) {
  const int64_t label_column = matrix.columns() - 1;
  if (part.first == 0) {
    const size_t before = out->view().size();
    RowPart label = part;
    label.first = std::max<int64_t>(0, part.slots - 1);
    label.last = part.slots;
    VisitNonzeros(matrix, label, false, [&](int64_t column, auto value) {
      if (column == label_column) out->AppendNumber(value);
    });
    if (out->view().size() == before) out->Append("0.0");
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

void AppendPart(const Matrix& matrix, const RowPart& part, const WriteOptions& options, PieceText* out) {
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

// Where a piece that begins at `at` ends. The end of a row counts as a slot, so that empty rows end a piece,
// too.
Place EndOfPiece(const Matrix& matrix, const Slots& slots, Place at) {
  for (int64_t left = kSlotsOfPiece; at.row < matrix.rows() && left > 0;) {
    const int64_t of_row = slots.OfRow(at.row);
    const int64_t taken = std::min(left, of_row - at.slot);
    left -= taken + 1;
    at = at.slot + taken == of_row ? Place{at.row + 1, 0} : Place{at.row, at.slot + taken};
  }
  return at;
}

struct Piece {
  Place begin;
  Place end;
  PieceText text;
  std::string packed;
};

void FillPiece(const Matrix& matrix, const Slots& slots, const WriteOptions& options, Piece* piece) {
  piece->text.Clear();
  for (int64_t row = piece->begin.row; row < piece->end.row + (piece->end.slot > 0); ++row) {
    const int64_t of_row = slots.OfRow(row);
    const RowPart part = {.row = row,
                          .first = row == piece->begin.row ? piece->begin.slot : 0,
                          .last = row == piece->end.row ? piece->end.slot : of_row,
                          .slots = of_row};
    AppendPart(matrix, part, options, &piece->text);
  }
}

}  // namespace

Status WriteTextRows(const Matrix& matrix, const WriteOptions& options, const ByteSink& sink,
                     bool* any_bytes) {
  const Slots slots(matrix, options.format);
  Place at;
  return GiveInOrder<Piece>(
      options.cancelled,
      [&](Piece* piece) {
        if (at.row >= matrix.rows()) return false;
        piece->begin = at;
        piece->end = at = EndOfPiece(matrix, slots, at);
        return true;
      },
      [&](Piece* piece) {
        FillPiece(matrix, slots, options, piece);
        return PackPiece(options.packing, piece->text.view(), &piece->packed);
      },
      [&](Piece* piece) {
        *any_bytes |= !piece->text.view().empty();
        return sink(options.packing ? std::string_view(piece->packed) : piece->text.view());
      });
}

Status WriteTextBeginning(const Shape& shape, int64_t nonzeros, const WriteOptions& options,
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
    if (j % kSlotsOfPiece != 0 && j != shape.columns) continue;
    HEDDLE_RETURN_IF_ERROR(sink(names.view()));
    names.Clear();
  }
  return sink("\n");
}

Status WriteTextEnd(bool any_bytes, const WriteOptions& options, const ByteSink& sink) {
  return options.format == FileFormat::kText && !any_bytes ? sink("0 0 0\n") : OkStatus();
}

namespace {

Status WriteMatrix(const Matrix& matrix, const WriteOptions& options, const ByteSink& sink) {
  const FormatEntry& entry = EntryOf(options.format);
  if (!entry.writes_matrices)
    return FailedPrecondition("write: a matrix cannot be written in format '{}'", entry.name)
        .WithNote("formats of matrices are " + NamesOfWrittenFormats(DataType::kMatrix));
  if (entry.write != nullptr) return entry.write(matrix, options, sink);
  bool any_bytes = false;
  const ByteSink pack = PackingSink(options.packing, sink);
  const int64_t nonzeros = options.format == FileFormat::kMatrixMarket ? matrix.CountNonzeros() : kUnknown;
  HEDDLE_RETURN_IF_ERROR(WriteTextBeginning(matrix.shape(), nonzeros, options, pack));
  HEDDLE_RETURN_IF_ERROR(WriteTextRows(matrix, options, sink, &any_bytes));
  return WriteTextEnd(any_bytes, options, pack);
}

Status WriteScalar(const Scalar& scalar, const ByteSink& sink) {
  HEDDLE_RETURN_IF_ERROR(scalar.IsString() ? sink(scalar.AsString()) : sink(scalar.ToText()));
  return sink("\n");
}

std::string Metadata(const WrittenValue& value, const WriteOptions& options) {
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

WrittenValue Written(const Value& value) {
  WrittenValue written{.kind = value.kind(), .shape = value.shape()};
  if (value.IsMatrix()) written.nonzeros = value.matrix().CountNonzeros();
  if (value.IsScalar()) written.scalar_type = value.scalar().type();
  if (value.IsFrame()) written.schema = value.frame().schema();
  return written;
}

}  // namespace

Status CheckWrite(Value::Kind kind, const Shape& shape, const std::string& path,
                  const WriteOptions& options) {
  if (path.empty()) return NotFound("cannot write '': the path is empty");
  HEDDLE_RETURN_IF_ERROR(CheckSeparators(options));
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
  const Packing packing = options.packing.value_or(PackingOfPath(path));
  // Most writers pack each piece where they make it, so that all threads do.
  const bool in_pieces =
      packing != Packing::kNone && !value.IsScalar() && EntryOf(options.format).packs_pieces;
  WriteOptions own = options;
  own.packing = in_pieces ? std::optional(packing) : std::nullopt;
  const auto give = [&](const ByteSink& sink) {
    switch (value.kind()) {
      case Value::Kind::kScalar: return WriteScalar(value.scalar(), sink);
      case Value::Kind::kMatrix: return WriteMatrix(value.matrix(), own, sink);
      case Value::Kind::kFrame: return WriteFrame(value.frame(), own, sink);
    }
    HEDDLE_CHECK(false, "values of every kind can be written");
  };
  HEDDLE_RETURN_IF_ERROR(files.Replace(path, [&](const ByteSink& sink) -> Status {
    if (!in_pieces) return Pack(packing, give, sink);
    bool any = false;
    HEDDLE_RETURN_IF_ERROR(give([&](std::string_view bytes) {
      any = any || !bytes.empty();
      return sink(bytes);
    }));
    return any ? OkStatus()
               : Pack(
                     packing, [](const ByteSink&) { return OkStatus(); }, sink);
  }));
  return WriteMetadata(Written(value), path, options, files);
}

}  // namespace heddle::ops
