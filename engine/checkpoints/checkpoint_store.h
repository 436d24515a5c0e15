// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/status.h"

namespace heddle::engine {

/// Where checkpoints are: objects under names such as "j17/3-1/rank-0", each written whole, once. All ranks
/// of a job, and those that come after them on other machines, see the same objects. Thread-safe.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  /// An object that is being written. Without Finish() nothing is left under its name.
  class Writer {
   public:
    virtual ~Writer() = default;
    virtual Status Append(std::string_view bytes) = 0;
    /// When it returns Ok, the object is there and stays, whatever happens to this machine.
    virtual Status Finish() = 0;
  };

  /// kResourceExhausted without room, kUnavailable when the store cannot be reached or written to.
  virtual Result<std::unique_ptr<Writer>> Create(const std::string& name) = 0;
  /// kNotFound when there is no such object.
  virtual Result<int64_t> SizeOf(const std::string& name) = 0;
  /// Fills `to` with the bytes of an object from `offset` on. kNotFound; kDataLoss when it has fewer.
  virtual Status Read(const std::string& name, int64_t offset, std::span<char> to) = 0;
  /// Removes every object whose name begins with "`folder`/". Those that are not there are no error.
  virtual Status RemoveAll(const std::string& folder) = 0;
  /// Calls that wait for a network, and all to come, fail soon: nobody needs them any more. Any thread.
  virtual void GiveUp() {}
};

}  // namespace heddle::engine
