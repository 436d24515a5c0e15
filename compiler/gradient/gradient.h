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

/// A script with the functions that AddGradients needs for lists, and their names in it: the sum of two lists
/// of matrices, and zeros of the sizes of a list's elements.
std::string_view GradientScript();
constexpr const char* kGradientFile = "heddle/gradient.dml";
constexpr const char* kListSum = "heddle/gradient.dml::sum_of_lists";
constexpr const char* kListZeros = "heddle/gradient.dml::zeros_of_list";

/// Adds the functions that are asked for to a program whose blocks are as the front end has built them, and
/// those that they call (docs/gradient.md). Ids of blocks go on from *next_block_id. Returns what cannot be
/// differentiated, each with its place.
std::vector<Status> AddGradients(const std::vector<GradientRequest>& requests, Program* program,
                                 int32_t* next_block_id);

}  // namespace heddle::compiler
