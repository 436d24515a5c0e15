// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/text/octave.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/text/utf8.h"
#include "core/values/sizes.h"
#include "ops/base/kernel.h"
#include "ops/io/formats/fields.h"
#include "ops/io/formats/lines.h"
#include "ops/io/formats/matrix_market.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/several_arrays.h"
#include "ops/io/formats/single_cells.h"

namespace heddle::ops {
namespace {

// How the cells of a variable stand behind its head.
enum class Layout : uint8_t {
  kNone,         // It is no matrix of numbers.
  kRows,         // A row in a line.
  kColumns,      // A cell in a line, the first index fastest.
  kDiagonal,     // A cell of the diagonal in a line.
  kPermutation,  // A line for each column, or row: where it has its 1, counted from 1.
  kCells,        // Row, column and value in a line.
  kRange         // First, limit and step in a line.
};

struct Variable {
  std::string name, type;
  Layout layout = Layout::kNone;
  std::vector<int64_t> sizes;
  int64_t stored = 0;      // Cells that stand in the file.
  bool of_columns = true;  // A permutation.
  int64_t nested = 0;      // Of a cell array or struct: variables that follow and are parts of it.
  int64_t begin = 0;       // Where its cells begin in the text,
  int64_t lines = 0;       // and the lines before.

  Shape shape() const {
    Shape shape{sizes.empty() ? 1 : sizes[0], 1};
    for (size_t i = 1; i < sizes.size(); ++i) shape.columns = SaturatingProduct(shape.columns, sizes[i]);
    return shape;
  }
};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Layout LayoutOf(std::string_view type) {
  if (Contains(type, "complex")) return Layout::kNone;
  if (type == "bool" || type.ends_with("scalar")) return Layout::kRows;
  if (Contains(type, "range")) return Layout::kRange;
  if (!type.ends_with("matrix")) return Layout::kNone;
  if (type.starts_with("sparse")) return Layout::kCells;
  if (Contains(type, "diagonal")) return Layout::kDiagonal;
  return Contains(type, "permutation") ? Layout::kPermutation : Layout::kRows;
}

// A number, also Octave's mark of a missing one.
std::optional<double> NumberIn(std::string_view word) {
  return word == "NA" ? std::numeric_limits<double>::quiet_NaN() : ParseNumber(word);
}

// The heads of variables, one after the other.
class HeadReader {
 public:
  explicit HeadReader(const TextFile& text) : text_(text), reader_(text) {}

  // False at the end; then status() says whether all is well.
  bool Next(Variable* variable) {
    *variable = Variable();
    std::string_view value;
    while (TakeLine()) {
      if (!IsHead("name", &value)) continue;
      variable->name = value;
      if (!TakeLine() || !IsHead("type", &value)) return Fail("'# type:' must follow '# name:'");
      variable->type = value;
      variable->layout = LayoutOf(variable->type);
      if (!TakeSizes(variable) || !SetSizes(variable)) return false;
      variable->begin = reader_.offset();
      variable->lines = lines_;
      return true;
    }
    return false;
  }
  Status status() const { return reader_.status().ok() ? status_ : reader_.status(); }

 private:
  bool TakeLine() {
    if (!status_.ok() || !reader_.Next(&line_)) return false;
    ++lines_;
    return true;
  }

  // "# key: value"
  bool IsHead(std::string_view key, std::string_view* value) const {
    std::string_view rest = Trim(line_);
    if (!rest.starts_with("# ")) return false;
    rest.remove_prefix(2);
    if (!rest.starts_with(key) || !rest.substr(key.size()).starts_with(":")) return false;
    *value = Trim(rest.substr(key.size() + 1));
    return true;
  }

  bool Fail(std::string_view what) {
    if (status_.ok())
      status_ =
          DataLoss("cannot read '{}': line {}: '{}': {}", text_.path(), lines_, ShownInLine(line_, 60), what);
    return false;
  }

  // The line of this head and its number.
  bool Number(std::string_view key, int64_t* number) {
    std::string_view value;
    if (!TakeLine() || !IsHead(key, &value)) return Fail(fmt::format("it must be '# {}:'", key));
    return (TakeInteger(&value, number) && value.empty() && *number >= 0) || Fail("it must be a number");
  }

  // What stands between the type and the cells.
  bool TakeSizes(Variable* variable) {
    const std::string& type = variable->type;
    const auto rows_and_columns = [&] {
      variable->sizes.resize(2);
      return Number("rows", &variable->sizes[0]) && Number("columns", &variable->sizes[1]);
    };
    switch (variable->layout) {
      case Layout::kCells: return Number("nnz", &variable->stored) && rows_and_columns();
      case Layout::kDiagonal: return rows_and_columns();
      case Layout::kPermutation: {
        int64_t size = 0;
        std::string_view orient;
        if (!Number("size", &size) || !TakeLine()) return Fail("the size of a permutation is missing");
        if (!IsHead("orient", &orient)) return Fail("it must be '# orient:'");
        variable->of_columns = orient != "r";
        variable->sizes = {size, size};
        return true;
      }
      case Layout::kRange:
        return (TakeLine() && TakeLine()) || Fail("a range is cut off");  // The names, the numbers.
      case Layout::kRows:
        if (!type.ends_with("matrix")) return true;  // One number.
        return TakeNextSizes(variable);
      case Layout::kColumns: return true;
      case Layout::kNone: break;
    }
    if (type == "cell")
      return rows_and_columns() &&
             SetNested(variable, SaturatingProduct(variable->sizes[0], variable->sizes[1]));
    if (type == "scalar struct" || type == "struct") {
      int64_t fields = 0;
      return TakeDimensions(variable) && Number("length", &fields) && SetNested(variable, fields);
    }
    return !Contains(type, "string") || SkipTexts();
  }

  static bool SetNested(Variable* variable, int64_t count) {
    variable->nested = count;
    return true;
  }

  // "# rows:" and "# columns:", or "# ndims:" and the sizes in a line.
  bool TakeNextSizes(Variable* variable) {
    std::string_view value;
    if (!TakeLine()) return Fail("its sizes are missing");
    int64_t number = 0;
    if (IsHead("rows", &value)) {
      variable->sizes.resize(2);
      return ((TakeInteger(&value, &variable->sizes[0]) && variable->sizes[0] >= 0) ||
              Fail("it must be a number")) &&
             Number("columns", &variable->sizes[1]);
    }
    if (!IsHead("ndims", &value) || !TakeInteger(&value, &number))
      return Fail("it must be '# rows:' or '# ndims:'");
    variable->layout = Layout::kColumns;
    return TakeSizesInLine(number, variable);
  }

  bool TakeDimensions(Variable* variable) {
    int64_t count = 0;
    return Number("ndims", &count) && TakeSizesInLine(count, variable);
  }

  bool TakeSizesInLine(int64_t count, Variable* variable) {
    constexpr int64_t kMostIndexes = 64;
    if (count < 1 || count > kMostIndexes || !TakeLine()) return Fail("its sizes are missing");
    std::string_view rest = line_;
    variable->sizes.resize(static_cast<size_t>(count));
    for (int64_t& size : variable->sizes)
      if (!TakeInteger(&rest, &size) || size < 0) return Fail("it must be the sizes of an array");
    return true;
  }

  // Texts may have lines that look like heads.
  bool SkipTexts() {
    int64_t count = 0;
    if (!Number("elements", &count)) return false;
    for (int64_t i = 0; i < count; ++i) {
      int64_t length = 0;
      if (!Number("length", &length)) return false;
      for (int64_t taken = -1; taken < length; taken += static_cast<int64_t>(line_.size()) + 1)
        if (!TakeLine()) return Fail("a text is cut off");
    }
    return true;
  }

  bool SetSizes(Variable* variable) {
    if (variable->layout == Layout::kRange) {
      std::string_view rest = line_;
      double numbers[3];
      for (double& number : numbers) {
        const std::optional<double> found = NumberIn(TakeBlankWord(&rest));
        if (!found || !std::isfinite(*found)) return Fail("a range has a first number, a limit and a step");
        number = *found;
      }
      const auto [first, limit, step] = numbers;
      // As many steps as Octave makes, which takes a limit that is missed by a rounding for reached.
      constexpr double kRounding = 3 * std::numeric_limits<double>::epsilon();
      const double steps = step == 0 ? -1 : std::floor((limit - first) / step * (1 + kRounding));
      if (steps >= 1e15) return Fail("a range has too many numbers");
      variable->sizes = {1, steps < 0 ? 0 : static_cast<int64_t>(steps) + 1};
      variable->stored = 1;
      range_ = {first, limit, step};
      return true;
    }
    const Shape shape = variable->shape();
    switch (variable->layout) {
      case Layout::kCells: break;
      case Layout::kDiagonal: variable->stored = std::min(shape.rows, shape.columns); break;
      case Layout::kPermutation: variable->stored = shape.rows; break;
      default: variable->stored = shape.Cells();
    }
    return true;
  }

 public:
  struct Range {
    double first = 0, limit = 0, step = 0;
  };
  // Of the variable that was read last.
  const Range& range() const { return range_; }

 private:
  const TextFile& text_;
  LineReader reader_;
  std::string_view line_;
  int64_t lines_ = 0;
  Range range_;
  Status status_;
};

struct Chosen {
  Variable variable;
  HeadReader::Range range;
};

// The variable that is asked for. With `first` none is looked at behind the first one that may be it.
Result<Chosen> Choose(const ReadOptions& options, const TextFile& text, bool first) {
  HeadReader reader(text);
  Chosen chosen;
  std::vector<std::string> names;
  int64_t nested = 0;
  for (Variable variable; reader.Next(&variable);) {
    const bool is_part = nested > 0;
    nested += variable.nested - is_part;
    if (is_part) continue;
    const bool is_matrix = variable.layout != Layout::kNone;
    if (is_matrix) names.push_back(variable.name);
    if (options.dataset.empty() ? !is_matrix || names.size() > 1 : variable.name != options.dataset) continue;
    chosen = {variable, reader.range()};
    if (!options.dataset.empty() && !is_matrix)
      return DataLoss("cannot read '{}': variable '{}' is a {}, not a matrix of real numbers", options.path,
                      variable.name, ShownInLine(variable.type, 40));
    if (first || !options.dataset.empty()) return chosen;
  }
  HEDDLE_RETURN_IF_ERROR(reader.status());
  if (names.empty())
    return DataLoss("cannot read '{}': it holds no matrix of numbers", options.path)
        .WithNote("save -text FILE X, in Octave, writes one");
  if (!options.dataset.empty())
    return DataLoss("cannot read '{}': it has no variable '{}'", options.path, options.dataset)
        .WithNote("it has: " + ListOfArrays(names));
  if (names.size() == 1) return chosen;
  return SeveralArrays(options.path, "matrices", names);
}

// The cells of a variable, line by line.
class CellLines {
 public:
  CellLines(const ReadOptions& options, const TextFile& text, const Variable& variable)
      : options_(options), variable_(variable), reader_(text, variable.begin), lines_(variable.lines) {}

  Status TakeLine() {
    if (IsCancelled(options_.cancelled)) return Cancelled("cancelled");
    do {
      if (!reader_.Next(&line_)) {
        HEDDLE_RETURN_IF_ERROR(reader_.status());
        return DataLoss("cannot read '{}': it is cut off inside of variable '{}'", options_.path,
                        variable_.name);
      }
      ++lines_;
    } while (Trim(line_).empty());
    rest_ = line_;
    return OkStatus();
  }
  Status TakeNumber(double* number) {
    const std::string_view word = TakeBlankWord(&rest_);
    const std::optional<double> found = NumberIn(word);
    if (!found)
      return Malformed(word.empty() ? "it has too few numbers" : "it holds something else than numbers");
    *number = *found;
    return OkStatus();
  }
  Status EndLine() const { return Trim(rest_).empty() ? OkStatus() : Malformed("it has too many numbers"); }
  Status TakeOnly(double* number) {
    HEDDLE_RETURN_IF_ERROR(TakeLine());
    HEDDLE_RETURN_IF_ERROR(TakeNumber(number));
    return EndLine();
  }
  Status TakeIndex(int64_t* index) {
    if (!TakeInteger(&rest_, index)) return Malformed("it must begin with a row and a column");
    --*index;
    return OkStatus();
  }

 private:
  Status Malformed(std::string_view what) const {
    return DataLoss("cannot read '{}': line {}: '{}': {}", options_.path, lines_, ShownInLine(line_, 60),
                    what);
  }

  const ReadOptions& options_;
  const Variable& variable_;
  LineReader reader_;
  int64_t lines_;
  std::string_view line_, rest_;
};

// Rows [begin, end) of a variable whose cells all stand in the file.
Status FillDense(CellLines* lines, const Variable& variable, int64_t begin, int64_t end, double* out) {
  const Shape shape = variable.shape();
  if (variable.layout == Layout::kRows) {
    for (int64_t row = 0; row < end && shape.columns > 0; ++row) {
      HEDDLE_RETURN_IF_ERROR(lines->TakeLine());
      if (row < begin) continue;
      for (int64_t column = 0; column < shape.columns; ++column)
        HEDDLE_RETURN_IF_ERROR(lines->TakeNumber(out++));
      HEDDLE_RETURN_IF_ERROR(lines->EndLine());
    }
    return OkStatus();
  }
  if (shape.Cells() == 0) return OkStatus();
  // Down the columns; of the indexes behind the first the next one runs fastest there, here the last.
  std::vector<int64_t> place(variable.sizes.size(), 0);
  for (int64_t k = 0, column = 0; k < shape.columns; ++k) {
    for (int64_t row = 0; row < shape.rows; ++row) {
      double number = 0;
      HEDDLE_RETURN_IF_ERROR(lines->TakeOnly(&number));
      if (row >= begin && row < end) out[(row - begin) * shape.columns + column] = number;
    }
    int64_t stride = shape.columns;
    for (size_t i = 1; i < place.size(); ++i) {
      stride /= variable.sizes[i];
      column += stride;
      if (++place[i] < variable.sizes[i]) break;
      column -= stride * variable.sizes[i];
      place[i] = 0;
    }
  }
  return OkStatus();
}

bool StoresSingleCells(Layout layout) {
  return layout == Layout::kCells || layout == Layout::kDiagonal || layout == Layout::kPermutation;
}

// The next of the cells that a variable stores; `at` counts them.
Status TakeCell(CellLines* lines, const Variable& variable, int64_t at, StoredCell* cell) {
  if (variable.layout == Layout::kCells) {
    HEDDLE_RETURN_IF_ERROR(lines->TakeLine());
    HEDDLE_RETURN_IF_ERROR(lines->TakeIndex(&cell->row));
    HEDDLE_RETURN_IF_ERROR(lines->TakeIndex(&cell->column));
    HEDDLE_RETURN_IF_ERROR(lines->TakeNumber(&cell->value));
    return lines->EndLine();
  }
  double number = 0;
  HEDDLE_RETURN_IF_ERROR(lines->TakeOnly(&number));
  *cell = {.row = at, .column = at, .value = number};
  if (variable.layout == Layout::kDiagonal) return OkStatus();
  const int64_t other = TruncateToInteger(number) - 1;
  (variable.of_columns ? cell->row : cell->column) = other;
  cell->value = 1;
  return OkStatus();
}

}  // namespace

Result<FileSummary> SummarizeOctave(const ReadOptions& options, const TextFile& text, ChunkLooks&) {
  HEDDLE_ASSIGN_OR_RETURN(const Chosen chosen, Choose(options, text, /*first=*/false));
  const bool is_sparse = StoresSingleCells(chosen.variable.layout);
  FileSummary summary;
  summary.shape = chosen.variable.shape();
  HEDDLE_RETURN_IF_ERROR(CheckLength(options.path, summary.shape, is_sparse));
  HEDDLE_RETURN_IF_ERROR(CheckSaidSizes(options, summary.shape));
  summary.is_unordered = true;
  summary.stored = is_sparse ? chosen.variable.stored : kUnknown;
  summary.format = ChooseFormat(summary.shape, summary.stored);
  return summary;
}

Result<Matrix> ReadOctave(const ReadOptions& options, const FileSummary& summary, const TextFile& text,
                          int64_t row_begin, int64_t row_end) {
  HEDDLE_ASSIGN_OR_RETURN(const Chosen chosen, Choose(options, text, /*first=*/true));
  const Variable& variable = chosen.variable;
  if (variable.shape() != summary.shape) return ItChanged(options);
  std::optional<CellLines> lines;
  if (StoresSingleCells(variable.layout))
    return CollectCells(options, summary, variable.stored, row_begin, row_end,
                        [&](int64_t begin, int64_t end, StoredCell* out) {
                          if (begin == 0) lines.emplace(options, text, variable);
                          for (int64_t k = begin; k < end; ++k)
                            HEDDLE_RETURN_IF_ERROR(TakeCell(&*lines, variable, k, out++));
                          return OkStatus();
                        });
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Dense(row_end - row_begin, summary.shape.columns));
  if (variable.layout == Layout::kRange) {
    const auto [first, limit, step] = chosen.range;
    for (int64_t k = 0; k < matrix.cells(); ++k) {
      const double number = first + static_cast<double>(k) * step;
      matrix.mutable_data()[k] = step < 0 ? std::max(number, limit) : std::min(number, limit);
    }
    return matrix;
  }
  lines.emplace(options, text, variable);
  HEDDLE_RETURN_IF_ERROR(FillDense(&*lines, variable, row_begin, row_end, matrix.mutable_data()));
  return matrix;
}

}  // namespace heddle::ops
