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
#include "ops/io/files/replacement.h"

namespace heddle::ops {

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
