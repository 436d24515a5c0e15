// SPDX-License-Identifier: Apache-2.0
#include "ops/io/exchange/convert_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ops/frame/cast.h"
#include "ops/io/exchange/inspect_file.h"
#include "ops/io/exchange/resolve.h"
#include "ops/io/formats/format_table.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/write/write_pieces.h"

namespace heddle::ops {
namespace {

constexpr double kBytesAtOnce = 4 << 20;
constexpr double kLeastRows = 64, kMostBytesOfLeast = 64 << 20;
constexpr double kBytesOfCell = 8, kBytesOfText = 32, kBytesOfEntry = 12;

// Of a frame. Files of cells leave out what is missing, and read() takes what they leave out for 0.
bool HoldsMissingNumbers(FileFormat format) {
  return EntryOf(format).writes_frames && format != FileFormat::kText;
}

Result<FileFormat> FormatOfPath(const std::string& path) {
  if (const FormatEntry* entry = FindFormatByEnding(path)) return entry->format;
  return Usage("the name '{}' does not tell the format to write; say --to FORMAT", path);
}

class Conversion {
 public:
  Conversion(const std::string& from, const std::string& to, const ConvertOptions& options, Files& files)
      : from_(from), to_(to), options_(options), files_(files) {}

  Result<Converted> Run() {
    if (options_.to) {
      result_.to = *options_.to;
    } else {
      HEDDLE_ASSIGN_OR_RETURN(result_.to, FormatOfPath(to_));
    }
    if (options_.compression) HEDDLE_RETURN_IF_ERROR(SetCompression(*options_.compression, &write_));
    HEDDLE_RETURN_IF_ERROR(CheckCompression(result_.to, write_));
    HEDDLE_RETURN_IF_ERROR(ResolveInput());
    result_.from = *read_.format;
    read_.any_cell_may_miss = writes_frame_ ? HoldsMissingNumbers(result_.to) : options_.empty_as_nan;
    HEDDLE_ASSIGN_OR_RETURN(summary_, Summarize(read_, files_));
    result_.warnings.insert(result_.warnings.end(), summary_.warnings.begin(), summary_.warnings.end());
    const Schema* const table = summary_.schema != nullptr ? summary_.schema.get() : summary_.table.get();
    if (!writes_frame_ && table != nullptr && !table->names.empty()) WarnOfNames();
    if (!summary_.column_major_writer.empty())
      result_.warnings.push_back(TransposeOf(summary_.column_major_writer) + "; --transposed turns it");
    PiecedValue value;
    value.shape = summary_.shape;
    if (writes_frame_) value.schema = SchemaToWrite();
    value.rows_at_once = RowsAtOnce();
    value.read = [this](int64_t begin, int64_t end) { return Read(begin, end); };
    SetOptionsToWrite(value);
    HEDDLE_RETURN_IF_ERROR(summary_.is_unordered ? WriteWhole(value)
                                                 : WritePieces(value, to_, write_, files_));
    if (has_large_integers_)
      result_.warnings.push_back(
          "whole numbers beyond 2^53 are the nearest doubles in a matrix; heddle inspect counts those that lose "
          "digits");
    result_.data_type = writes_frame_ ? DataType::kFrame : DataType::kMatrix;
    result_.shape = summary_.shape;
    return result_;
  }

 private:
  // What is read, and as what it is written.
  Status ResolveInput() {
    HEDDLE_RETURN_IF_ERROR(FindDataType());
    HEDDLE_ASSIGN_OR_RETURN(read_, ResolveReadOptions(ReadNode(), from_, files_));
    read_.cancelled = options_.cancelled;
    if (read_.data_type == DataType::kScalar)
      return InvalidArgument("convert: '{}' is a scalar, which is a line of text in every format", from_);
    const FormatEntry& target = EntryOf(result_.to);
    if (!target.writes_matrices && !target.writes_frames)
      return InvalidArgument("convert: files of format '{}' are read, not written", target.name)
          .WithNote("formats that are written are " + NamesOfWrittenFormats());
    writes_frame_ = read_.data_type == DataType::kFrame ? target.writes_frames : !target.writes_matrices;
    return OkStatus();
  }

  // Where nobody says it, the columns of a table decide.
  Status FindDataType() {
    data_type_ = options_.data_type;
    header_ = options_.header;
    schema_ = options_.schema;
    if (schema_ && !data_type_) data_type_ = DataType::kFrame;
    if (data_type_ == DataType::kMatrix || (data_type_ && schema_)) return OkStatus();
    HEDDLE_ASSIGN_OR_RETURN(const ReadOptions first, ResolveAnyType(ReadNode(), from_, files_));
    if (first.data_type == DataType::kFrame) data_type_ = DataType::kFrame;
    // Column groups are of matrices.
    const bool takes_names = EntryOf(result_.to).is_table && !write_.by_groups;
    if (!data_type_ && !first.data_type_said && takes_names && EntryOf(*first.format).is_table &&
        first.format != FileFormat::kCsv) {
      // A table stays one, with the names and types of its columns.
      HEDDLE_ASSIGN_OR_RETURN(const FileSummary found, Summarize(first, files_));
      if (found.table != nullptr) data_type_ = DataType::kFrame;
    }
    const bool is_open = first.format == FileFormat::kCsv && first.data_type == DataType::kMatrix;
    if (!is_open && !LacksSchema(first)) return OkStatus();
    InspectOptions inspect;
    inspect.finds_call = false;
    inspect.format = options_.from;
    inspect.header = options_.header;
    inspect.separator = options_.separator;
    inspect.dataset = options_.dataset;
    inspect.transposed = options_.transposed;
    HEDDLE_ASSIGN_OR_RETURN(FileFacts facts, InspectFile(from_, inspect, files_));
    const bool keeps_names = facts.header && takes_names;
    if (!data_type_ && !facts.is_frame && !keeps_names) {
      if (facts.header) WarnOfNames();
      WarnOfZerosInFront(facts);
      // Metadata say what an empty cell is.
      if (!facts.has_metadata) WarnOfEmptyCells(facts, /*in_matrix=*/true);
      return OkStatus();
    }
    data_type_ = DataType::kFrame;
    if (facts.format == FileFormat::kCsv) {
      header_ = facts.header;
      if (!options_.separator) separator_ = facts.separator.empty() ? " " : facts.separator;
    }
    if (!facts.looked_at_all) {
      // The types must fit all lines.
      inspect.bytes_looked_at = INT64_MAX;
      HEDDLE_ASSIGN_OR_RETURN(facts, InspectFile(from_, inspect, files_));
    }
    schema_.emplace();
    if (facts.columns > FileFacts::kMostColumns) {
      schema_ = "STRING";  // of all columns
    } else {
      for (const ColumnFacts& column : facts.facts) schema_->append(column.schema_type()).push_back(',');
      WarnOfZerosInFront(facts);
      if (!HoldsMissingNumbers(result_.to))
        WarnOfEmptyCells(facts, /*in_matrix=*/!EntryOf(result_.to).writes_frames);
    }
    return OkStatus();
  }

  // Those of the columns, which a matrix has not.
  void WarnOfNames() {
    result_.warnings.push_back(
        EntryOf(result_.to).writes_frames
            ? "the names of the columns are left out: a matrix has none (--data-type frame)"
            : fmt::format("the names of the columns are left out: format {} has none", Name(result_.to)));
  }

  // Those of numbers and booleans, which become something else than missing.
  void WarnOfEmptyCells(const FileFacts& facts, bool in_matrix) {
    if (in_matrix && options_.empty_as_nan) return;
    for (const ColumnFacts& column : facts.facts) {
      const std::string_view type = column.schema_type();
      if (column.missing == 0 || type == "STRING") continue;
      const std::string_view becomes = in_matrix ? "0 (--nan: NaN)" : type == "BOOLEAN" ? "FALSE" : "0";
      result_.warnings.push_back(fmt::format(
          "{}{} empty cell{} of '{}' become{} {}", facts.looked_at_all ? "" : "at least ", column.missing,
          column.missing == 1 ? "" : "s", column.name, column.missing == 1 ? "s" : "", becomes));
    }
  }

  void WarnOfZerosInFront(const FileFacts& facts) {
    for (const ColumnFacts& column : facts.facts) {
      const int64_t lost = column.LostZeros();
      if (lost == 0) continue;
      result_.warnings.push_back(fmt::format(
          "{}{} number{} of '{}' lose{} the zeros in front: {}", facts.looked_at_all ? "" : "at least ", lost,
          lost == 1 ? "" : "s", column.name, lost == 1 ? "s" : "", column.first_zeros_in_front));
    }
  }

  Node ReadNode() const {
    Node node;
    node.op = "read";
    if (options_.from) node.SetAttribute("format", std::string(Name(*options_.from)));
    if (data_type_) node.SetAttribute("data_type", std::string(Name(*data_type_)));
    if (header_) node.SetAttribute("header", *header_);
    const std::optional<std::string>& separator = options_.separator ? options_.separator : separator_;
    if (separator) node.SetAttribute("sep", *separator);
    if (schema_) node.SetAttribute("schema", *schema_);
    if (options_.empty_as_nan) node.SetAttribute("default", std::numeric_limits<double>::quiet_NaN());
    if (options_.dataset) node.SetAttribute("dataset", *options_.dataset);
    if (options_.transposed) node.SetAttribute("transposed", true);
    if (options_.rows) node.SetAttribute("rows", *options_.rows);
    if (options_.columns) node.SetAttribute("cols", *options_.columns);
    return node;
  }

  std::shared_ptr<const Schema> SchemaToWrite() const {
    if (summary_.schema != nullptr) return summary_.schema;
    auto schema = std::make_shared<Schema>();
    schema->types.assign(static_cast<size_t>(summary_.shape.columns), ColumnType::kFloat64);
    return schema;
  }

  void SetOptionsToWrite(const PiecedValue& value) {
    write_.format = result_.to;
    const bool has_names = value.schema != nullptr && !value.schema->names.empty();
    write_.header = options_.to_header.value_or(has_names);
    write_.separator = result_.to == FileFormat::kLibsvm                   ? " "
                       : Lower(WithoutPackedEnding(to_)).ends_with(".tsv") ? "\t"
                                                                           : ",";
    if (options_.to_separator) write_.separator = *options_.to_separator;
    write_.sparse = options_.sparse;
    write_.cancelled = options_.cancelled;
  }

  int64_t RowsAtOnce() const {
    const double rows = static_cast<double>(std::max<int64_t>(1, summary_.shape.rows));
    double bytes = kBytesOfCell;  // Where a sparse row begins is a number, too.
    if (summary_.format == Format::kSparse && summary_.stored != kUnknown) {
      bytes += static_cast<double>(summary_.stored) / rows * kBytesOfEntry;
    } else {
      const bool has_texts = summary_.schema != nullptr;
      bytes += static_cast<double>(summary_.shape.columns) * (has_texts ? kBytesOfText : kBytesOfCell);
    }
    // Making a piece costs something for each column: a wide one has some rows, too.
    const double least = std::min(kLeastRows, kMostBytesOfLeast / bytes);
    const double most = std::max(kBytesAtOnce / bytes, least);
    return RowsWithGroup(std::max<int64_t>(1, static_cast<int64_t>(most)), summary_, bytes);
  }

  Result<Value> Read(int64_t begin, int64_t end) const {
    if (read_.data_type == DataType::kFrame) {
      HEDDLE_ASSIGN_OR_RETURN(Frame rows, ReadFrameRows(read_, summary_, begin, end, files_));
      if (writes_frame_) return Value(std::move(rows));
      Result<Matrix> cells = MatrixOf(rows);
      if (!cells.ok())
        return cells.status().WithNote(fmt::format("format '{}' holds matrices only", Name(result_.to)));
      return Value(*std::move(cells));
    }
    HEDDLE_ASSIGN_OR_RETURN(Matrix rows, ReadRows(read_, summary_, begin, end, files_));
    LookForLargeIntegers(rows);
    if (!writes_frame_) return Value(std::move(rows));
    HEDDLE_ASSIGN_OR_RETURN(rows, ToDense(rows));
    std::vector<Column> columns;
    std::vector<double> cells(static_cast<size_t>(rows.rows()));
    for (int64_t j = 0; j < rows.columns(); ++j) {
      for (int64_t i = 0; i < rows.rows(); ++i)
        cells[static_cast<size_t>(i)] = rows.data()[i * rows.columns() + j];
      HEDDLE_ASSIGN_OR_RETURN(Column column, Column::OfDoubles(cells));
      columns.push_back(std::move(column));
    }
    return Value(Frame(SchemaToWrite(), std::move(columns)));
  }

  // Those of a table whose cells became doubles.
  void LookForLargeIntegers(const Matrix& rows) const {
    if (summary_.table == nullptr) return;
    for (int64_t j = 0; j < rows.columns(); ++j) {
      if (summary_.table->types[static_cast<size_t>(j)] != ColumnType::kInteger64) continue;
      for (int64_t i = 0; i < rows.rows(); ++i)
        if (std::abs(rows.At(i, j)) >= kExactIntegers) has_large_integers_ = true;
    }
  }

  Status WriteWhole(const PiecedValue& value) const {
    const Result<Value> whole = value.read(0, value.shape.rows);
    if (whole.ok()) return WriteValue(*whole, to_, write_, files_);
    if (whole.status().code() != StatusCode::kResourceExhausted) return whole.status();
    return whole.status().WithNote(
        fmt::format("the cells of a file in format '{}' come in any order, so that all of them are in memory "
                    "before the first row is written",
                    Name(result_.from)));
  }

  const std::string& from_;
  const std::string& to_;
  const ConvertOptions& options_;
  Files& files_;
  Converted result_;
  std::optional<DataType> data_type_;
  std::optional<bool> header_;
  std::optional<std::string> separator_, schema_;
  ReadOptions read_;
  FileSummary summary_;
  WriteOptions write_;
  bool writes_frame_ = false;
  mutable std::atomic<bool> has_large_integers_ = false;  // pieces are read by several threads
};

}  // namespace

Result<Converted> ConvertFile(const std::string& from, const std::string& to, const ConvertOptions& options,
                              Files& files) {
  return Conversion(from, to, options, files).Run();
}

}  // namespace heddle::ops
