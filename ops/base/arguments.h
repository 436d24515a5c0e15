// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ops/base/operator.h"

// Reading the inputs of operators: during inference (a scalar may be unknown yet) and while running (all are
// known).
namespace heddle::ops {

/// True if the optional input i of the node was not left out.
bool IsGiven(const Node& node, int i);

/// The scalar input i where it is known already; nullptr when left out or not known yet.
const Scalar* KnownScalar(const InferContext& context, int i);

/// kInvalidArgument unless input i can be a matrix / a scalar; left out counts as an error. `what` names it
/// for the user: "argument 2", "select".
Status RequireMatrix(const InferContext& context, int i, std::string_view what);
Status RequireScalar(const InferContext& context, int i, std::string_view what);

/// A number of rows or columns: the known scalar i truncated to an integer, kUnknown when it is not known
/// yet, `fallback` when it was left out. kInvalidArgument when negative, NaN or a string, kResourceExhausted
/// when no matrix has so many.
Result<int64_t> InferSize(const InferContext& context, int i, std::string_view what, int64_t fallback);

/// The scalar input i of a running kernel; nullptr when left out.
const Scalar* GivenScalar(const KernelCall& call, int i);
/// InferSize while running: kFailedPrecondition or kResourceExhausted.
Result<int64_t> GivenSize(const KernelCall& call, int i, std::string_view what, int64_t fallback);
/// The same as a number; `fallback` when left out.
double NumberOr(const KernelCall& call, int i, double fallback);
bool BooleanOr(const KernelCall& call, int i, bool fallback);

/// A boolean attribute that the script's text fixes ("byrow", "empty.return").
bool BooleanAttribute(const Node& node, std::string_view name, bool fallback);

}  // namespace heddle::ops
