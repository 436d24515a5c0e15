// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "compiler/optimize/infer.h"
#include "core/programs/graph.h"
#include "ops/io/files/file_versions.h"

namespace heddle::engine {

/// What rank 0 sees of the files that a graph reads, before any rank opens one of them. Every rank takes it
/// from rank 0: it has made all earlier writes of the script by then, and all ranks read the same version.
struct FileLook {
  /// Reads that come after a write of the graph that may change what they read, or whose path the graph
  /// computes from what is not known yet.
  std::set<NodeId> waiting;
  std::map<std::string, ops::FileVersion> versions;  ///< Of all files that the other reads look at, by path.

  std::string ToText() const;
  static Result<FileLook> Parse(const std::string& text);
};

/// Whether a graph reads files at all.
bool ReadsFiles(const Graph& graph);

/// `live_in` tells the paths, as far as they are known. Behind the first read that waits all others
/// wait, too.
FileLook LookAtFiles(const Graph& graph, const compiler::LiveIns& live_in, ops::Files* files);

}  // namespace heddle::engine
