// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"
#include "ops/io/files/change_gate.h"
#include "ops/io/files/descriptor_bytes.h"
#include "ops/io/files/files.h"
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

/// A file on its way to its name: bytes are appended to it, and it takes its place when it is whole. Without
/// a Commit nothing is left, and what was there before stays. One thread at a time.
class NewFile {
 public:
  /// `shown` is how errors name it; `gate` (nullptr: none) outlives this and is asked by Commit().
  NewFile(Replacement replacement, std::string shown, ChangeGate* gate)
      : replacement_(std::move(replacement)), shown_(std::move(shown)), gate_(gate) {}

  int64_t size() const { return size_; }
  /// kResourceExhausted when the disk is full.
  Status Append(std::string_view bytes);
  /// Puts other bytes in the place of the first `count`. Where they are more or fewer, all that is behind
  /// moves, which reads and writes the whole file once more. Fails as Append does.
  Status ReplaceBeginning(int64_t count, std::string_view bytes);
  /// What has been appended so far, for who reads it while this lives.
  std::unique_ptr<InputFile> Written() const;
  /// The file takes its place, on disk when this returns.
  Status Commit() { return replacement_.Commit(gate_); }

 private:
  Status Move(int64_t from, int64_t to);

  Replacement replacement_;
  const std::string shown_;
  ChangeGate* const gate_;
  int64_t size_ = 0;
  EarlyFlush flush_;
};

}  // namespace heddle::ops
