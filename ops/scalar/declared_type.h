// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/programs/graph.h"
#include "core/status.h"
#include "core/values/scalar.h"

// as.declared: a scalar result of a DML function as the value type that the function declares for it
// (language reference 1.5). The compiler puts it where a call binds the result; attributes: "type" is the
// name of the declared value type ("unknown": any), "what" names the result in messages, and with
// "keeps.fractions" an integer may be any number.
namespace heddle::ops {

/// A number becomes what is declared where nothing is lost: an integer takes whole numbers that fit. A string
/// is no number. Anything becomes a boolean (as as.logical) or a string. kFailedPrecondition otherwise.
Result<Scalar> CastToDeclared(const Node& node, const Scalar& x);

/// True if a scalar of this type is as declared, whatever its value. Never for integers: the type of a
/// quotient of integers is integer even if it turns out to be Infinity (evaluate_scalar.h).
bool IsAsDeclared(const Node& node, ValueType type);

}  // namespace heddle::ops
