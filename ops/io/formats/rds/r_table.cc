// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/rds/r_table.h"

#include <algorithm>
#include <utility>

#include "core/text/utf8.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/io/formats/rds/r_array.h"
#include "ops/io/formats/rds/r_object.h"
#include "ops/io/formats/rds/r_texts.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

std::string InQuotes(std::string_view name) { return fmt::format("'{}'", ShownInLine(name, 40)); }

// How many rows a data frame has that has no columns: "row.names" are the names of the rows, or NA and how
// many there are, with a minus where R has counted them itself.
Result<int64_t> RowsOfNames(const RFile& file, const RObject* names) {
  if (names == nullptr) return 0;
  if (names->type != RType::kInteger || names->length != 2) return names->length;
  int64_t numbers[2];
  std::vector<int64_t> missing;
  HEDDLE_RETURN_IF_ERROR(ReadIntegers(file, *names, RCells::kIntegers, 0, 2, numbers, &missing));
  return missing.empty() || missing[0] != 0 ? 2 : std::abs(numbers[1]);
}

class TableMaker {
 public:
  explicit TableMaker(const RFile& file) : file_(file) {}

  Result<RTable> OfDataFrame(const RObject& frame) {
    const RObject* const names = file_.Attribute(frame, "names");
    if (names != nullptr && names->length != frame.length)
      return file_.Damaged("a data frame has other names than columns");
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> texts, TextsOf(file_, names));
    const RObject* const row_names = file_.Attribute(frame, "row.names");
    table_.has_row_names = row_names != nullptr && row_names->type == RType::kTexts;
    HEDDLE_ASSIGN_OR_RETURN(table_.rows, RowsOfNames(file_, row_names));
    size_t place = 0;
    for (const RObject* column = file_.FirstChild(frame); column != nullptr;
         column = file_.Next(*column), ++place)
      HEDDLE_RETURN_IF_ERROR(AddColumn(*column, place < texts.size() ? texts[place] : "", place));
    if (texts.empty()) table_.names.clear();
    return std::move(table_);
  }

  Result<RTable> OfVector(const RObject& vector) {
    HEDDLE_ASSIGN_OR_RETURN(const RCells cells, CellsOf(file_, vector));
    if (cells == RCells::kNone) return NoTable(file_, vector);
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(file_, vector));
    if (sizes.size() > 2)
      return DataLoss("cannot read '{}': it is an array of {} indexes, a frame has two", file_.path(),
                      sizes.size())
          .WithNote("data_type=\"matrix\" reads it");
    const RObject* const names = NamesOfIndex(file_, vector, 0);
    table_.has_row_names = names != nullptr && names->type == RType::kTexts;
    table_.rows = sizes[0];
    if (sizes.size() == 1) {
      table_.columns.push_back({&vector, 0, cells});
      return std::move(table_);
    }
    // Each would be gone through from the beginning.
    if (cells == RCells::kTexts)
      return DataLoss("cannot read '{}': it is a matrix of texts", file_.path())
          .WithNote("as.data.frame(x), in R, makes a data frame of it");
    HEDDLE_RETURN_IF_ERROR(CheckColumns(sizes[1]));
    HEDDLE_ASSIGN_OR_RETURN(table_.names, NamesOfColumns(vector, sizes[1]));
    for (int64_t j = 0; j < sizes[1]; ++j) table_.columns.push_back({&vector, j * sizes[0], cells});
    return std::move(table_);
  }

 private:
  Status AddColumn(const RObject& column, const std::string& name, size_t place) {
    const bool is_first = table_.columns.empty() && place == 0;
    const std::string shown = name.empty() ? std::to_string(place + 1) : InQuotes(name);
    HEDDLE_ASSIGN_OR_RETURN(const RCells cells, CellsOf(file_, column));
    if (cells == RCells::kNone) {
      HEDDLE_ASSIGN_OR_RETURN(const std::string what, DescribeObject(file_, column));
      return DataLoss("cannot read '{}': column {} is {}, no vector", file_.path(), shown, what)
          .WithNote("leave it out, in R: x[sapply(x, is.atomic)]");
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf(file_, column));
    if (sizes.size() > 2 || (sizes.size() == 2 && cells == RCells::kTexts))
      return DataLoss("cannot read '{}': column {} is {}", file_.path(), shown,
                      sizes.size() > 2 ? "an array" : "a matrix of texts");
    if (is_first) table_.rows = sizes[0];
    if (sizes[0] != table_.rows)
      return DataLoss("cannot read '{}': column {} has {} rows, others {}", file_.path(), shown, sizes[0],
                      table_.rows);
    if (sizes.size() == 1) {
      table_.columns.push_back({&column, 0, cells});
      table_.names.push_back(name);
      return OkStatus();
    }
    // A matrix is several columns, called as write.csv() calls them.
    HEDDLE_RETURN_IF_ERROR(CheckColumns(sizes[1]));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOfColumns(column, sizes[1]));
    for (int64_t j = 0; j < sizes[1]; ++j) {
      table_.columns.push_back({&column, j * sizes[0], cells});
      table_.names.push_back(
          fmt::format("{}.{}", name, names.empty() ? std::to_string(j + 1) : names[static_cast<size_t>(j)]));
    }
    return OkStatus();
  }

  // A matrix without rows may have any number.
  Status CheckColumns(int64_t columns) {
    constexpr int64_t kMostColumns = int64_t{1} << 24;
    return columns <= kMostColumns ? OkStatus()
                                   : DataLoss("cannot read '{}': it has {} columns, a frame has at most {}",
                                              file_.path(), columns, kMostColumns);
  }

  Result<std::vector<std::string>> NamesOfColumns(const RObject& matrix, int64_t columns) {
    const RObject* const names = NamesOfIndex(file_, matrix, 1);
    if (names == nullptr || names->length != columns) return std::vector<std::string>();
    return TextsOf(file_, names);
  }

  const RFile& file_;
  RTable table_;
};

}  // namespace

Schema RTable::schema() const {
  Schema schema;
  for (const RColumn& column : columns) schema.types.push_back(TypeOf(column.cells));
  schema.names = names;
  return schema;
}

std::string RTable::Describe(size_t column) const {
  return names.empty() || names[column].empty() ? fmt::format("column {}", column + 1)
                                                : fmt::format("column {}", InQuotes(names[column]));
}

Result<bool> IsDataFrame(const RFile& file, const RObject& object) {
  if (object.type != RType::kList) return false;
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> classes, ClassesOf(file, object));
  return std::find(classes.begin(), classes.end(), "data.frame") != classes.end();
}

Result<RTable> TableOf(const RFile& file, const RObject& object) {
  HEDDLE_ASSIGN_OR_RETURN(const bool is_frame, IsDataFrame(file, object));
  return is_frame ? TableMaker(file).OfDataFrame(object) : TableMaker(file).OfVector(object);
}

Status CheckNumbers(const RFile& file, const RTable& table) {
  for (size_t j = 0; j < table.columns.size(); ++j) {
    if (AreNumbers(table.columns[j].cells)) continue;
    const bool are_times =
        table.columns[j].cells == RCells::kDays || table.columns[j].cells == RCells::kSeconds;
    return DataLoss("cannot read '{}': {} holds {}", file.path(), table.Describe(j),
                    are_times ? "dates, which are texts" : "texts")
        .WithNote("say data_type=\"frame\"; transformencode makes numbers of texts");
  }
  return OkStatus();
}

Result<Matrix> ReadTableAsMatrix(const ReadOptions& options, const RFile& file, const RTable& table,
                                 int64_t begin, int64_t end) {
  constexpr int64_t kRowsAtOnce = int64_t{1} << 14;
  const int64_t columns = table.number_of_columns();
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Dense(end - begin, columns));
  FirstFailure failure;
  ParallelFor(columns, 1, [&](int64_t first, int64_t last) {
    std::vector<double> cells(static_cast<size_t>(std::min(kRowsAtOnce, end - begin)));
    for (int64_t j = first; j < last; ++j) {
      const RColumn& column = table.columns[static_cast<size_t>(j)];
      for (int64_t row = begin; row < end; row += kRowsAtOnce) {
        if (IsCancelled(options.cancelled)) return;
        const int64_t count = std::min(kRowsAtOnce, end - row), at = column.begin + row;
        const Status status = ReadNumbers(file, *column.vector, column.cells, at, at + count, cells.data());
        if (!status.ok()) return failure.Add(j, status);
        double* const out = matrix.mutable_data() + (row - begin) * columns + j;
        for (int64_t i = 0; i < count; ++i) out[i * columns] = cells[static_cast<size_t>(i)];
      }
    }
  });
  if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
  HEDDLE_RETURN_IF_ERROR(failure.status());
  return matrix;
}

Result<Frame> ReadTable(const ReadOptions& options, const RFile& file, const RTable& table,
                        const std::shared_ptr<const Schema>& schema, int64_t begin, int64_t end) {
  std::vector<Column> columns(table.columns.size());
  FirstFailure failure;
  ParallelFor(table.number_of_columns(), 1, [&](int64_t first, int64_t last) {
    for (auto j = static_cast<size_t>(first); j < static_cast<size_t>(last); ++j) {
      if (IsCancelled(options.cancelled)) return;
      const RColumn& column = table.columns[j];
      Result<Column> read = ReadColumn(file, *column.vector, column.cells, column.begin + begin,
                                       column.begin + end, table.Describe(j));
      if (!read.ok()) return failure.Add(static_cast<int64_t>(j), read.status());
      columns[j] = *std::move(read);
    }
  });
  if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
  HEDDLE_RETURN_IF_ERROR(failure.status());
  return Frame(schema, std::move(columns));
}

}  // namespace heddle::ops
