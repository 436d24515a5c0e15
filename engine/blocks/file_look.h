// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "compiler/optimize/infer.h"
#include "core/programs/graph.h"
#include "ops/io/files/file_versions.h"

namespace heddle::engine {

/// The files that a graph reads, as rank 0 finds them before any rank opens one. Rank 0 has made all earlier
/// writes of the script by then; it sends this to all ranks, so that they read the same version of each file.
struct FileLook {
  /// Reads that cannot run yet: a write of the graph comes before them and may change their file, or the
  /// graph has yet to compute their path.
  std::set<NodeId> waiting;
  std::map<std::string, ops::FileVersion> versions;  ///< By path: the files of all other reads.

  std::string ToText() const;
  static Result<FileLook> Parse(const std::string& text);
};

/// Whether a graph reads files at all.
bool ReadsFiles(const Graph& graph);

/// `live_in` has the variables that paths are computed from. Behind the first read that waits all others
/// wait.
FileLook LookAtFiles(const Graph& graph, const compiler::LiveIns& live_in, ops::Files* files);

}  // namespace heddle::engine
