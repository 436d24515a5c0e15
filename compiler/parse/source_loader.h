// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/status.h"
#include "ops/io/files/file_roots.h"

namespace heddle::ops {
class ScriptPaths;
}

namespace heddle::compiler {

/// Where the text of sourced files comes from.
class SourceLoader {
 public:
  virtual ~SourceLoader() = default;
  /// The text of a file, as written in `path` (relative to the working directory of the user, or absolute).
  /// Errors: kNotFound when there is no such file (the next place is tried then), others when it cannot be
  /// read.
  virtual Result<std::string> Load(const std::string& path) = 0;
  /// The text of the metadata of a file that the script reads; "" where there is none.
  virtual std::string LoadMetadata(const std::string& path) = 0;
  /// The words of a file of data that could be names of functions, a line each; "" where there is no file, or
  /// one of more than 1 MiB.
  virtual std::string LoadNames(const std::string& path) = 0;
};

/// Reads files of this machine; relative paths are those of `directory`, as ops::MakeFiles has it. `roots`
/// says which files a script may use.
class FileSourceLoader : public SourceLoader {
 public:
  explicit FileSourceLoader(const std::string& directory, ops::FileRoots roots = {});
  ~FileSourceLoader() override;
  Result<std::string> Load(const std::string& path) override;
  std::string LoadMetadata(const std::string& path) override;
  std::string LoadNames(const std::string& path) override;

 private:
  // At most `most_bytes`; an ordinary file if `only_ordinary`.
  Result<std::string> Read(const std::string& path, size_t most_bytes, bool only_ordinary) const;

  const std::string directory_;
  const std::unique_ptr<const ops::ScriptPaths> paths_;
};

/// Serves files that travelled with a job: ScriptFile::path -> text.
class MemorySourceLoader : public SourceLoader {
 public:
  explicit MemorySourceLoader(std::map<std::string, std::string> files) : files_(std::move(files)) {}
  Result<std::string> Load(const std::string& path) override;
  std::string LoadMetadata(const std::string& path) override;
  std::string LoadNames(const std::string& path) override;
  /// Under which path what LoadNames(path) gives travels.
  static std::string PathOfNames(const std::string& path) { return path + "#names"; }

 private:
  std::map<std::string, std::string> files_;
};

}  // namespace heddle::compiler
