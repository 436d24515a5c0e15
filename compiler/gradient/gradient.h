// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/programs/program.h"

namespace heddle::compiler {

/// A call of gradient(): the function `name` shall be made, which returns the results of `function` and then
/// the derivatives of the first of them by these parameters.
struct GradientRequest {
  std::string name;
  std::string function;
  std::vector<std::string> parameters;
  SourcePosition position;  ///< Of the call.
  /// Instead, it takes the adjoint of the first result behind the arguments, as the parameter kGivenAdjoint,
  /// and returns those of the parameters alone.
  bool takes_adjoint = false;
};
constexpr const char* kGivenAdjoint = "%adjoint";

/// The name of that function.
std::string GradientName(const std::string& function, const std::vector<std::string>& parameters,
                         bool takes_adjoint = false);

/// What a call of a recursive function keeps for its backward call is one list, the last result of the
/// function "forward ..." and the first parameter of "backward ...", which also takes all parameters of the
/// function and the adjoints of all results that can vary, under AdjointName of their names in the function.
/// Backward calls of the rounds of a loop are one call of "rounds of backward ...": its first parameter is a
/// list, in which each round has a list of what that round passes: what was kept, parameters that are not
/// passed beside it, adjoints, in the order in which "backward ..." has them (docs/gradient.md).
constexpr const char* kKept = "%kept";
constexpr const char* kRounds = "%rounds";
/// How names of variables begin that derivatives make.
constexpr const char* kMadeName = "%g";

/// Adds the functions that are asked for to a program whose blocks are as the front end has built them, and
/// those that they call (docs/gradient.md). Ids of blocks go on from *next_block_id. Returns what cannot be
/// differentiated, each with its place.
std::vector<Status> AddGradients(const std::vector<GradientRequest>& requests, Program* program,
                                 int32_t* next_block_id);

}  // namespace heddle::compiler
