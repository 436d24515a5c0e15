// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/base/operator.h"

// Single precision (docs/numerics.md, section 9): cells are stored as binary32, every operator computes its
// binary64 definition on them, and each cell of its result is rounded once. Kernels that know doubles only
// run here on copies, panel by panel; others read floats themselves (Operator::takes_singles).
namespace heddle::ops {

/// The same cells as doubles, exact; CSR keeps its entries. Returns the argument when it has doubles already.
Result<Matrix> Widen(const Matrix& matrix);

/// The cells rounded to nearest floats; entries of a CSR matrix that become zero are dropped. Returns the
/// argument when it has floats already.
Result<Matrix> Narrow(const Matrix& matrix);

/// True if some operand holds floats.
bool ReadsSingles(const KernelCall& call);

/// True if some operand or the result holds floats.
bool HasSingles(const KernelCall& call);

/// RunOperator on doubles, each result narrowed where its info says so; nodes of a reduction stay doubles.
/// Rows of dense operands that the operator may be cut along (RowRule) are widened a panel at a time, at the
/// cuts that distribution uses, so that no whole copy of them exists. Operands needed whole, and CSR ones,
/// are copied.
Status RunWidened(const Operator& op, const KernelCall& call, std::span<Value> results);

}  // namespace heddle::ops
