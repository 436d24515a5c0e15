// SPDX-License-Identifier: Apache-2.0
#include "ops/device/compiled_kernels.h"

#include <mutex>
#include <tuple>
#include <utility>

#include "core/recently_used.h"

namespace heddle::ops {
namespace {

constexpr size_t kMostKernels = 1024;

// A kernel, or why there is none. Whoever asks while it is compiled waits.
struct Compiled {
  std::mutex mutex;  // Of the next three.
  bool is_made = false;
  int failures = 0;
  Result<std::shared_ptr<DeviceKernel>> kernel = Internal("a kernel that nobody has compiled");
  bool is_there = false;  // Under the mutex of all.
};

using Key = std::tuple<uint64_t, std::string, std::string>;  // Device, name and source.

struct Kernels {
  std::mutex mutex;  // Not held while something is compiled.
  RecentlyUsedMap<Key, std::shared_ptr<Compiled>> by_source{kMostKernels};
};

Kernels& OfProcess() {
  // Never destroyed: drivers' threads may outlive what is static.
  static auto* const kernels = new Kernels();
  return *kernels;
}

}  // namespace

Result<std::shared_ptr<DeviceKernel>> KernelOf(ComputeDevice& device, const std::string& source,
                                               const std::string& name) {
  Kernels& kernels = OfProcess();
  Key key(device.id(), name, source);
  std::shared_ptr<Compiled> compiled;
  {
    const std::lock_guard lock(kernels.mutex);
    const auto* const found = kernels.by_source.Find(key);
    compiled = found != nullptr ? *found
                                : kernels.by_source.Add(std::move(key), std::make_shared<Compiled>());
  }
  const std::lock_guard making(compiled->mutex);
  if (compiled->is_made) return compiled->kernel;
  compiled->kernel = device.Compile(source, name);
  compiled->is_made = !IsForNow(compiled->kernel.status()) || ++compiled->failures == kMostFailures;
  const std::lock_guard lock(kernels.mutex);
  compiled->is_there = compiled->is_made;
  return compiled->kernel;
}

bool IsCompiled(const ComputeDevice& device, const std::string& source, const std::string& name) {
  Kernels& kernels = OfProcess();
  {
    const std::lock_guard lock(kernels.mutex);
    const auto* const found = kernels.by_source.Find(Key(device.id(), name, source));
    if (found != nullptr && (*found)->is_there) return true;
  }
  return device.IsKept(source);
}

}  // namespace heddle::ops
