// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "core/status.h"
#include "ops/io/files/change_gate.h"
#include "ops/io/files/descriptor_bytes.h"
#include "ops/io/files/script_paths.h"

namespace heddle::ops {

/// A new content on its way to a name: it is written to a file without a name (or with one that nobody knows,
/// where the file system has no such files) beside its place, and takes the place when it is whole.
///
/// An older file hands on its mode, and its owner and group where that is allowed; a new file gets what the
/// umask says.
class Replacement {
 public:
  /// `place` is where (ScriptPaths::Use::kWrite), `shown` how errors name it. kDataLoss when something other
  /// than a file is there.
  static Result<Replacement> Begin(FilePlace place, const std::string& shown);
  Replacement(Replacement&& other) noexcept;
  Replacement& operator=(Replacement&&) = delete;
  /// Without a Commit nothing is left.
  ~Replacement();

  /// For writing, and for reading what has been written.
  int fd() const { return fd_; }
  /// The file takes its place, on disk when this returns, when the gate (nullptr: none) lets it.
  Status Commit(ChangeGate* gate = nullptr);
  /// Gives the file a hidden name beside its place (ops/io/files/hidden_names.h), under which others find it.
  Result<std::string> Hide();

 private:
  Replacement(FilePlace place, std::string shown) : place_(std::move(place)), shown_(std::move(shown)) {}
  Status Open();
  Status MakeName();
  Status TakeOver();

  FilePlace place_;
  std::string shown_;
  std::string temporary_;  // beside it; "" while the file has no name
  int fd_ = -1;
};

}  // namespace heddle::ops
