// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/rds/r_sparse.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ops/io/formats/rds/r_object.h"
#include "ops/io/formats/rds/r_texts.h"

namespace heddle::ops {
namespace {

constexpr std::string_view kEnding = "Matrix";

bool IsOneOf(char letter, std::string_view letters) { return letters.find(letter) != std::string_view::npos; }

// The three letters of its class, "" of any other object.
Result<std::string> LettersOf(const RFile& file, const RObject& object) {
  if (object.type != RType::kS4) return std::string();
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> classes, ClassesOf(file, object));
  if (classes.empty() || classes[0].size() != 3 + kEnding.size() || !classes[0].ends_with(kEnding))
    return std::string();
  return classes[0].substr(0, 3);
}

bool AreOfSparse(const std::string& letters) {
  if (letters == "ddi" || letters == "ldi") return true;
  return letters.size() == 3 && IsOneOf(letters[0], "dln") && IsOneOf(letters[1], "gst") &&
         IsOneOf(letters[2], "CRT");
}

// Whether a slot of a text begins so.
Result<bool> SaysIn(const RFile& file, const RObject& object, std::string_view slot, std::string_view text) {
  const RObject* const vector = file.Attribute(object, slot);
  if (vector == nullptr || vector->length != 1) return false;
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> texts, TextsOf(file, vector));
  return !texts.empty() && texts[0] == text;
}

}  // namespace

Result<bool> HoldsSparse(const RFile& file, const RObject& object) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string letters, LettersOf(file, object));
  return AreOfSparse(letters);
}

Result<const RObject*> CellsOfDenseMatrix(const RFile& file, const RObject& object) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string letters, LettersOf(file, object));
  if (letters != "dge" && letters != "lge" && letters != "nge") return nullptr;
  const RObject* const cells = file.Attribute(object, "x");
  if (cells == nullptr) return file.Damaged("a matrix has no cells");
  HEDDLE_ASSIGN_OR_RETURN(const RCells kind, CellsOf(file, *cells));
  return AreNumbers(kind) ? Result<const RObject*>(cells)
                          : file.Damaged("the cells of a matrix are no numbers");
}

Result<Shape> ShapeOfMatrix(const RFile& file, const RObject& object) {
  const RObject* const dim = file.Attribute(object, "Dim");
  int64_t sizes[2] = {0, 0};
  std::vector<int64_t> missing;
  if (dim == nullptr || dim->type != RType::kInteger || dim->length != 2)
    return file.Damaged("a matrix has no sizes");
  HEDDLE_RETURN_IF_ERROR(ReadIntegers(file, *dim, RCells::kIntegers, 0, 2, sizes, &missing));
  if (!missing.empty() || sizes[0] < 0 || sizes[1] < 0) return file.Damaged("a matrix has no sizes");
  return Shape{sizes[0], sizes[1]};
}

Result<RSparse> RSparse::Open(const RFile& file, const RObject& object) {
  RSparse sparse;
  sparse.file_ = &file;
  HEDDLE_ASSIGN_OR_RETURN(const std::string letters, LettersOf(file, object));
  HEDDLE_ASSIGN_OR_RETURN(sparse.shape_, ShapeOfMatrix(file, object));
  HEDDLE_ASSIGN_OR_RETURN(const bool has_unit_diagonal, SaysIn(file, object, "diag", "U"));
  const int64_t on_diagonal = std::min(sparse.shape_.rows, sparse.shape_.columns);
  sparse.values_ = file.Attribute(object, "x");
  if (letters[0] == 'n' || (has_unit_diagonal && letters[1] == 'd')) sparse.values_ = nullptr;
  int64_t values = INT64_MAX;
  if (sparse.values_ != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(sparse.cells_, CellsOf(file, *sparse.values_));
    if (!AreNumbers(sparse.cells_)) return file.Damaged("the cells of a sparse matrix are no numbers");
    values = sparse.values_->length;
  } else if (letters[0] != 'n' && !has_unit_diagonal) {
    return file.Damaged("a sparse matrix has no cells");
  }
  if (letters[1] == 'd') {
    sparse.diagonal_ = on_diagonal;
    sparse.diagonal_is_one_ = sparse.values_ == nullptr;
    if (values < on_diagonal) return file.Damaged("a diagonal is too short");
    return sparse;
  }
  sparse.is_symmetric_ = letters[1] == 's';
  if (letters[1] == 't' && has_unit_diagonal) sparse.diagonal_ = on_diagonal;
  sparse.by_columns_ = letters[2] != 'R';
  sparse.indexes_ = file.Attribute(object, letters[2] == 'R' ? "j" : "i");
  if (letters[2] == 'T') sparse.columns_ = file.Attribute(object, "j");
  const auto is_index = [](const RObject* vector) {
    return vector != nullptr && vector->type == RType::kInteger;
  };
  if (!is_index(sparse.indexes_) || (letters[2] == 'T' && !is_index(sparse.columns_)))
    return file.Damaged("the places of the cells of a sparse matrix are missing");
  if (letters[2] == 'T') {
    sparse.stored_ = sparse.indexes_->length;
    if (sparse.columns_->length != sparse.stored_)
      return file.Damaged("a sparse matrix has rows without columns");
  } else {
    HEDDLE_RETURN_IF_ERROR(sparse.OpenEnds(file.Attribute(object, "p"),
                                           sparse.by_columns_ ? sparse.shape_.columns : sparse.shape_.rows));
  }
  if (values < sparse.stored_) return file.Damaged("a sparse matrix has more places than cells");
  return sparse;
}

Status RSparse::OpenEnds(const RObject* vector, int64_t ranges) {
  if (vector == nullptr || vector->type != RType::kInteger || vector->storage != RStorage::kInFile ||
      vector->length != ranges + 1)
    return file_->Damaged("where the columns or rows of a sparse matrix begin does not fit its sizes");
  HEDDLE_RETURN_IF_ERROR(ReadIndexes(*vector, 0, vector->length, &ends_));
  if (ends_.front() != 0 || !std::is_sorted(ends_.begin(), ends_.end()) || ends_.back() > indexes_->length)
    return file_->Damaged("where the columns or rows of a sparse matrix begin does not ascend");
  stored_ = ends_.back();
  return OkStatus();
}

Status RSparse::ReadIndexes(const RObject& vector, int64_t begin, int64_t end,
                            std::vector<int64_t>* out) const {
  out->resize(static_cast<size_t>(end - begin));
  std::vector<int64_t> missing;
  HEDDLE_RETURN_IF_ERROR(ReadIntegers(*file_, vector, RCells::kIntegers, begin, end, out->data(), &missing));
  return missing.empty() ? OkStatus() : file_->Damaged("a place in a sparse matrix is NA");
}

Status RSparse::ReadValues(int64_t begin, int64_t end, std::vector<double>* out) const {
  out->assign(static_cast<size_t>(end - begin), 1);
  return values_ == nullptr ? OkStatus() : ReadNumbers(*file_, *values_, cells_, begin, end, out->data());
}

Status RSparse::FillStored(int64_t begin, int64_t end, StoredCell* out) const {
  std::vector<int64_t> indexes, columns;
  std::vector<double> values;
  HEDDLE_RETURN_IF_ERROR(ReadIndexes(*indexes_, begin, end, &indexes));
  HEDDLE_RETURN_IF_ERROR(ReadValues(begin, end, &values));
  if (columns_ != nullptr) HEDDLE_RETURN_IF_ERROR(ReadIndexes(*columns_, begin, end, &columns));
  size_t range = 0;
  if (columns_ == nullptr)
    range = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin()) - 1;
  for (int64_t k = begin; k < end; ++k) {
    const auto place = static_cast<size_t>(k - begin);
    int64_t other = 0;
    if (columns_ != nullptr) {
      other = columns[place];
    } else {
      while (ends_[range + 1] <= k) ++range;
      other = static_cast<int64_t>(range);
    }
    out[place] = {.row = indexes[place], .column = other, .value = values[place]};
    if (!by_columns_) std::swap(out[place].row, out[place].column);
  }
  return OkStatus();
}

Status RSparse::Fill(int64_t begin, int64_t end, StoredCell* out) const {
  // The cells as they are stored, the same once more with rows for columns, and the diagonal.
  for (int64_t at = begin; at < end;) {
    int64_t last = end;
    if (at < stored_) {
      last = std::min(end, stored_);
      HEDDLE_RETURN_IF_ERROR(FillStored(at, last, out));
    } else if (is_symmetric_ && at < 2 * stored_) {
      last = std::min(end, 2 * stored_);
      HEDDLE_RETURN_IF_ERROR(FillStored(at - stored_, last - stored_, out));
      for (StoredCell* cell = out; cell != out + (last - at); ++cell) {
        if (cell->row == cell->column) cell->value = 0;
        std::swap(cell->row, cell->column);
      }
    } else {
      const int64_t before = stored() - diagonal_;
      std::vector<double> values(static_cast<size_t>(end - at), 1);
      if (!diagonal_is_one_) HEDDLE_RETURN_IF_ERROR(ReadValues(at - before, end - before, &values));
      for (int64_t k = at; k < end; ++k)
        out[k - at] = {.row = k - before, .column = k - before, .value = values[static_cast<size_t>(k - at)]};
    }
    out += last - at;
    at = last;
  }
  return OkStatus();
}

}  // namespace heddle::ops
