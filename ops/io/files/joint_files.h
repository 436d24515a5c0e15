// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/io/files/change_gate.h"
#include "ops/io/files/folder_replacement.h"
#include "ops/io/files/hidden_names.h"
#include "ops/io/files/joint_bytes.h"
#include "ops/io/files/replacement.h"
#include "ops/io/files/script_paths.h"

namespace heddle::ops {

/// Where a file that several processes make together lies until it is whole.
struct JointFile {
  std::string path;    ///< Of the script: what takes its place in the end, a file or a folder.
  std::string hidden;  ///< The name beside it under which it lies.
  std::string name;    ///< Of the file in the folder; "" where the path is a file.
};

/// The files of a job that its processes make together. One process begins, finishes and commits a file; all
/// of them write to it in between. What is not committed is removed by the destructor, in each process.
/// Thread-safe, with one thread for each file.
class JointFiles {
 public:
  JointFiles(const ScriptPaths& paths, ChangeGate* gate) : paths_(paths), gate_(gate) {}
  JointFiles(const JointFiles&) = delete;
  JointFiles& operator=(const JointFiles&) = delete;
  ~JointFiles();

  /// Makes an empty file or folder beside `path` and returns its hidden name.
  Result<std::string> Begin(const std::string& path, bool is_folder);
  /// Takes note of what another process has begun: this one, too, removes it if it is still there in the end.
  Status Know(const std::string& path, const std::string& hidden);
  /// The part of this process, which begins at `offset`, or where JointBytes::PlaceAt() says. kNotFound when
  /// nothing has that hidden name here: the process that has begun it sees another folder.
  Result<std::unique_ptr<JointBytes>> Open(const JointFile& file, std::optional<int64_t> offset);
  /// Keep the part of this process from one step of a write to the next. Take() returns nullptr where none is
  /// held.
  void Hold(const JointFile& file, std::unique_ptr<JointBytes> bytes);
  std::unique_ptr<JointBytes> Take(const JointFile& file);
  /// Writes the last bytes of a file, which are on disk then.
  Status Finish(const JointFile& file, std::span<const PlacedBytes> bytes);
  /// Removes what has that hidden name, because nobody will finish it.
  void Abandon(const std::string& hidden);
  /// Puts the file or folder in its place, whole.
  Status Commit(const std::string& path, const std::string& hidden);

 private:
  struct Known {
    FilePlace place;  // of what it is to be
    std::string hidden;
  };

  Result<Descriptor> OpenForWriting(const JointFile& file);
  void ForgetCommitted();

  const ScriptPaths& paths_;
  ChangeGate* const gate_;
  AbandonedParts abandoned_;
  std::mutex mutex_;
  // All of these under it.
  std::vector<Known> known_;
  std::map<std::string, Replacement> files_;  // By hidden name: those that this process has begun.
  std::map<std::string, FolderReplacement> folders_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<JointBytes>> held_;
};

}  // namespace heddle::ops
