// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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
  /// Reads of large files whose size all ranks find out together, each by a look at its share, with their
  /// paths (ops/io/formats/shared_look.h).
  std::map<NodeId, std::string> shared;

  std::string ToText() const;
  static Result<FileLook> Parse(const std::string& text);
};

/// Whether a graph reads files at all.
bool ReadsFiles(const Graph& graph);

/// `live_in` has the variables that paths are computed from. Behind the first read that waits all others
/// wait.
FileLook LookAtFiles(const Graph& graph, const compiler::LiveIns& live_in, ops::Files* files);

/// Finds FileLook::shared: files of so many bytes whose size is not known and whose format allows it. On rank
/// 0, which expects the versions of the look.
void FindSharedLooks(const Graph& graph, int64_t min_distributed_bytes, ops::Files& files, FileLook* look);
/// Marks the reads that are shared out and that ranks make faster together than each for itself
/// (ops::ShouldSendCells). `values`: the known scalars of the graph, which is inferred.
void MarkSendingReads(const std::vector<std::optional<Scalar>>& values, int32_t ranks,
                      int64_t min_distributed_bytes, int64_t memory_bytes, ops::Files& files, Graph* graph);
/// The variable that the graph of a shared look assigns. It tells nothing.
inline constexpr std::string_view kLooked = "%looked";
/// The graph of one node, which looks at a share of the file of a read on each rank.
Graph GraphOfSharedLook(const Node& read, const std::string& path, int64_t ranks);

}  // namespace heddle::engine
