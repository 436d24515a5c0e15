// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/rds/rds.h"

#include <optional>
#include <utility>

#include "ops/frame/arrange.h"
#include "ops/io/formats/options.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/rds/r_array.h"
#include "ops/io/formats/rds/r_object.h"
#include "ops/io/formats/rds/r_sparse.h"
#include "ops/io/formats/rds/r_table.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/single_cells.h"

namespace heddle::ops {
namespace {

// What is asked for, in a file that is open: one of the three. A matrix whose columns have names is an array
// and a table.
struct ChosenObject {
  std::optional<RArray> array;
  std::optional<RSparse> sparse;
  std::optional<RTable> table;
  bool transposed = false;

  Shape shape() const {
    if (array) return array->shape();
    if (table) return {table->rows, table->number_of_columns()};
    const Shape& shape = sparse->shape();
    return transposed ? Shape{shape.columns, shape.rows} : shape;
  }
};

Result<ChosenObject> Choose(const ReadOptions& options, const RFile& file) {
  ChosenObject chosen{.transposed = options.transposed};
  HEDDLE_ASSIGN_OR_RETURN(const RObject* const object, ChooseObject(options, file));
  HEDDLE_ASSIGN_OR_RETURN(const bool is_sparse, HoldsSparse(file, *object));
  const bool is_frame = options.data_type == DataType::kFrame;
  if (is_frame && object->type == RType::kS4) {
    if (!is_sparse) return NoTable(file, *object);
    return DataLoss("cannot read '{}': it is a sparse matrix, no data frame", options.path)
        .WithNote("data_type=\"matrix\" reads it");
  }
  if (is_sparse) {
    HEDDLE_ASSIGN_OR_RETURN(chosen.sparse, RSparse::Open(file, *object));
    return chosen;
  }
  HEDDLE_ASSIGN_OR_RETURN(const RCells cells, CellsOf(file, *object));
  if (!is_frame && (AreNumbers(cells) || object->type == RType::kS4)) {
    HEDDLE_ASSIGN_OR_RETURN(chosen.array, ArrayOf(file, *object, options.transposed));
    const bool has_names = chosen.array->sizes.size() == 2 && NamesOfIndex(file, *object, 1) != nullptr &&
                           NamesOfIndex(file, *object, 1)->type == RType::kTexts;
    if (has_names && !options.transposed) {
      HEDDLE_ASSIGN_OR_RETURN(chosen.table, TableOf(file, *object));
    }
    return chosen;
  }
  HEDDLE_ASSIGN_OR_RETURN(chosen.table, TableOf(file, *object));
  if (options.transposed)
    return DataLoss("cannot read '{}': transposed=TRUE turns matrices, not tables", options.path)
        .WithNote("t(read(FILE)) turns a table of numbers");
  return chosen;
}

constexpr char kRowNamesLeftOut[] =
    "the names of the rows are left out: data.frame(name = rownames(x), x), in R, makes a column of them";

}  // namespace

Result<FileSummary> SummarizeRds(const ReadOptions& options, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const RFile file, RFile::Open(options, files));
  HEDDLE_ASSIGN_OR_RETURN(const ChosenObject chosen, Choose(options, file));
  FileSummary summary;
  summary.shape = chosen.shape();
  HEDDLE_RETURN_IF_ERROR(CheckLength(options.path, summary.shape, chosen.sparse.has_value()));
  HEDDLE_RETURN_IF_ERROR(CheckSaidSizes(options, summary.shape));
  summary.is_unordered = true;  // Columns are whole in the file.
  summary.text_bytes = file.bytes().size();
  if (chosen.table) {
    auto schema = std::make_shared<Schema>(chosen.table->schema());
    if (AreCounted(schema->names)) schema->names.clear();
    if (chosen.table->has_row_names) summary.warnings.emplace_back(kRowNamesLeftOut);
    if (options.data_type == DataType::kFrame) {
      HEDDLE_RETURN_IF_ERROR(CheckSaidTypes(options, *schema));
      summary.schema = std::move(schema);
      return summary;
    }
    HEDDLE_RETURN_IF_ERROR(CheckNumbers(file, *chosen.table));
    summary.table = TableOfMatrix(std::move(schema));
  }
  summary.stored = chosen.sparse ? chosen.sparse->stored() : kUnknown;
  summary.format = ChooseFormat(summary.shape, summary.stored);
  return summary;
}

Result<Matrix> ReadRdsMatrix(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                             int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const RFile file, RFile::Open(options, files));
  HEDDLE_ASSIGN_OR_RETURN(const ChosenObject chosen, Choose(options, file));
  if (file.bytes().size() != summary.text_bytes || chosen.shape() != summary.shape) return ItChanged(options);
  if (chosen.array) return ReadArray(options, file, *chosen.array, row_begin, row_end);
  if (chosen.table) {
    HEDDLE_RETURN_IF_ERROR(CheckNumbers(file, *chosen.table));
    return ReadTableAsMatrix(options, file, *chosen.table, row_begin, row_end);
  }
  return CollectArray(options, summary, *chosen.sparse, chosen.transposed, row_begin, row_end);
}

Result<Frame> ReadRdsFrame(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                           int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const RFile file, RFile::Open(options, files));
  HEDDLE_ASSIGN_OR_RETURN(const ChosenObject chosen, Choose(options, file));
  if (file.bytes().size() != summary.text_bytes || !chosen.table || chosen.shape() != summary.shape ||
      chosen.table->schema().types != summary.schema->types)
    return ItChanged(options);
  return ReadTable(options, file, *chosen.table, summary.schema, row_begin, row_end);
}

}  // namespace heddle::ops
