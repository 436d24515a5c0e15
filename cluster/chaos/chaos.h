// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::cluster {

/// Which faults a run on local processes has to survive (`heddle sim --chaos`; docs/chaos.md).
struct Chaos {
  int64_t kill_ms = 0;        ///< Mean time between two kills of a worker; 0: none is killed.
  double drop = 0;            ///< Share of the messages between workers that are lost, 0 to 0.5.
  int64_t pause_ms = 0;       ///< The longest time for which a worker is stopped; 0: none is.
  int64_t checkpoint_ms = 0;  ///< From one checkpoint to the next; 0: every attempt begins at the beginning.
  uint64_t seed = 0;          ///< Of all choices: moments, workers, messages, lengths of pauses.

  /// "kill=2s,drop=1%,pause=500ms,seed=7": what `--chaos` takes.
  std::string ToText() const;
};

/// What chaos did to a run, and what that cost.
struct ChaosReport {
  struct Kill {
    int attempt = 1;
    int rank = 0;
    int64_t at_ms = 0;  ///< Since the attempt began.
  };
  Chaos chaos;
  int attempts = 0;
  std::vector<Kill> kills;
  int pauses = 0;
  int64_t paused_ms = 0;       ///< All pauses together.
  int64_t messages = 0;        ///< Between workers, the lost ones among them; counted where some are lost.
  int64_t lost_messages = 0;   ///< Each with the connection that it came over.
  int64_t repeated_bytes = 0;  ///< Of standard output: printed by one attempt, and left out of the next.
  int resumed = 0;             ///< Attempts that began at a checkpoint.
  int64_t restored_files = 0;  ///< Files and folders that an attempt had changed and that were put back.
  int rarer_from_attempt = 0;  ///< From this attempt on faults were rarer than asked for; 0: never.
  double rarer_by = 1;         ///< By how much in the last attempt.

  std::string ToText() const;  ///< Some lines for people; a line end behind each.
  std::string ToJson() const;  ///< One object, without a line end.
};

}  // namespace heddle::cluster
