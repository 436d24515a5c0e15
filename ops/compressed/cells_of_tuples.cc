// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/cells_of_tuples.h"

#include <algorithm>
#include <cstring>
#include <memory>
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

// Row `row` of a dense matrix `times` times.
template <typename T>
void RepeatRow(const Matrix& from, int64_t row, int64_t times, Matrix* to) {
  for (int64_t i = 0; i < times; ++i)
    std::copy_n(from.data<T>() + row * from.columns(), from.columns(),
                to->mutable_data<T>() + i * from.columns());
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
    for (size_t g = 0; g < groups.groups.size(); ++g) {
      if (IsCancelled(call_.context.cancelled)) return Cancelled("cancelled");
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

  // A matrix of a single row would be a row vector's equal, so it is two.
  static int64_t TuplesOf(const ColumnGroup& coded) {
    return coded.encoding == Encoding::kUncompressed ? coded.dictionary.rows()
                                                     : std::max<int64_t>(coded.tuples(), 2);
  }

  Result<Matrix> DictionaryOf(const ColumnGroup& group, int64_t tuples, bool is_dense) const {
    const ElementType type = first_->groups().element_type;
    if (group.encoding == Encoding::kEmpty) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix zeros, Matrix::Dense(tuples, group.width(), type));
      std::memset(zeros.mutable_data<void>(), 0, static_cast<size_t>(zeros.cells() * BytesOf(type)));
      return zeros;
    }
    // Zeros that are not stored have no sign, those of a dense value may get one.
    if (group.encoding == Encoding::kUncompressed)
      return is_dense ? AsDense(group.dictionary) : Result<Matrix>(group.dictionary);
    if (group.dictionary.rows() == tuples) return group.dictionary;
    HEDDLE_ASSIGN_OR_RETURN(Matrix repeated, Matrix::Dense(tuples, group.width(), type));
    if (type == ElementType::kFloat64)
      RepeatRow<double>(group.dictionary, 0, tuples, &repeated);
    else
      RepeatRow<float>(group.dictionary, 0, tuples, &repeated);
    return repeated;
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

  Result<Matrix> RunTuples(size_t g, int64_t tuples, int64_t width) {
    std::vector<Value> values(parts_.size());
    std::vector<const Value*> pointers;
    std::vector<ValueInfo> infos = infos_;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i] == Part::kAll) {
        pointers.push_back(whole_[i] ? &*whole_[i] : call_.inputs[i]);
        continue;
      }
      if (parts_[i] == Part::kTuples) {
        HEDDLE_ASSIGN_OR_RETURN(Matrix dictionary,
                                DictionaryOf(GroupOf(i, g), tuples, infos_[i].format == Format::kDense));
        values[i] = Value(std::move(dictionary));
      } else {
        HEDDLE_ASSIGN_OR_RETURN(Matrix row, RowOf(whole_[i]->matrix(), first_->groups().groups[g].columns));
        values[i] = Value(std::move(row));
      }
      infos[i].shape = values[i].matrix().shape();
      pointers.push_back(&values[i]);
    }
    node_.info.shape = {tuples, width};
    Value result;
    HEDDLE_RETURN_IF_ERROR(CatalogKernels().Run({.node = node_,
                                                 .phase = Phase::kWhole,
                                                 .inputs = pointers,
                                                 .input_infos = infos,
                                                 .row_begin = 0,
                                                 .row_end = tuples,
                                                 .total_rows = tuples,
                                                 .context = call_.context,
                                                 .op = &op_},
                                                {&result, 1}));
    // Cells of this format have no -0.0, however they are stored.
    if (node_.info.format == Format::kSparse) return AsSparse(result.matrix());
    return result.matrix();
  }

  Result<ColumnGroup> RunGroup(size_t g) {
    ColumnGroup group = CodedGroup(g);
    HEDDLE_ASSIGN_OR_RETURN(Matrix cells, RunTuples(g, TuplesOf(group), group.width()));
    if (group.encoding == Encoding::kUncompressed) {
      group.dictionary = std::move(cells);
      return group;
    }
    HEDDLE_ASSIGN_OR_RETURN(group.dictionary, AsDense(cells));
    if (!IsUniform(group)) {
      // A dictionary of one tuple was computed twice.
      const int64_t tuples = CodedGroup(g).tuples();
      if (group.dictionary.rows() != tuples) group.dictionary = group.dictionary.Rows(0, tuples);
      return group;
    }
    group.dictionary = group.dictionary.Rows(0, 1);
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
