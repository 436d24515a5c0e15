// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/status.h"
#include "ops/files/change_gate.h"

namespace heddle::ops {

/// A new content on its way to a name: it is written to a file without a name (or with one that nobody knows,
/// where the file system has no such files) beside its place, and takes the place when it is whole.
///
/// A name that is a link is followed, so that the link stays and what it points to is replaced. An older file
/// hands on its mode, and its owner and group where that is allowed; a new file gets what the umask says.
class Replacement {
 public:
  /// `absolute` is where, `shown` how errors name it. Makes folders that are missing. kDataLoss when
  /// something other than a file is there.
  static Result<Replacement> Begin(const std::string& absolute, const std::string& shown);
  Replacement(Replacement&& other) noexcept;
  Replacement& operator=(Replacement&&) = delete;
  /// Without a Commit nothing is left.
  ~Replacement();

  /// For writing.
  int fd() const { return fd_; }
  /// The file takes its place, on disk when this returns, when the gate (nullptr: none) lets it.
  Status Commit(ChangeGate* gate = nullptr);

 private:
  Replacement(std::string target, std::string shown);
  Status Open();
  Status MakeName();
  Status TakeOverFrom(const std::string& target);

  std::string target_;  // with links followed
  std::string folder_;
  std::string shown_;
  std::string temporary_;  // "" while the file has no name
  int fd_ = -1;
};

/// Before the process ends in the midst of its work: no Replacement commits any more, and the files that
/// those at work have under a name are removed.
void AbandonReplacements();

/// An error of the system as people understand it: "cannot read 'X.csv': no such file". Takes errno.
Status FileError(const char* what, const std::string& path);

}  // namespace heddle::ops
