// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "compiler/optimize/static/written_files.h"
#include "core/programs/program.h"
#include "core/status.h"
#include "engine/checkpoints/checkpoint_store.h"
#include "ops/io/files/file_roots.h"
#include "ops/io/files/files.h"
#include "ops/io/files/script_paths.h"

namespace heddle::cluster {

/// What files were before attempts of a job changed them, as objects beside its checkpoints: an attempt that
/// begins before such a change finds them as they were. Only files that the script may read are kept: what it
/// only writes is written once more. Folders of parts are not kept. `JOB/EPOCH-N/kept/...` are those that an
/// attempt has changed behind its checkpoint N (0: before any), and go with that checkpoint; `JOB/first/...`
/// those before any attempt.
class KeptFiles {
 public:
  /// `location` and `folder`: of the checkpoints of this attempt (ExecutorCheckpoints), `JOB/EPOCH`. `files`
  /// and `store`, the one at the location, outlive it; `directory` and `roots` as of ScriptPaths.
  KeptFiles(const Program& program, std::string directory, const ops::FileRoots& roots, ops::Files& files,
            std::string location, std::string folder, engine::CheckpointStore& store);

  /// Keeps what `path` is, which is changed next, behind checkpoint `number` of this attempt. `is_ours` says
  /// whether nobody else can have changed it until now; false when it said no: then nothing is kept. Errors
  /// name the path. Thread-safe.
  Result<bool> Keep(const std::string& path, int64_t number, const std::function<bool()>& is_ours);
  /// Puts back what files were at the checkpoint `resume`, or before the job when that is "".
  Status PutBack(const std::string& resume);

 private:
  Status Write(const std::string& path, const std::set<std::string>& names,
               const std::function<bool()>& is_ours, bool* is_kept);
  Status PutBackOne(const std::string& name);

  compiler::WrittenFiles read_;  // The reads of the program.
  const ops::ScriptPaths paths_;
  ops::Files& files_;
  const std::string location_;
  const std::string folder_;
  const std::string job_;
  engine::CheckpointStore& store_;
  std::mutex mutex_;
  std::set<std::string> known_;  // Objects that are there.
};

}  // namespace heddle::cluster
