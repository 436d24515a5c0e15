// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/stored_inputs.h"

#include <algorithm>
#include <cmath>

#include "core/values/column_groups.h"
#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

bool IsTaken(const Operator& op, const Value* value) {
  return value == nullptr || !value->IsMatrix() || Takes(op.storages, value->matrix().storage());
}

template <typename T>
bool HasNegativeZero(const Matrix& cells) {
  const int64_t first = cells.IsSparse() && cells.rows() > 0 ? cells.row_offsets()[0] : 0;
  const T* const begin = cells.values<T>() + first;
  return std::any_of(begin, begin + cells.stored(), [](T cell) { return cell == 0 && std::signbit(cell); });
}

// Whether the cells take fewer bytes as CSR, which has no zeros, so none with a sign.
bool IsSmallerSparse(const Matrix& compressed) {
  for (const ColumnGroup& group : compressed.groups().groups)
    if (group.encoding != Encoding::kEmpty &&
        (compressed.element_type() == ElementType::kFloat64 ? HasNegativeZero<double>(group.dictionary)
                                                            : HasNegativeZero<float>(group.dictionary)))
      return false;
  const auto nonzeros = static_cast<double>(compressed.CountNonzeros());
  const auto bytes = static_cast<double>(BytesOf(compressed.element_type()));
  return nonzeros * (bytes + 4) + static_cast<double>(compressed.rows()) * 8 <
         static_cast<double>(compressed.cells()) * bytes;
}

}  // namespace

Storage StorageFor(const Operator& op, const Matrix& matrix) {
  const bool takes_both = op.storages == Storages::kDenseAndCsr;
  if (takes_both) return matrix.IsCompressed() && IsSmallerSparse(matrix) ? Storage::kCsr : Storage::kDense;
  return Takes(op.storages, Storage::kDense) ? Storage::kDense : Storage::kCsr;
}

Result<Matrix> StoredAs(const Matrix& matrix, Storage storage) {
  return storage == Storage::kCsr ? AsSparse(matrix) : AsDense(matrix);
}

bool TakesStorages(const Operator& op, const KernelCall& call) {
  return std::all_of(call.inputs.begin(), call.inputs.end(),
                     [&](const Value* input) { return IsTaken(op, input); });
}

Result<StoredInputs> StoredInputs::Of(const Operator& op, const KernelCall& call) {
  StoredInputs inputs;
  for (const Value* input : call.inputs) {
    inputs.pointers_.push_back(input);
    if (IsTaken(op, input)) continue;
    std::unique_ptr<Value>& copy = inputs.copies_[input];
    if (copy == nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix stored, StoredAs(input->matrix(), StorageFor(op, input->matrix())));
      copy = std::make_unique<Value>(std::move(stored));
    }
    inputs.pointers_.back() = copy.get();
  }
  return inputs;
}

KernelCall StoredInputs::With(const KernelCall& call) const {
  KernelCall result = call;
  result.inputs = pointers_;
  if (!call.inputs.empty() && pointers_[0] != call.inputs[0]) result.last_read = nullptr;
  return result;
}

}  // namespace heddle::ops
