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

/// What a call of a recursive function saves for its backward call is one list, kSaved: the last result of
/// the forward function and the first parameter of the backward one (DerivativeRole), which also takes all
/// parameters of the function and the adjoints of all results that can vary. Backward calls in the rounds of
/// a loop are one call of a function of DerivativeRole::Kind::kRounds: its first parameter, kRounds, is a
/// list that has for each round the list of what that round passes: what was saved, parameters that differ
/// from round to round, adjoints, in the order in which the backward function has them (docs/gradient.md).
constexpr const char* kSaved = "%kept";
constexpr const char* kRounds = "%rounds";
/// How names of variables begin that derivatives make.
constexpr const char* kMadeName = "%g";

/// Adds the functions that are asked for to a program whose blocks are as the front end has built them, and
/// those that they call (docs/gradient.md). Ids of blocks go on from *next_block_id. Returns what cannot be
/// differentiated, each with its place.
std::vector<Status> AddGradients(const std::vector<GradientRequest>& requests, Program* program,
                                 int32_t* next_block_id);

}  // namespace heddle::compiler
