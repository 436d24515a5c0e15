// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/recursion/adjoint/recursive_adjoint.h"
#include "ops/recursion/run/recursion_cache.h"
#include "ops/recursion/run/tree_parts.h"

namespace heddle::engine {

/// What -stats says of the bodies of recursions (docs/recursion.md), one line each.

/// "treefc, nodes with 2 calls: ahead: ...; a level: ...".
std::string TextOfBody(const std::string& function, int32_t calls,
                       const std::shared_ptr<const ops::RecursiveBody>& body, ops::RecursionCache& cache);
/// Those of a derivative: the way forth, and what it saves of a node or that it saves nothing, and back.
std::vector<std::string> TextsOfAdjoint(const std::string& function, int32_t calls, bool saves,
                                        const std::shared_ptr<const ops::RecursiveAdjoint>& adjoint,
                                        ops::RecursionCache& cache);

/// "treelstm by trees over 2 threads": the form in which its nodes were computed.
std::string TextOfEvaluation(const std::string& function, const ops::TreeParts& parts);

/// "treelstm by groups of roots, 4 of them, for want of memory".
std::string TextOfGroups(const std::string& function, size_t groups);

/// Bytes that these rows take of one node.
int64_t BytesOfRows(const std::vector<ops::RecursiveAdjoint::Row>& rows);

}  // namespace heddle::engine
