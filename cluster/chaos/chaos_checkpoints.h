// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "cluster/chaos/saved_files.h"
#include "cluster/executor/executor_process.h"
#include "engine/checkpoints/checkpoint_store.h"

namespace heddle::cluster {

/// Where the attempts of a run begin, and what files were there: at the last checkpoint of which all parts
/// are written, or at the beginning. Thread-safe while an attempt runs.
class ChaosCheckpoints {
 public:
  /// `directory` and `roots` as of ScriptPaths. `interval_ms`: from one checkpoint to the next; 0: none are
  /// taken.
  ChaosCheckpoints(std::string directory, ops::FileRoots roots, size_t ranks, int64_t interval_ms)
      : directory_(std::move(directory)),
        roots_(std::move(roots)),
        ranks_(ranks),
        interval_ms_(interval_ms) {}
  ~ChaosCheckpoints();  ///< Removes all checkpoints.
  ChaosCheckpoints(const ChaosCheckpoints&) = delete;

  /// What the executors of the next attempt do about checkpoints. kUnavailable when they have no place.
  Result<ExecutorCheckpoints> Begin(int attempt);
  /// A rank has written its part of a checkpoint, or could not.
  void Wrote(size_t rank, const engine::WrittenCheckpoint& written);
  /// Before `rank` changes the file `path`, as the script names it; all that it said of checkpoints has been
  /// told by then.
  Status Save(size_t rank, const std::string& path);
  /// Behind an attempt: puts back what files were at the place where the next one begins. How many changed.
  Result<int64_t> Restore();
  /// Whether the last attempt has left a checkpoint.
  bool has_moved_on() const { return complete_ > 0; }

 private:
  Status MakePlace();
  std::string NameOf(int64_t number) const;

  const std::string directory_;
  const ops::FileRoots roots_;
  const size_t ranks_;
  const int64_t interval_ms_;
  std::string place_;  // A folder of the system's temporary ones; "" until it is needed.
  std::unique_ptr<engine::CheckpointStore> store_;
  ExecutorCheckpoints resume_;  // Where the next attempt begins.

  std::mutex mutex_;
  int attempt_ = 0;
  int64_t complete_ = 0;                                  // The last checkpoint of this attempt; 0: none.
  std::map<int64_t, std::set<size_t>> parts_;             // Ranks that have written theirs, by checkpoint.
  std::map<size_t, int64_t> last_written_;                // By rank.
  std::map<int64_t, int64_t> printed_;                    // Bytes of output before a checkpoint.
  std::map<int64_t, std::unique_ptr<SavedFiles>> files_;  // What was before the changes behind a checkpoint.
};

}  // namespace heddle::cluster
