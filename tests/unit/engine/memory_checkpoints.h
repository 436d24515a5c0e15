// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "engine/checkpoints/checkpoint_store.h"

namespace heddle::engine {

/// Checkpoints in memory, which tests may damage.
class MemoryCheckpoints : public CheckpointStore {
 public:
  Result<std::unique_ptr<Writer>> Create(const std::string& name) override {
    return std::unique_ptr<Writer>(std::make_unique<MemoryWriter>(*this, name));
  }
  Result<int64_t> SizeOf(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(name);
    if (found == objects_.end()) return NotFound("no '{}'", name);
    return static_cast<int64_t>(found->second.size());
  }
  Status Read(const std::string& name, int64_t offset, std::span<char> to) override {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(name);
    if (found == objects_.end()) return NotFound("no '{}'", name);
    const auto begin = static_cast<size_t>(offset);
    if (begin > found->second.size() || found->second.size() - begin < to.size())
      return DataLoss("'{}' is too short", name);
    std::copy_n(found->second.begin() + offset, to.size(), to.begin());
    return OkStatus();
  }
  Status RemoveAll(const std::string& folder) override {
    const std::lock_guard lock(mutex_);
    std::erase_if(objects_, [&](const auto& object) { return object.first.starts_with(folder + "/"); });
    return OkStatus();
  }

  std::map<std::string, std::string> objects() const {
    const std::lock_guard lock(mutex_);
    return objects_;
  }
  void Set(const std::string& name, std::string bytes) {
    const std::lock_guard lock(mutex_);
    objects_[name] = std::move(bytes);
  }

 private:
  class MemoryWriter : public Writer {
   public:
    MemoryWriter(MemoryCheckpoints& store, std::string name) : store_(store), name_(std::move(name)) {}
    Status Append(std::string_view bytes) override {
      bytes_.append(bytes);
      return OkStatus();
    }
    Status Finish() override {
      store_.Set(name_, std::move(bytes_));
      return OkStatus();
    }

   private:
    MemoryCheckpoints& store_;
    const std::string name_;
    std::string bytes_;
  };

  mutable std::mutex mutex_;
  std::map<std::string, std::string> objects_;
};

}  // namespace heddle::engine
