// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/texts.h"

#include <fmt/format.h>

#include "ops/recursion/body/body_program.h"

namespace heddle::engine {

std::string TextOfBody(const std::string& function, int32_t calls,
                       const std::shared_ptr<const ops::RecursiveBody>& body, ops::RecursionCache& cache) {
  return fmt::format("{}, nodes with {} calls: {}", function, calls, cache.ProgramOf(body)->ToText());
}

std::vector<std::string> TextsOfAdjoint(const std::string& function, int32_t calls, bool saves,
                                        const std::shared_ptr<const ops::RecursiveAdjoint>& adjoint,
                                        ops::RecursionCache& cache) {
  using Body = std::shared_ptr<const ops::RecursiveBody>;
  const std::string kept = saves ? fmt::format("saves {} bytes a node", BytesOfRows(adjoint->saved))
                                 : std::string("saves nothing, for want of memory");
  return {TextOfBody(fmt::format("gradient of {}, forth, {}", function, kept), calls,
                     Body(adjoint, &adjoint->forward), cache),
          TextOfBody(fmt::format("gradient of {}, back", function), calls, Body(adjoint, &adjoint->backward),
                     cache)};
}

std::string TextOfEvaluation(const std::string& function, const ops::TreeParts& parts) {
  return fmt::format("{} by {}", function, ops::ToText(parts));
}

std::string TextOfGroups(const std::string& function, size_t groups) {
  return fmt::format("{} by groups of roots, {} of them, for want of memory", function, groups);
}

int64_t BytesOfRows(const std::vector<ops::RecursiveAdjoint::Row>& rows) {
  int64_t bytes = 0;
  for (const ops::RecursiveAdjoint::Row& row : rows) bytes += row.cells * BytesOf(row.type);
  return bytes;
}

}  // namespace heddle::engine
