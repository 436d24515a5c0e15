// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/cells_of_tuples.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "core/values/group_rows.h"
#include "ops/base/broadcast.h"
#include "ops/cells/storage.h"
#include "ops/compressed/arrange_groups.h"

namespace heddle::ops {
namespace {

// Whether both give every row the same number of a tuple, so that one group's codes tell of both.
bool ShareCodes(const ColumnGroup& a, const ColumnGroup& b) {
  if (a.columns != b.columns) return false;
  if (IsUniform(a) || IsUniform(b))
    return a.encoding != Encoding::kUncompressed && b.encoding != Encoding::kUncompressed;
  return a.encoding == b.encoding && a.codes.data() == b.codes.data() && a.codes.count() == b.codes.count() &&
         a.positions == b.positions && a.starts.size() == b.starts.size();
}

template <typename T>
bool HoldsOnlyPositiveZeros(const Matrix& tuples) {
  return std::all_of(tuples.data<T>(), tuples.data<T>() + tuples.cells(), [](T cell) {
    const T zero = 0;
    return std::memcmp(&cell, &zero, sizeof(T)) == 0;
  });
}

template <typename T>
void CopyColumns(const Matrix& row, const std::vector<int32_t>& columns, Matrix* to) {
  for (size_t k = 0; k < columns.size(); ++k) to->mutable_data<T>()[k] = row.data<T>()[columns[k]];
}

// One call on the dictionaries of all groups.
class CellsOfTuples {
 public:
  explicit CellsOfTuples(const KernelCall& call)
      : call_(call), op_(call.op != nullptr ? *call.op : *FindOperator(call.node.op)), node_(call.node) {}

  // Finds out what each input is; false where the call is left.
  Result<bool> Prepare() {
    if (call_.phase != Phase::kWhole || !call_.node.info.IsMatrix() || op_.may_fail ||
        call_.node.FindAttribute(kOuter) != nullptr)
      return false;
    for (const Value* input : call_.inputs)
      if (input != nullptr && input->IsMatrix() && input->matrix().IsCompressed() && first_ == nullptr)
        first_ = &input->matrix();
    if (first_ == nullptr || first_->rows() < 2 || first_->columns() == 0) return false;
    infos_.assign(call_.input_infos.begin(), call_.input_infos.end());
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      HEDDLE_ASSIGN_OR_RETURN(const bool takes, PrepareInput(i));
      if (!takes) return false;
    }
    return Pays();
  }

  Result<Value> Run() {
    auto result = std::make_shared<ColumnGroups>();
    const ColumnGroups& groups = first_->groups();
    result->rows = groups.rows;
    result->columns = groups.columns;
    result->element_type = call_.node.info.element_type;
    HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, RunTuples());
    for (size_t g = 0; g < groups.groups.size(); ++g) {
      if (IsCancelled(call_.context.cancelled)) return Cancelled("cancelled");
      if (places_[g] >= 0) {
        result->groups.push_back(WithTuples(g, cells.Rows(places_[g], cells.rows())));
        continue;
      }
      HEDDLE_ASSIGN_OR_RETURN(ColumnGroup group, RunGroup(g));
      result->groups.push_back(std::move(group));
    }
    return Value(
        Matrix::OfGroups(std::move(result)).Rows(first_->first_row(), first_->first_row() + first_->rows()));
  }

 private:
  // What an input is to a group.
  enum class Part : uint8_t { kAll, kRow, kTuples };

  Result<bool> PrepareInput(size_t i) {
    const Value* const input = call_.inputs[i];
    parts_.push_back(Part::kAll);
    whole_.emplace_back();
    if (input == nullptr || input->IsScalar()) return true;
    if (!input->IsMatrix() || !infos_[i].shape.IsKnown()) return false;
    const Matrix& matrix = input->matrix();
    if (matrix.IsCompressed()) {
      parts_.back() = Part::kTuples;
      return IsGroupedAlike(i);
    }
    if (i == 0 || matrix.rows() != 1 || infos_[0].shape.rows < 2) return false;
    const Pattern pattern = PatternsOf(infos_[0], infos_[i]).right;
    if (pattern == Pattern::kScalar) {
      // As a scalar: beside a group of one column it would be a row.
      whole_.back() = Value(Scalar(matrix.At(0, 0)));
      infos_[i] = ValueInfo::OfScalar(ValueType::kDouble);
      return true;
    }
    if (pattern != Pattern::kRow || matrix.columns() != first_->columns()) return false;
    parts_.back() = Part::kRow;
    HEDDLE_ASSIGN_OR_RETURN(Matrix dense, AsDense(matrix));
    whole_.back() = Value(std::move(dense));
    return true;
  }

  // Whether input i is grouped as the compressed ones before it are.
  bool IsGroupedAlike(size_t i) const {
    const Matrix& matrix = call_.inputs[i]->matrix();
    for (size_t before = 0; before < i; ++before) {
      if (parts_[before] != Part::kTuples) continue;
      const Matrix& other = call_.inputs[before]->matrix();
      const std::vector<ColumnGroup>&a = other.groups().groups, &b = matrix.groups().groups;
      if (matrix.shape() != other.shape() || matrix.first_row() != other.first_row() ||
          matrix.groups().rows != other.groups().rows ||
          !std::equal(a.begin(), a.end(), b.begin(), b.end(), ShareCodes))
        return false;
    }
    return true;
  }

  // Cells of a group that is not compressed are computed for all its rows.
  bool Pays() const {
    const ColumnGroups& groups = first_->groups();
    return DictionariesPay(*first_) &&
           (first_->rows() == groups.rows ||
            std::none_of(groups.groups.begin(), groups.groups.end(),
                         [](const ColumnGroup& group) { return group.encoding == Encoding::kUncompressed; }));
  }

  const ColumnGroup& GroupOf(size_t i, size_t g) const {
    return call_.inputs[i]->matrix().groups().groups[g];
  }

  // The first of the inputs whose codes say something.
  const ColumnGroup& CodedGroup(size_t g) const {
    for (size_t i = 0; i < parts_.size(); ++i)
      if (parts_[i] == Part::kTuples && !IsUniform(GroupOf(i, g))) return GroupOf(i, g);
    return first_->groups().groups[g];
  }

  // Tuples of results: those of CONST and EMPTY groups are one.
  static int64_t TuplesOf(const ColumnGroup& coded) { return std::max<int64_t>(coded.tuples(), 1); }

  // Cells that a format leaves out are others beside a row vector than beside a matrix.
  bool RunsByGroups() const {
    return std::find(parts_.begin(), parts_.end(), Part::kRow) != parts_.end() &&
           std::any_of(infos_.begin(), infos_.end(),
                       [](const ValueInfo& info) { return info.format == Format::kSparse; });
  }

  // The dictionaries of all groups are one column of cells, one behind the other, so that the operator runs
  // once; places_[g] is that of group g, -1 of an uncompressed one, and of all where it runs by groups.
  // Groups that share dictionaries share cells, unless these differ by column. Returns the number of cells.
  int64_t Place() {
    const size_t groups = first_->groups().groups.size();
    const bool differ_by_column = std::find(parts_.begin(), parts_.end(), Part::kRow) != parts_.end();
    const bool by_groups = RunsByGroups();
    std::map<std::tuple<std::vector<const void*>, int64_t, int64_t>, int64_t> known;
    int64_t cells = 0;
    for (size_t g = 0; g < groups; ++g) {
      const ColumnGroup& coded = CodedGroup(g);
      if (by_groups || coded.encoding == Encoding::kUncompressed) {
        places_.push_back(-1);
        continue;
      }
      std::vector<const void*> dictionaries;
      for (size_t i = 0; i < parts_.size(); ++i)
        if (parts_[i] == Part::kTuples) dictionaries.push_back(GroupOf(i, g).dictionary.data<void>());
      int64_t place = cells;
      if (!differ_by_column)
        place = known.emplace(std::tuple(std::move(dictionaries), TuplesOf(coded), coded.width()), cells)
                    .first->second;
      if (place == cells) cells += TuplesOf(coded) * coded.width();
      places_.push_back(place);
    }
    return cells;
  }

  // What input i has of a group's tuples, row-major.
  template <typename T>
  void FillTuples(size_t i, size_t g, T* cells) const {
    const ColumnGroup& coded = CodedGroup(g);
    const int64_t tuples = TuplesOf(coded), width = coded.width();
    if (parts_[i] == Part::kRow) {
      const T* const row = whole_[i]->matrix().data<T>();
      for (int64_t t = 0; t < tuples; ++t)
        for (int64_t k = 0; k < width; ++k) *cells++ = row[coded.columns[static_cast<size_t>(k)]];
      return;
    }
    const Matrix& dictionary = GroupOf(i, g).dictionary;
    if (GroupOf(i, g).encoding == Encoding::kEmpty) {
      std::fill_n(cells, tuples * width, T{0});
    } else if (dictionary.rows() == tuples) {
      std::copy_n(dictionary.data<T>(), tuples * width, cells);
    } else {
      for (int64_t t = 0; t < tuples; ++t) std::copy_n(dictionary.data<T>(), width, cells + t * width);
    }
  }
  template <typename T>
  void FillCells(size_t i, Matrix* cells) const {
    std::fill_n(cells->mutable_data<T>(), cells->cells(), T{0});
    for (size_t g = 0; g < places_.size(); ++g)
      if (places_[g] >= 0) FillTuples(i, g, cells->mutable_data<T>() + places_[g]);
  }

  // The cells of all dictionaries, a column.
  Result<Matrix> RunTuples() {
    const int64_t placed = Place();
    if (placed == 0) return Matrix();
    // A matrix of a single row would be a row vector's equal, so there are two.
    const int64_t count = std::max<int64_t>(placed, 2);
    std::vector<Value> values(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i] == Part::kAll) continue;
      const ElementType type =
          parts_[i] == Part::kRow ? whole_[i]->matrix().element_type() : first_->groups().element_type;
      HEDDLE_ASSIGN_OR_RETURN(Matrix cells, Matrix::Dense(count, 1, type));
      type == ElementType::kFloat64 ? FillCells<double>(i, &cells) : FillCells<float>(i, &cells);
      values[i] = Value(std::move(cells));
    }
    HEDDLE_ASSIGN_OR_RETURN(Matrix cells, RunOn(std::move(values)));
    return AsDense(cells);
  }

  // values[i]: what is in the place of input i; none of those that are the same for all cells.
  Result<Matrix> RunOn(std::vector<Value> values) {
    std::vector<const Value*> pointers;
    std::vector<ValueInfo> infos = infos_;
    Shape shape;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i] == Part::kAll) {
        pointers.push_back(whole_[i] ? &*whole_[i] : call_.inputs[i]);
        continue;
      }
      infos[i].shape = values[i].matrix().shape();
      if (parts_[i] == Part::kTuples) shape = infos[i].shape;
      pointers.push_back(&values[i]);
    }
    node_.info.shape = shape;
    Value result;
    HEDDLE_RETURN_IF_ERROR(CatalogKernels().Run({.node = node_,
                                                 .phase = Phase::kWhole,
                                                 .inputs = pointers,
                                                 .input_infos = infos,
                                                 .row_begin = 0,
                                                 .row_end = shape.rows,
                                                 .total_rows = shape.rows,
                                                 .context = call_.context,
                                                 .op = &op_},
                                                {&result, 1}));
    // Cells of this format have no -0.0, however they are stored.
    if (node_.info.format == Format::kSparse) return AsSparse(result.matrix());
    return result.matrix();
  }

  Result<Matrix> RowOf(const Matrix& row, const std::vector<int32_t>& columns) const {
    HEDDLE_ASSIGN_OR_RETURN(Matrix part,
                            Matrix::Dense(1, static_cast<int64_t>(columns.size()), row.element_type()));
    if (row.element_type() == ElementType::kFloat64)
      CopyColumns<double>(row, columns, &part);
    else
      CopyColumns<float>(row, columns, &part);
    return part;
  }

  // The tuples of one group, or all of its cells.
  template <typename T>
  void FillGroup(size_t i, size_t g, Matrix* cells) const {
    std::fill_n(cells->mutable_data<T>(), cells->cells(), T{0});
    FillTuples(i, g, cells->mutable_data<T>());
  }
  Result<Matrix> CellsOfGroup(size_t i, size_t g) const {
    const ColumnGroup& group = GroupOf(i, g);
    if (group.encoding == Encoding::kUncompressed)
      // Zeros that are not stored have no sign, those of a dense value may get one.
      return infos_[i].format == Format::kDense ? AsDense(group.dictionary)
                                                : Result<Matrix>(group.dictionary);
    const ElementType type = first_->groups().element_type;
    HEDDLE_ASSIGN_OR_RETURN(
        Matrix cells, Matrix::Dense(std::max<int64_t>(TuplesOf(CodedGroup(g)), 2), group.width(), type));
    type == ElementType::kFloat64 ? FillGroup<double>(i, g, &cells) : FillGroup<float>(i, g, &cells);
    return cells;
  }
  Result<ColumnGroup> RunGroup(size_t g) {
    const ColumnGroup& coded = CodedGroup(g);
    std::vector<Value> values(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i] == Part::kAll) continue;
      HEDDLE_ASSIGN_OR_RETURN(Matrix cells, parts_[i] == Part::kTuples
                                                ? CellsOfGroup(i, g)
                                                : RowOf(whole_[i]->matrix(), coded.columns));
      values[i] = Value(std::move(cells));
    }
    HEDDLE_ASSIGN_OR_RETURN(Matrix cells, RunOn(std::move(values)));
    if (coded.encoding != Encoding::kUncompressed) {
      HEDDLE_ASSIGN_OR_RETURN(cells, AsDense(cells));
      return WithTuples(g, cells.Reshaped(cells.cells(), 1));
    }
    ColumnGroup group = coded;
    group.dictionary = std::move(cells);
    return group;
  }

  // The codes of group g, with the first of the cells as its tuples.
  ColumnGroup WithTuples(size_t g, const Matrix& cells) const {
    ColumnGroup group = CodedGroup(g);
    const int64_t tuples = TuplesOf(group), width = group.width();
    group.dictionary = cells.Rows(0, tuples * width).Reshaped(tuples, width);
    if (!IsUniform(group)) return group;
    const bool is_empty = group.dictionary.element_type() == ElementType::kFloat64
                              ? HoldsOnlyPositiveZeros<double>(group.dictionary)
                              : HoldsOnlyPositiveZeros<float>(group.dictionary);
    group.encoding = is_empty ? Encoding::kEmpty : Encoding::kConstant;
    if (is_empty) group.dictionary = Matrix();
    return group;
  }

  const KernelCall& call_;
  const Operator& op_;
  Node node_;                      // With the size of a group's dictionary.
  const Matrix* first_ = nullptr;  // The first compressed input.
  std::vector<Part> parts_;
  std::vector<std::optional<Value>> whole_;  // Of row vectors and single cells.
  std::vector<ValueInfo> infos_;
  std::vector<int64_t> places_;  // Of the cells of each group.
};

}  // namespace

Result<std::optional<Value>> RunCellsOfTuples(const KernelCall& call) {
  CellsOfTuples cells(call);
  HEDDLE_ASSIGN_OR_RETURN(const bool takes, cells.Prepare());
  if (!takes) return std::optional<Value>();
  HEDDLE_ASSIGN_OR_RETURN(Value result, cells.Run());
  return std::optional<Value>(std::move(result));
}

}  // namespace heddle::ops
