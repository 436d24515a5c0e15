// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "compiler/optimize/infer.h"
#include "core/programs/program.h"

namespace heddle::compiler {

/// A list whose elements are not known.
LiveIn UnknownList();

/// What is known of the results of a kList step, from what is known of variables before it. `error` is set
/// when the step cannot succeed; the results then have the types that the operation gives.
std::vector<LiveIn> InferListStep(const Block& block, const FindLiveIn& find, Status* error);

/// What is wrong with elements of these types (kUnknown: perhaps nothing) as operands of as.scalar,
/// as.matrix, as.frame, as.list, cbind or rbind of a list. The compiler asks it where it knows, and every run
/// does.
Status CheckElements(ListOperation operation, const std::vector<DataType>& types);

/// What holds of a list on two ways. nullptr where that is nothing.
std::shared_ptr<const ListOf<LiveIn>> JoinLists(const std::shared_ptr<const ListOf<LiveIn>>& a,
                                                const std::shared_ptr<const ListOf<LiveIn>>& b);
/// True if both tell the same about their elements.
bool IsSameList(const std::shared_ptr<const ListOf<LiveIn>>& a,
                const std::shared_ptr<const ListOf<LiveIn>>& b);

/// What two infos of one variable have in common.
ValueInfo JoinInfos(const ValueInfo& a, const ValueInfo& b);
/// Values are the same only if their texts are: NaN is NaN, 0.0 is not -0.0.
bool IsSameValue(const std::optional<Scalar>& a, const std::optional<Scalar>& b);

}  // namespace heddle::compiler
