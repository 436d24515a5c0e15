// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "compiler/optimize/static/written_files.h"
#include "core/programs/graph.h"
#include "core/programs/program.h"
#include "ops/io/files/file_versions.h"
#include "ops/io/files/files.h"

namespace heddle::engine {

/// What a variable can be made of again: one operator on constants, a read of a file or numbers that are
/// generated. A checkpoint has it in the place of the value.
struct Source {
  Graph graph;               ///< Assigns the value to kVariable.
  std::string path;          ///< Of the file that it reads; "": none.
  ops::FileVersion version;  ///< Of that file.

  static constexpr const char* kVariable = "%source";
};

/// Finds the sources of values, for one program.
class Sources {
 public:
  /// `files` outlives it; nullptr: no file is a source.
  Sources(const Program& program, ops::Files* files);

  /// The source of the value that node `assign` of a plan's graph assigns: nullptr where it comes from
  /// variables, from several operators, from a file that the program may write, or from what is neither a
  /// file nor a folder. Where it stands for a variable alone, `*variable` is its name. The same on every
  /// rank: the version of a file is the one that all have been told to read (FileVersions::Expect).
  std::shared_ptr<const Source> Of(const Graph& graph, NodeId assign, std::string* variable) const;

 private:
  ops::Files* files_;
  compiler::WrittenFiles written_;
};

}  // namespace heddle::engine
