// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/verify_program.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/programs/for_each_block.h"

namespace heddle::compiler {
namespace {

using Arguments = std::vector<std::pair<std::string, std::string>>;

Status VerifyCallOf(const Program& program, const std::string& name, const Arguments& arguments) {
  const auto function = program.functions.find(name);
  if (function == program.functions.end()) return Internal("the program has no function '{}'", name);
  // eval() of one argument, which may be a list of all.
  if (arguments.size() == 1 && arguments[0].first.empty()) return OkStatus();
  const std::vector<Parameter>& parameters = function->second.parameters;
  for (const auto& [parameter, variable] : arguments)
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&name = parameter](const Parameter& declared) { return declared.name == name; }))
      return Internal("function '{}' has no parameter '{}'", name, parameter);
  return OkStatus();
}

Status VerifyBlocks(const Program& program) {
  Status status;
  ForEachBlock(program, [&](const Block& block) {
    if (!status.ok()) return false;
    status = Verify(block.graph);
    ForEachCallee(block, [&](const std::string& name, const Arguments& arguments) {
      if (status.ok()) status = VerifyCallOf(program, name, arguments);
    });
    if (!status.ok()) status = status.WithNote(fmt::format("in block {}", block.id));
    return status.ok();
  });
  return status;
}

}  // namespace

Status VerifyProgram(const Program& program, std::string_view after) {
  const Status status = VerifyBlocks(program);
  return status.ok() ? status : status.WithNote(fmt::format("after {}", after));
}

}  // namespace heddle::compiler
