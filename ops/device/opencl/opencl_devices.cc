// SPDX-License-Identifier: Apache-2.0
#include "ops/device/opencl/opencl_devices.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "core/memory/counted_heap.h"
#include "ops/device/opencl/opencl_library.h"
#include "ops/device/opencl/opencl_memory.h"
#include "ops/device/opencl/opencl_programs.h"

namespace heddle::ops {
namespace {

const OpenClMemory& MemoryOf(const DeviceMemory& memory) { return static_cast<const OpenClMemory&>(memory); }

class OpenClKernel : public DeviceKernel {
 public:
  OpenClKernel(const OpenClLibrary& library, std::shared_ptr<const OpenClProgram> program, cl_kernel kernel)
      : library_(library), program_(std::move(program)), kernel_(kernel) {}
  ~OpenClKernel() override { library_.clReleaseKernel(kernel_); }
  OpenClKernel(const OpenClKernel&) = delete;
  OpenClKernel& operator=(const OpenClKernel&) = delete;

  /// Arguments belong to the kernel until it is queued, so that one launch at a time sets them.
  std::mutex& mutex() { return mutex_; }
  cl_kernel handle() const { return kernel_; }

 private:
  const OpenClLibrary& library_;
  const std::shared_ptr<const OpenClProgram> program_;
  const cl_kernel kernel_;
  std::mutex mutex_;
};

class OpenClMark : public DeviceMark {
 public:
  OpenClMark(const OpenClLibrary& library, cl_event event) : library_(library), event_(event) {}
  ~OpenClMark() override { library_.clReleaseEvent(event_); }
  OpenClMark(const OpenClMark&) = delete;
  OpenClMark& operator=(const OpenClMark&) = delete;
  cl_event event() const { return event_; }

 private:
  const OpenClLibrary& library_;
  const cl_event event_;
};

// OpenCL hands on a failure only to commands that wait for the one that failed (5.9 of its specification). So
// each marker waits for all commands since the one before, and for that one.
class OpenClQueue : public DeviceQueue {
 public:
  OpenClQueue(const OpenClLibrary& library, const DeviceDescription& device, OpenClMemories& memories,
              cl_command_queue queue)
      : library_(library), device_(device), memories_(memories), queue_(queue) {}
  ~OpenClQueue() override {
    const HeapModeScope counts(HeapMode::kCounts);
    library_.clFinish(queue_);
    ForgetEvents();
    library_.clReleaseCommandQueue(queue_);
  }
  OpenClQueue(const OpenClQueue&) = delete;
  OpenClQueue& operator=(const OpenClQueue&) = delete;

  Status Write(const void* from, int64_t bytes, DeviceMemory& to, int64_t offset) override {
    if (bytes == 0) return OkStatus();
    return Queued("a copy to the device", {&MemoryOf(to)}, [&](cl_event* event) {
      return library_.clEnqueueWriteBuffer(queue_, MemoryOf(to).handle(), CL_FALSE,
                                           static_cast<size_t>(offset), static_cast<size_t>(bytes), from, 0,
                                           nullptr, event);
    });
  }
  Status Read(const DeviceMemory& from, int64_t offset, int64_t bytes, void* to) override {
    if (bytes == 0) return OkStatus();
    return Queued("a copy from the device", {&MemoryOf(from)}, [&](cl_event* event) {
      return library_.clEnqueueReadBuffer(queue_, MemoryOf(from).handle(), CL_FALSE,
                                          static_cast<size_t>(offset), static_cast<size_t>(bytes), to, 0,
                                          nullptr, event);
    });
  }
  Status Launch(const std::shared_ptr<DeviceKernel>& kernel, std::span<const DeviceArgument> arguments,
                const LaunchShape& shape) override {
    auto& function = static_cast<OpenClKernel&>(*kernel);
    const std::lock_guard lock(function.mutex());
    std::vector<const OpenClMemory*> used;
    for (size_t i = 0; i < arguments.size(); ++i) {
      cl_mem memory = nullptr;
      const void* value = nullptr;
      size_t bytes = sizeof(int64_t);
      if (const auto* held = std::get_if<std::shared_ptr<DeviceMemory>>(&arguments[i]); held != nullptr) {
        if (*held != nullptr) memory = used.emplace_back(&MemoryOf(**held))->handle();
        value = &memory;
        bytes = sizeof(cl_mem);
      } else if (const auto* whole = std::get_if<int64_t>(&arguments[i]); whole != nullptr) {
        value = whole;
      } else {
        value = std::get_if<double>(&arguments[i]);
      }
      HEDDLE_RETURN_IF_ERROR(
          Check("an argument of a kernel",
                library_.clSetKernelArg(function.handle(), static_cast<cl_uint>(i), bytes, value)));
    }
    const size_t local = static_cast<size_t>(shape.group_size);
    const size_t global = local * static_cast<size_t>(shape.groups);
    return Queued("a kernel", used, [&](cl_event* event) {
      return library_.clEnqueueNDRangeKernel(queue_, function.handle(), 1, nullptr, &global, &local, 0,
                                             nullptr, event);
    });
  }
  Status WhenDone(std::function<void(const Status&)> done) override {
    const HeapModeScope counts(HeapMode::kCounts);
    HEDDLE_ASSIGN_OR_RETURN(const cl_event event, Marker());
    const auto waiting = std::make_shared<Waiting>(device_, std::move(done));
    auto held = std::make_unique<std::shared_ptr<Waiting>>(waiting);
    // Before the flush: Oclgrind computes within it, and calls nobody back who asks later.
    HEDDLE_RETURN_IF_ERROR(
        Check("a marker", library_.clSetEventCallback(event, CL_COMPLETE, &OpenClQueue::Call, held.get())));
    static_cast<void>(held.release());  // Call has it.
    const Status flushed = Flush();
    // Whoever comes first tells: the caller of this, or the driver in spite of its error.
    return flushed.ok() || waiting->is_told.exchange(true) ? OkStatus() : flushed;
  }
  Status Finish() override {
    const HeapModeScope counts(HeapMode::kCounts);
    HEDDLE_RETURN_IF_ERROR(Check("a command", library_.clFinish(queue_)));
    // Whether commands have failed their events tell, nobody else does.
    Status status;
    for (const cl_event event : events_) {
      cl_int state = CL_COMPLETE;
      const cl_int code = library_.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state),
                                                  &state, nullptr);
      if (status.ok() && (code != CL_SUCCESS || state < 0))
        status = OpenClError(code != CL_SUCCESS ? code : state, "a command", device_);
    }
    if (status.ok()) ForgetEvents();
    return status;
  }
  Result<std::shared_ptr<DeviceMark>> Mark() override {
    HEDDLE_ASSIGN_OR_RETURN(const cl_event event, Marker());
    library_.clRetainEvent(event);
    auto mark = std::make_shared<OpenClMark>(library_, event);
    HEDDLE_RETURN_IF_ERROR(Flush());
    return std::shared_ptr<DeviceMark>(std::move(mark));
  }
  Status WaitFor(const std::shared_ptr<DeviceMark>& mark) override {
    if (mark == nullptr) return OkStatus();
    const cl_event before = static_cast<const OpenClMark&>(*mark).event();
    return Queued("a barrier", {}, [&](cl_event* event) {
      return library_.clEnqueueBarrierWithWaitList(queue_, 1, &before, event);
    });
  }

 private:
  // What a callback needs, which may come when the queue is gone.
  struct Waiting {
    Waiting(const DeviceDescription& device, std::function<void(const Status&)> done)
        : device(device), done(std::move(done)) {}
    const DeviceDescription& device;
    const std::function<void(const Status&)> done;
    std::atomic<bool> is_told = false;
  };
  static void CL_CALLBACK Call(cl_event, cl_int status, void* data) {
    const std::unique_ptr<std::shared_ptr<Waiting>> held(static_cast<std::shared_ptr<Waiting>*>(data));
    Waiting& waiting = **held;
    if (waiting.is_told.exchange(true)) return;
    waiting.done(status < 0 ? OpenClError(status, "a command", waiting.device) : OkStatus());
  }
  Status Check(std::string_view command, cl_int code) const {
    return code == CL_SUCCESS ? OkStatus() : OpenClError(code, command, device_);
  }
  // A command that reads or writes the memory `used`, which may go away before the command is done.
  template <typename Enqueue>
  Status Queued(std::string_view command, const std::vector<const OpenClMemory*>& used,
                const Enqueue& enqueue) {
    // A driver whose memory is the process's takes it here, and POCL ends the process where the heap refuses:
    // whatever a driver is asked for, it is given.
    const HeapModeScope counts(HeapMode::kCounts);
    cl_event event = nullptr;
    cl_int code = enqueue(&event);
    // Some drivers look for the memory of a buffer when its first command comes.
    if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE && memories_.ReleaseKept() > 0) code = enqueue(&event);
    HEDDLE_RETURN_IF_ERROR(Check(command, code));
    events_.push_back(event);
    for (const OpenClMemory* const memory : used) memory->UsedBy(queue_, event);
    return OkStatus();
  }
  // The event of a marker behind all commands, which stays this queue's.
  Result<cl_event> Marker() {
    const HeapModeScope counts(HeapMode::kCounts);
    cl_event event = nullptr;
    HEDDLE_RETURN_IF_ERROR(
        Check("a marker", library_.clEnqueueMarkerWithWaitList(queue_, static_cast<cl_uint>(events_.size()),
                                                               events_.empty() ? nullptr : events_.data(),
                                                               &event)));
    ForgetEvents();
    events_.push_back(event);
    return event;
  }
  // The device begins with what is queued.
  Status Flush() {
    const HeapModeScope counts(HeapMode::kCounts);
    return Check("a marker", library_.clFlush(queue_));
  }
  void ForgetEvents() {
    for (const cl_event event : events_) library_.clReleaseEvent(event);
    events_.clear();
  }

  const OpenClLibrary& library_;
  const DeviceDescription& device_;
  OpenClMemories& memories_;
  const cl_command_queue queue_;
  std::vector<cl_event> events_;  // Of the last marker and of the commands behind it.
};

class OpenClDevice : public ComputeDevice {
 public:
  OpenClDevice(const OpenClLibrary& library, cl_device_id id, cl_context context,
               DeviceDescription description)
      : library_(library),
        id_(id),
        context_(context),
        description_(std::move(description)),
        memories_(library, context, description_),
        // Drivers for the processor (POCL) keep what they compile; a binary of theirs takes them longer to
        // make than a second process wins by it.
        programs_(library, id, context, description_,
                  description_.is_host ? std::string() : ObjectCache::FolderOf("kernels")) {}

  const DeviceDescription& description() const override { return description_; }

  Result<std::shared_ptr<DeviceMemory>> Allocate(int64_t bytes) override { return memories_.Allocate(bytes); }

  Result<std::unique_ptr<DeviceQueue>> MakeQueue() override {
    const HeapModeScope counts(HeapMode::kCounts);
    cl_int code = CL_SUCCESS;
    const cl_command_queue queue = library_.clCreateCommandQueue(context_, id_, 0, &code);
    if (queue == nullptr || code != CL_SUCCESS) return OpenClError(code, "a queue", description_);
    return std::unique_ptr<DeviceQueue>(
        std::make_unique<OpenClQueue>(library_, description_, memories_, queue));
  }

  Result<std::shared_ptr<DeviceKernel>> Compile(const std::string& source, const std::string& name) override {
    // Drivers and their compilers do not bear an allocation that is refused.
    const HeapModeScope counts(HeapMode::kCounts);
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const OpenClProgram> program, programs_.Build(source));
    cl_int code = CL_SUCCESS;
    const cl_kernel kernel = library_.clCreateKernel(program->handle(), name.c_str(), &code);
    if (kernel == nullptr || code != CL_SUCCESS) return OpenClError(code, "a kernel", description_);
    return std::shared_ptr<DeviceKernel>(
        std::make_shared<OpenClKernel>(library_, std::move(program), kernel));
  }
  bool IsKept(const std::string& source_or_name) const override { return programs_.IsKept(source_or_name); }
  void Keep(const std::string& name) override { programs_.Keep(name); }

 private:
  const OpenClLibrary& library_;
  const cl_device_id id_;
  const cl_context context_;  // As long as the process.
  const DeviceDescription description_;
  OpenClMemories memories_;
  const OpenClPrograms programs_;
};

template <typename Ask>
std::string TextOf(Ask ask) {
  size_t bytes = 0;
  if (ask(0, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (ask(bytes, text.data(), nullptr) != CL_SUCCESS) return "";
  return text.substr(0, text.find('\0'));
}

template <typename T>
T NumberOf(const OpenClLibrary& library, cl_device_id id, cl_device_info what) {
  T number = {};
  library.clGetDeviceInfo(id, what, sizeof(number), &number, nullptr);
  return number;
}

DeviceDescription Describe(const OpenClLibrary& library, cl_platform_id platform, cl_device_id id,
                           uint32_t index) {
  const auto of_device = [&](cl_device_info what) {
    return TextOf([&](size_t size, void* to, size_t* bytes) {
      return library.clGetDeviceInfo(id, what, size, to, bytes);
    });
  };
  const std::string platform_name = TextOf([&](size_t size, void* to, size_t* bytes) {
    return library.clGetPlatformInfo(platform, CL_PLATFORM_NAME, size, to, bytes);
  });
  DeviceDescription description;
  description.device = {DeviceType::kOpenCl, index};
  description.name = of_device(CL_DEVICE_NAME);
  description.driver = platform_name + " " + of_device(CL_DRIVER_VERSION);
  description.memory_bytes = static_cast<int64_t>(NumberOf<cl_ulong>(library, id, CL_DEVICE_GLOBAL_MEM_SIZE));
  description.largest_allocation_bytes =
      static_cast<int64_t>(NumberOf<cl_ulong>(library, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  description.local_bytes = static_cast<int64_t>(NumberOf<cl_ulong>(library, id, CL_DEVICE_LOCAL_MEM_SIZE));
  description.compute_units = NumberOf<cl_uint>(library, id, CL_DEVICE_MAX_COMPUTE_UNITS);
  description.most_group_size =
      static_cast<int64_t>(NumberOf<size_t>(library, id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  description.has_doubles = NumberOf<cl_device_fp_config>(library, id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  description.is_host = (NumberOf<cl_device_type>(library, id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  return description;
}

class OpenClDeviceSet : public DeviceSet {
 public:
  explicit OpenClDeviceSet(const OpenClLibrary& library) {
    cl_uint count = 0;
    if (library.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return;
    std::vector<cl_platform_id> platforms(count);
    if (library.clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) return;
    for (const cl_platform_id platform : platforms) AddDevices(library, platform);
  }
  std::vector<ComputeDevice*> devices() override {
    std::vector<ComputeDevice*> devices;
    for (const std::unique_ptr<OpenClDevice>& device : devices_) devices.push_back(device.get());
    return devices;
  }

 private:
  void AddDevices(const OpenClLibrary& library, cl_platform_id platform) {
    cl_uint count = 0;
    if (library.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) return;
    std::vector<cl_device_id> ids(count);
    if (library.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr) != CL_SUCCESS)
      return;
    for (const cl_device_id id : ids) {
      if (devices_.size() >= kMostDevices) return;
      cl_int code = CL_SUCCESS;
      const cl_context context = library.clCreateContext(nullptr, 1, &id, nullptr, nullptr, &code);
      if (context == nullptr || code != CL_SUCCESS) continue;
      devices_.push_back(std::make_unique<OpenClDevice>(
          library, id, context, Describe(library, platform, id, static_cast<uint32_t>(devices_.size()))));
    }
  }

  std::vector<std::unique_ptr<OpenClDevice>> devices_;
};

}  // namespace

Result<DeviceSet*> OpenClDevices() {
  HEDDLE_ASSIGN_OR_RETURN(const OpenClLibrary* library, OpenClLibrary::Open());
  // Never destroyed: drivers' threads may outlive what is static.
  static DeviceSet* const devices = new OpenClDeviceSet(*library);
  return devices;
}

}  // namespace heddle::ops
