// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "core/status.h"

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

/// Reads files below a directory of this machine; "" is the working directory of the process.
class FileSourceLoader : public SourceLoader {
 public:
  explicit FileSourceLoader(std::string directory = "") : directory_(std::move(directory)) {}
  Result<std::string> Load(const std::string& path) override;
  std::string LoadMetadata(const std::string& path) override;
  std::string LoadNames(const std::string& path) override;

 private:
  std::string directory_;
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
