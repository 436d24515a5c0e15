// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/environment/descriptor.h"
#include "core/status.h"
#include "ops/io/files/change_gate.h"
#include "ops/io/files/script_paths.h"

namespace heddle::ops {

/// A folder of part files on its way to a name: it is filled under a hidden name beside its place, and takes
/// the place when it is whole. What is there before stays until then: a file, or a folder that holds nothing
/// but parts.
class FolderReplacement {
 public:
  /// `place` is where, `shown` how errors name it. kDataLoss when something else is there.
  static Result<FolderReplacement> Begin(FilePlace place, const std::string& shown);
  FolderReplacement(FolderReplacement&& other) noexcept;
  FolderReplacement& operator=(FolderReplacement&&) = delete;
  /// Without a Commit nothing is left.
  ~FolderReplacement();

  const std::string& name() const { return name_; }  ///< The hidden one.
  /// The folder takes its place when the gate (nullptr: none) lets it, and what was there is removed.
  Status Commit(ChangeGate* gate);

 private:
  FolderReplacement(FilePlace place, std::string shown)
      : place_(std::move(place)), shown_(std::move(shown)) {}
  Status Make();
  bool TakePlace() const;

  FilePlace place_;
  std::string shown_;
  std::string name_;
  Descriptor folder_;
};

}  // namespace heddle::ops
