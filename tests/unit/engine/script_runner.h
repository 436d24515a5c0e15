// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/session/session.h"
#include "engine/variables/control_state.h"
#include "tests/unit/engine/memory_checkpoints.h"

namespace heddle::engine {

/// What a script did.
struct ScriptOutcome {
  Status status;
  std::string output;
  std::vector<SessionStatistics> statistics;  ///< By rank.
};

/// Compiles `text` as "test.dml"; stops the test when that fails.
Program CompileOrDie(const std::string& text);
/// Runs a script with options.ranks sessions in this process, on real threads, joined by the in-memory
/// network. As with executors, the others are told of a rank that has ended with an error. Ranks that wait
/// for each other for a minute end with "the ranks wait for each other". `kernels`: instead of those of the
/// catalog.
ScriptOutcome RunScript(const std::string& text, SessionOptions options = {},
                        const ops::KernelSource* kernels = nullptr);
/// The same, of a program, between two moments. It begins with the checkpoint in `begin`, of `begin_ranks`
/// ranks, or, where there is none, at the beginning; before block number `end` (from 0, of this run; -1:
/// never) all ranks stand still and leave a checkpoint in `states`. Checkpoints are called kCheckpoint.
struct Stretch {
  static constexpr const char* kCheckpoint = "test/1-1";

  std::shared_ptr<MemoryCheckpoints> begin;
  int begin_ranks = 1;
  int64_t end = -1;
  std::shared_ptr<MemoryCheckpoints> states;
  int64_t blocks = 0;  ///< How often rank 0 stood between two blocks.
  /// Asked on each rank before each block, by its number; an error is a failure of that rank there. May be
  /// empty.
  std::function<Status(size_t rank, int64_t block)> fault;
  /// False: nobody stands between two blocks, and ranks may run ahead of a predicate, as those of jobs do.
  bool is_watched = true;
  std::vector<std::string> folders;  ///< Of each rank, where its files are; none: that of all tests.
};
ScriptOutcome RunProgram(const Program& program, SessionOptions options, Stretch* stretch,
                         const ops::KernelSource* kernels = nullptr);
/// Options for `ranks` ranks that split every matrix that can be split.
SessionOptions SplitOver(int ranks, int threads = 1);

}  // namespace heddle::engine
