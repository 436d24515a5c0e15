// SPDX-License-Identifier: Apache-2.0
#include "ops/device/opencl/opencl_memory.h"

#include <algorithm>

#include "core/memory/counted_heap.h"
#include "core/memory/memory_budget.h"
#include "core/values/panels.h"
#include "ops/device/opencl/opencl_programs.h"

namespace heddle::ops {
namespace {

// Buffers that are kept take an eighth of the memory of the device at most. Where it is the host's, they take
// no more of what the process may use, and leave as much of it for what kernels of the host work with.
// `kept`: bytes of those that are there.
int64_t MostKept(const DeviceDescription& device, int64_t kept) {
  constexpr int64_t kPartKept = 8;
  const int64_t of_device = device.memory_bytes / kPartKept;
  if (!device.is_host) return of_device;
  const MemoryBudget& budget = MemoryBudget::Process();
  const int64_t part = budget.limit() / kPartKept, free = budget.limit() - budget.used() + kept;
  return std::max<int64_t>(0, std::min({of_device, part, free - part}));
}

// How much more the process holds, with so many bytes, than it may.
int64_t BeyondBudget(int64_t bytes) {
  const MemoryBudget& budget = MemoryBudget::Process();
  return budget.used() + bytes - budget.limit();
}

// Of the sizes of buffers, so that small ones differ less.
constexpr int64_t kStepBytes = 256;

}  // namespace

OpenClMemory::~OpenClMemory() {
  const HeapModeScope counts(HeapMode::kCounts);  // Nobody can be told here that the heap refuses.
  memories_.owned_bytes_ -= buffer_bytes_;
  ForgetDone();
  // The events are released with the last copy of the function.
  struct Uses {
    ~Uses() {
      for (const auto& [queue, event] : last) memories.library_.clReleaseEvent(event);
    }
    OpenClMemories& memories;
    std::vector<std::pair<cl_command_queue, cl_event>> last;
  };
  const std::shared_ptr<Uses> uses(new Uses{memories_, std::move(last_uses_)});
  memories_.kept_.Keep({.handle = handle_, .bytes = buffer_bytes_, .is_idle = [uses] {
                          return std::all_of(uses->last.begin(), uses->last.end(), [&](const auto& use) {
                            return uses->memories.IsDone(use.second);
                          });
                        }});
}

void OpenClMemory::UsedBy(cl_command_queue queue, cl_event event) const {
  memories_.library_.clRetainEvent(event);
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(last_uses_.begin(), last_uses_.end(),
                                  [&](const auto& use) { return use.first == queue; });
  if (found != last_uses_.end()) {
    // Done before this one: a queue does its commands one after the other.
    memories_.library_.clReleaseEvent(std::exchange(found->second, event));
    return;
  }
  // Queues come and go, and an event may hold its queue.
  ForgetDone();
  last_uses_.emplace_back(queue, event);
}

void OpenClMemory::ForgetDone() const {
  std::erase_if(last_uses_, [&](const auto& use) {
    const bool is_done = memories_.IsDone(use.second);
    if (is_done) memories_.library_.clReleaseEvent(use.second);
    return is_done;
  });
}

OpenClMemories::OpenClMemories(const OpenClLibrary& library, cl_context context,
                               const DeviceDescription& device)
    : library_(library),
      context_(context),
      device_(device),
      kept_([this] { return MostKept(device_, kept_.bytes()); },
            [&library](void* handle) { library.clReleaseMemObject(static_cast<cl_mem>(handle)); }) {}

Result<std::shared_ptr<DeviceMemory>> OpenClMemories::Allocate(int64_t bytes) {
  if (bytes > device_.largest_allocation_bytes)
    return ResourceExhausted("{} bytes at once are more than the {} that the device {} gives", bytes,
                             device_.largest_allocation_bytes, device_.name);
  // Some drivers give more than there is, and find out when a command comes.
  if (const int64_t owned = owned_bytes_; owned + bytes > device_.memory_bytes)
    return ResourceExhausted("{} bytes: of the {} of the device {} are {} in use", bytes,
                             device_.memory_bytes, device_.name, owned);
  const int64_t rounded = std::min(CeilDivide(std::max<int64_t>(bytes, 1), kStepBytes) * kStepBytes,
                                   std::max<int64_t>(device_.largest_allocation_bytes, 1));
  const auto owned = [&](cl_mem handle, int64_t buffer_bytes) {
    owned_bytes_ += buffer_bytes;
    return std::shared_ptr<DeviceMemory>(
        std::make_shared<OpenClMemory>(*this, handle, bytes, buffer_bytes));
  };
  if (const std::optional<FreeBuffers::Buffer> kept = kept_.Take(rounded))
    return owned(static_cast<cl_mem>(kept->handle), kept->bytes);
  int64_t surplus = owned_bytes_ + kept_.bytes() + rounded - device_.memory_bytes;
  if (device_.is_host) surplus = std::max(surplus, BeyondBudget(rounded));
  if (surplus > 0) kept_.Release(surplus);
  cl_int code = CL_SUCCESS;
  cl_mem handle = Make(rounded, &code);
  if (handle == nullptr && ReleaseKept() > 0) handle = Make(rounded, &code);
  if (handle == nullptr) return OpenClError(code, fmt::format("{} bytes", bytes), device_);
  return owned(handle, rounded);
}

cl_mem OpenClMemories::Make(int64_t bytes, cl_int* code) {
  const HeapModeScope counts(HeapMode::kCounts);  // As for all calls of drivers.
  const cl_mem handle =
      library_.clCreateBuffer(context_, CL_MEM_READ_WRITE, static_cast<size_t>(bytes), nullptr, code);
  if (handle != nullptr && *code == CL_SUCCESS) {
    ++made_;
    return handle;
  }
  return nullptr;
}

// Also of commands that have failed: nothing uses the buffer any more.
bool OpenClMemories::IsDone(cl_event event) const {
  cl_int state = CL_COMPLETE;
  const cl_int code = library_.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state,
                                              nullptr);
  return code != CL_SUCCESS || state <= CL_COMPLETE;
}

}  // namespace heddle::ops
