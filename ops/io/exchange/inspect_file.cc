// SPDX-License-Identifier: Apache-2.0
#include "ops/io/exchange/inspect_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text/double_text.h"
#include "core/text/text_encoding.h"
#include "ops/io/exchange/inspect_table.h"
#include "ops/io/exchange/read_call.h"
#include "ops/io/exchange/resolve.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/json/jsonl.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/records.h"

namespace heddle::ops {
namespace {

constexpr int64_t kCellsAtOnce = 1 << 20;
constexpr int64_t kBytesOfCell = 8;
constexpr int64_t kBytesOfEntry = 16;  // of a sparse matrix, its column with it

Node ReadNode(const InspectOptions& options) {
  Node node;
  node.op = "read";
  if (options.format) node.SetAttribute("format", std::string(Name(*options.format)));
  if (options.header) node.SetAttribute("header", *options.header);
  if (options.separator) node.SetAttribute("sep", *options.separator);
  if (options.dataset) node.SetAttribute("dataset", *options.dataset);
  if (options.transposed) node.SetAttribute("transposed", true);
  return node;
}

// Whether a line that is not blank follows the first one.
Result<bool> HasSecondLine(const ReadOptions& read, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const TextFile text, OpenText(read, files));
  RecordReader records(text, QuoteGrammar::OfFields(read));
  int64_t lines = 0;
  for (std::string_view record; lines < 2 && records.Next(&record);) lines += !IsBlankLine(record, read);
  HEDDLE_RETURN_IF_ERROR(records.status());
  return lines == 2;
}

// Where the lines may mean two things, read() refuses; here it is a warning, and they are taken for a table.
Result<ReadOptions> ResolveOrGuess(const std::string& path, const InspectOptions& options, Files& files,
                                   FileFacts* facts) {
  Node node = ReadNode(options);
  Result<ReadOptions> read = ResolveAnyType(node, path, files);
  if (read.ok() || read.status().code() != StatusCode::kDataLoss || options.header) return read;
  node.SetAttribute("header", true);
  Result<ReadOptions> table = ResolveReadOptions(node, path, files);
  if (!table.ok() || table->format != FileFormat::kCsv) return read;
  const Status& why = read.status();
  facts->warnings.push_back(why.notes().empty() ? why.message()
                                                : fmt::format("{}; {}", why.message(), why.notes()[0]));
  // In a table names may be told from numbers. Where they stand in one line, names are the more frequent.
  ReadOptions with_names = *table;
  with_names.header.reset();
  if (GuessFormat(files, &with_names).ok()) return with_names;
  facts->why_header = "guessed";
  HEDDLE_ASSIGN_OR_RETURN(table->header, HasSecondLine(*table, files));
  return table;
}

std::string WhyFormat(const ReadOptions& read, const InspectOptions& options, bool has_metadata) {
  if (options.format) return "--format says so";
  if (!read.guessed) return has_metadata ? "its .mtd says so" : "no other format fits";
  switch (*read.format) {
    case FileFormat::kMatrixMarket: return "its first line is the banner of MatrixMarket";
    case FileFormat::kLibsvm: return "its lines are a label and index:value pairs";
    case FileFormat::kText: return "its lines are row, column and value";
    case FileFormat::kJsonl: return "its lines are JSON";
    case FileFormat::kArff: return "its first line is @relation";
    case FileFormat::kCsv: return "no other format fits";
    default: return "it begins with the mark of such files";
  }
}

}  // namespace

std::string TransposeOf(std::string_view writer) {
  return fmt::format(
      "{} wrote it and keeps matrices column by column: this is the transpose of the matrix there", writer);
}

namespace {

void AppendCell(double cell, std::string* text) {
  if (IsExactInteger(cell))
    text->append(std::to_string(static_cast<int64_t>(cell)));
  else
    AppendDouble(cell, text);
}

// What the values of a file are whose reader knows its rows: piece by piece.
class ValueInspector {
 public:
  ValueInspector(const ReadOptions& read, const InspectOptions& options, Files& files, FileFacts* facts)
      : read_(read), options_(options), files_(files), facts_(*facts) {}

  Status Run() {
    HEDDLE_ASSIGN_OR_RETURN(summary_, Summarize(read_, files_));
    facts_.rows = summary_.shape.rows;
    facts_.columns = summary_.shape.columns;
    facts_.column_groups = summary_.column_groups;
    if (!summary_.column_major_writer.empty())
      facts_.warnings.push_back(TransposeOf(summary_.column_major_writer) +
                                "; transposed=TRUE in read() turns it");
    facts_.warnings.insert(facts_.warnings.end(), summary_.warnings.begin(), summary_.warnings.end());
    const int64_t shown = std::min(facts_.columns, FileFacts::kMostColumns);
    const Schema* const named = facts_.is_frame ? summary_.schema.get() : summary_.table.get();
    for (int64_t j = 0; j < shown; ++j)
      facts_.facts.emplace_back().name = named != nullptr ? named->NameOf(j) : fmt::format("C{}", j + 1);
    if (facts_.is_frame) looks_.resize(facts_.facts.size());
    const int64_t rows_at_once = RowsAtOnce();
    const int64_t most = MostRows();
    facts_.nonzeros = facts_.is_frame ? kUnknown : 0;
    const bool are_texts = facts_.is_frame && read_.format == FileFormat::kJsonl && read_.schema.empty();
    if (are_texts) HEDDLE_RETURN_IF_ERROR(TakeJsonl(std::min(most, facts_.rows)));
    for (int64_t row = 0; !are_texts && row < std::min(most, facts_.rows);) {
      const int64_t end = std::min({row + rows_at_once, most, facts_.rows});
      HEDDLE_RETURN_IF_ERROR(facts_.is_frame ? TakeFrame(row, end) : TakeMatrix(row, end));
      row = end;
    }
    for (size_t j = 0; j < looks_.size(); ++j) {
      const std::string name = facts_.facts[j].name;
      facts_.facts[j] = looks_[j].Facts(Quotes::kText);
      facts_.facts[j].name = name;
      // Lines of JSON leave out what is missing.
      facts_.facts[j].missing += std::min(most, facts_.rows) - facts_.facts[j].cells();
    }
    facts_.rows_looked_at = std::min(most, facts_.rows);
    facts_.looked_at_all = facts_.rows_looked_at == facts_.rows;
    WarnOfColumns(&facts_);
    return OkStatus();
  }

 private:
  double BytesOfRow() const {
    const bool is_sparse = summary_.format == Format::kSparse && summary_.stored != kUnknown;
    const double rows = static_cast<double>(std::max<int64_t>(1, facts_.rows));
    const double cells = is_sparse ? static_cast<double>(summary_.stored) / rows * kBytesOfEntry
                                   : static_cast<double>(facts_.columns) * kBytesOfCell;
    return kBytesOfCell + cells;  // Where a sparse row begins is a number, too.
  }
  int64_t MostRows() const {
    const double rows = static_cast<double>(options_.bytes_looked_at) / BytesOfRow();
    return rows >= static_cast<double>(facts_.rows) ? facts_.rows
                                                    : std::max<int64_t>(1, static_cast<int64_t>(rows));
  }
  int64_t RowsAtOnce() const {
    if (summary_.is_unordered) return std::max<int64_t>(1, facts_.rows);
    const double bytes = static_cast<double>(kCellsAtOnce * kBytesOfCell);
    const auto rows = std::max<int64_t>(1, static_cast<int64_t>(bytes / BytesOfRow()));
    return RowsWithGroup(rows, summary_, BytesOfRow());
  }

  Status TakeMatrix(int64_t begin, int64_t end) {
    HEDDLE_ASSIGN_OR_RETURN(const Matrix rows, ReadRows(read_, summary_, begin, end, files_));
    bool is_doubtful = false;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      const bool is_shown = begin + i < options_.rows_shown;
      std::vector<std::string>* shown = nullptr;
      if (is_shown) {
        shown = &facts_.first_rows.emplace_back();
        shown->assign(facts_.facts.size(), "0");
      }
      const auto take = [&](int64_t column, double cell) {
        facts_.nonzeros += cell != 0;
        if (column >= static_cast<int64_t>(facts_.facts.size())) return;
        ColumnFacts& facts = facts_.facts[static_cast<size_t>(column)];
        ++(cell == std::trunc(cell) ? facts.integers : facts.fractions);
        facts.too_large += std::abs(cell) >= 0x1p63 && cell != -0x1p63;
        facts.AddNumber(cell);
        is_doubtful |= std::abs(cell) >= kExactIntegers && IsInteger(column);
        if (shown == nullptr) return;
        std::string& text = (*shown)[static_cast<size_t>(column)];
        text.clear();
        AppendCell(cell, &text);
      };
      if (rows.IsSparse()) {
        for (int64_t k = rows.row_offsets()[i]; k < rows.row_offsets()[i + 1]; ++k)
          take(rows.column_indexes()[k], rows.values()[k]);
      } else {
        for (int64_t j = 0; j < rows.columns(); ++j) take(j, rows.data()[i * rows.columns() + j]);
      }
    }
    // Cells that a sparse matrix does not have are zeros.
    for (ColumnFacts& column : facts_.facts) {
      const int64_t absent = end - column.cells();
      if (absent == 0) continue;
      column.integers += absent;
      column.zeros += absent;
      column.least = std::min(column.least, 0.0);
      column.greatest = std::max(column.greatest, 0.0);
    }
    if (is_doubtful) LookForLostDigits(rows, begin);
    return OkStatus();
  }

  // Whether the table that a matrix is in the file has integers of 64 bits there.
  bool IsInteger(int64_t column) const {
    return summary_.table != nullptr &&
           summary_.table->types[static_cast<size_t>(column)] == ColumnType::kInteger64;
  }

  // Integers that may have been rounded are looked up in a frame of the same rows. It cannot be made where a
  // number without a sign is larger than an INT64; then every number beyond 2^53 is taken for a rounded one.
  void LookForLostDigits(const Matrix& rows, int64_t begin) {
    ReadOptions read = read_;
    read.data_type = DataType::kFrame;
    FileSummary summary = summary_;
    summary.schema = summary_.table;
    const Result<Frame> table = ReadFrameRows(read, summary, begin, begin + rows.rows(), files_);
    std::string text;
    for (size_t j = 0; j < facts_.facts.size(); ++j) {
      const auto column = static_cast<int64_t>(j);
      if (!IsInteger(column)) continue;
      ColumnFacts& facts = facts_.facts[j];
      ColumnLook look;
      for (int64_t i = 0; i < rows.rows(); ++i) {
        const double cell = rows.At(i, column);
        if (!(std::abs(cell) >= kExactIntegers)) continue;
        text.clear();
        if (table.ok()) {
          table->AppendText(i, column, &text);
          look.Add({text}, begin + i + 1);
        } else if (facts.inexact++ == 0) {
          AppendDouble(cell, &text);
          facts.first_inexact = text;
        }
      }
      const ColumnFacts found = look.Facts(Quotes::kNothing);
      if (facts.inexact == 0) facts.first_inexact = found.first_inexact;
      facts.inexact += found.inexact;
    }
  }

  // Lines may leave out most columns: what they leave out is counted, not read.
  Status TakeJsonl(int64_t rows) {
    const size_t shown = facts_.facts.size();
    facts_.first_rows.resize(static_cast<size_t>(std::min(rows, options_.rows_shown)),
                             std::vector<std::string>(shown));
    HEDDLE_ASSIGN_OR_RETURN(const TextFile text, TextFile::Open(read_.path, files_));
    HEDDLE_RETURN_IF_ERROR(VisitJsonlCells(read_, summary_, text, rows,
                                           [&](int64_t row, int64_t column, const JsonValue& value) {
                                             const auto j = static_cast<size_t>(column);
                                             if (j >= shown) return;
                                             looks_[j].Add({value.text, value.is_text}, row + 1);
                                             if (row < options_.rows_shown)
                                               facts_.first_rows[static_cast<size_t>(row)][j] = value.text;
                                           }));
    return OkStatus();
  }

  Status TakeFrame(int64_t begin, int64_t end) {
    HEDDLE_ASSIGN_OR_RETURN(const Frame rows, ReadFrameRows(read_, summary_, begin, end, files_));
    const bool is_typed = !LacksSchema(read_);
    std::string text;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      const bool is_shown = begin + i < options_.rows_shown;
      if (is_shown) facts_.first_rows.emplace_back();
      for (size_t j = 0; j < facts_.facts.size(); ++j) {
        text.clear();
        const auto column = static_cast<int64_t>(j);
        rows.AppendText(i, column, &text);
        // Where the file says that it is a text it is one, whatever it looks like.
        const bool is_text = is_typed && !rows.IsMissing(i, column) &&
                             StorageOf(rows.schema()->types[j]) == ColumnStorage::kTexts;
        looks_[j].Add({text, is_text}, begin + i + 1);
        if (is_shown) facts_.first_rows.back().push_back(text);
      }
    }
    return OkStatus();
  }

  const ReadOptions& read_;
  const InspectOptions& options_;
  Files& files_;
  FileFacts& facts_;
  FileSummary summary_;
  std::vector<ColumnLook> looks_;  // Of a frame.
};

// What the .mtd says and the file does not.
void CompareWithMetadata(const ReadOptions& read, FileFacts* facts) {
  if (!facts->has_metadata) return;
  // In a libsvm file the label is no column of the metadata.
  const int64_t columns = facts->columns - (read.format == FileFormat::kLibsvm ? 1 : 0);
  if (read.rows != kUnknown && read.rows != facts->rows)
    facts->warnings.push_back(fmt::format("the .mtd says rows={}, the file has {}", read.rows, facts->rows));
  if (read.columns != kUnknown && read.columns != columns)
    facts->warnings.push_back(fmt::format("the .mtd says cols={}, the file has {}", read.columns, columns));
  if (read.nonzeros != kUnknown && facts->looked_at_all && facts->nonzeros != kUnknown &&
      read.nonzeros != facts->nonzeros)
    facts->warnings.push_back(
        fmt::format("the .mtd says nnz={}, the file has {}", read.nonzeros, facts->nonzeros));
  if (read.data_type == DataType::kMatrix && facts->is_frame)
    facts->warnings.emplace_back("the .mtd says that it is a matrix, but it has texts");
}

// Before what a text begins with.
Status LookAtBytes(const std::string& path, Files& files, FileFacts* facts) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, files.Open(path));
  facts->bytes = file->size();
  CountedBytes buffer;
  HEDDLE_ASSIGN_OR_RETURN(const std::string_view beginning,
                          file->Read(0, std::min<int64_t>(file->size(), 3), &buffer));
  if (ByteOrderMarkBytes(beginning) > 0)
    facts->warnings.emplace_back("it begins with a byte order mark, which is skipped");
  return OkStatus();
}

}  // namespace

namespace {

Result<FileFacts> InspectValue(const std::string& path, const InspectOptions& options, Files& files) {
  FileFacts facts;
  facts.path = path;
  HEDDLE_RETURN_IF_ERROR(LookAtBytes(path, files, &facts));
  if (facts.bytes == 0) return DataLoss("cannot inspect '{}': it is empty", path);
  facts.has_metadata = files.Exists(path + ".mtd");
  HEDDLE_ASSIGN_OR_RETURN(ReadOptions read, ResolveOrGuess(path, options, files, &facts));
  if (read.data_type == DataType::kScalar)
    return DataLoss("cannot inspect '{}': its .mtd says that it is a scalar", path);
  facts.format = *read.format;
  facts.is_frame = read.data_type == DataType::kFrame;
  facts.why = WhyFormat(read, options, facts.has_metadata);
  if (facts.format != FileFormat::kCsv) {
    HEDDLE_RETURN_IF_ERROR(ValueInspector(read, options, files, &facts).Run());
  } else {
    facts.header = read.header.value_or(false);
    facts.separator = read.any_blanks ? "" : read.separator;
    if (facts.why_header.empty())
      facts.why_header = options.header                        ? "--header says so"
                         : !read.guessed && facts.has_metadata ? "its .mtd says so"
                         : facts.header                        ? "no field of line 1 is a number"
                                                               : "line 1 has numbers";
    HEDDLE_RETURN_IF_ERROR(InspectTable(read, options, files, &facts));
  }
  CompareWithMetadata(read, &facts);
  if (options.finds_call) FindReadCall(read, options, files, &facts);
  return facts;
}

}  // namespace

Result<FileFacts> InspectFile(const std::string& path, const InspectOptions& options, Files& files) {
  Result<FileFacts> facts = InspectValue(path, options, files);
  if (facts.ok() || options.dataset) return facts;
  // Of several arrays the first that can be looked at.
  const Status several = facts.status();
  InspectOptions of_one = options;
  for (const std::string& name : several.choices()) {
    of_one.dataset = name;
    facts = InspectValue(path, of_one, files);
    if (!facts.ok()) continue;
    facts->warnings.insert(facts->warnings.begin(), fmt::format("{}; this is '{}'; {}", several.message(),
                                                                name, fmt::join(several.notes(), "; ")));
    return facts;
  }
  return several;
}

}  // namespace heddle::ops
