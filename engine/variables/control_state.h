// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/programs/program.h"
#include "engine/variables/divergence_guard.h"
#include "engine/variables/random_seeds.h"
#include "engine/variables/variables.h"

namespace heddle::engine {

/// Where the control program of one rank stands between two blocks, and every value that the blocks to come
/// can read. A program that resumes from the states of all its ranks writes the bytes that it would have
/// written without the interruption. Plain data; matrices share their memory with the program that is
/// running.
struct ControlState {
  /// One entry of the control program's stack: a list of blocks of which some have run.
  struct Activation {
    enum class Kind : uint8_t { kSequence, kWhile, kFor, kParallelFor, kCall };
    static constexpr int32_t kMain = -1;

    Kind kind = Kind::kSequence;
    int32_t owner = kMain;   ///< The block whose body this is, by its id; kMain: the main program.
    bool otherwise = false;  ///< The else branch of its owner.
    std::string function;    ///< kCall: the function that was chosen (key in Program::functions).
    uint64_t next = 0;       ///< Position of the next block in the list.
    int64_t value = 0;       ///< kFor, kParallelFor: of the loop variable,
    int64_t increment = 0;   ///< its step,
    uint64_t rounds = 0;     ///< rounds left after this one.
    uint64_t round = 0;      ///< number of this one, from 0;
    int64_t seed = 0;        ///< kParallelFor: what the seeds of its rounds come from.
  };

  uint64_t program = 0;  ///< HashOf the program.
  std::vector<Activation> stack;
  std::vector<VariableTable> frames;  ///< Of the main program and of the calls under way, innermost last.
  int64_t decisions = 0;              ///< Predicates and loop bounds so far.
  std::vector<RandomSeeds::Scope> seeds;
  DivergenceGuard guard;

  /// A state belongs to the programs that have this hash.
  static uint64_t HashOf(const Program& program);

  /// All but the values of variables, as text; kDataLoss for what is no such text.
  std::string ToText() const;
  static Result<ControlState> ParseText(std::string_view text);
};

}  // namespace heddle::engine
