// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/programs/program.h"

namespace heddle::ops {
class Files;
}

namespace heddle::compiler {

/// Files that a script writes on the way to a place: a read behind it may find what was written. A write also
/// changes the file's .mtd, and a read looks at it.
class WrittenFiles {
 public:
  /// `files` tells which paths name one file; with nullptr their spelling has to do.
  explicit WrittenFiles(ops::Files* files) : files_(files) {}
  /// nullopt: a path that is not known, so any file.
  void Add(const std::optional<Scalar>& path);
  bool IsEmpty() const { return !is_any_ && written_.empty(); }
  /// `path` of a read; nullopt as above.
  bool MayChange(const std::optional<Scalar>& path) const;

 private:
  std::string IdentityOf(const std::string& path) const;

  ops::Files* files_;
  bool is_any_ = false;
  std::set<std::string> written_;  // identities
};

/// The path that a "read" or "write" node names, where it is a literal.
std::optional<Scalar> LiteralPath(const Graph& graph, const Node& node);

/// The reads of a program that may come behind a write that changes what they read, by block: their sizes are
/// not those of the files that are there before the script runs.
std::map<int32_t, std::set<NodeId>> ReadsBehindWrites(const Program& program, ops::Files* files);

}  // namespace heddle::compiler
