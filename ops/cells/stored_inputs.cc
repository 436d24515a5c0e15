// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/stored_inputs.h"

#include <algorithm>

#include "ops/cells/storage.h"

namespace heddle::ops {
namespace {

bool IsTaken(const Operator& op, const Value* value) {
  return value == nullptr || !value->IsMatrix() || Takes(op.storages, value->matrix().storage());
}

}  // namespace

Storage StorageFor(const Operator& op, const KernelCall& call, size_t i) {
  if (op.storages != Storages::kDenseAndCsr)
    return Takes(op.storages, Storage::kDense) ? Storage::kDense : Storage::kCsr;
  const bool is_sparse = i < call.input_infos.size() && call.input_infos[i].format == Format::kSparse;
  return is_sparse ? Storage::kCsr : Storage::kDense;
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
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Value* const input = call.inputs[i];
    inputs.pointers_.push_back(input);
    if (IsTaken(op, input)) continue;
    std::unique_ptr<Value>& copy = inputs.copies_[input];
    if (copy == nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix stored, StoredAs(input->matrix(), StorageFor(op, call, i)));
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
