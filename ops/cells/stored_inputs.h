// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "ops/base/operator.h"

// The one place where matrices change their storage for a kernel. An operator says which storages its kernel
// takes (Operator::storages); how cells are stored is no part of what they mean, so a kernel that knows few
// storages is as good as one that knows all, only slower.
namespace heddle::ops {

/// Of operators that hand their inputs on to others, or decode them piece by piece.
constexpr auto kAnyStorage = static_cast<Storages>(static_cast<unsigned>(Storages::kDenseAndCsr) |
                                                   1U << static_cast<unsigned>(Storage::kColumnGroups));

/// True if `op.run` takes all inputs of the call as they are stored.
bool TakesStorages(const Operator& op, const KernelCall& call);

/// The storage in which the kernel of `op` gets matrix `i` of the call, which is stored as it does not take
/// it: where it takes several, that of the format of the input, on which absent cells, and so NaN and signs
/// of zeros, depend (docs/numerics.md, R6).
Storage StorageFor(const Operator& op, const KernelCall& call, size_t i);
/// The same cells, dense or CSR. kResourceExhausted.
Result<Matrix> StoredAs(const Matrix& matrix, Storage storage);

/// The inputs of a call in storages that its kernel takes. The same value twice is one copy.
class StoredInputs {
 public:
  /// kResourceExhausted when a copy does not fit.
  static Result<StoredInputs> Of(const Operator& op, const KernelCall& call);
  /// The call with these inputs, which must outlive it. A converted input is nobody's to overwrite.
  KernelCall With(const KernelCall& call) const;

 private:
  std::map<const Value*, std::unique_ptr<Value>> copies_;
  std::vector<const Value*> pointers_;
};

}  // namespace heddle::ops
