// SPDX-License-Identifier: Apache-2.0
#include "ops/device/opencl/opencl_devices.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "ops/device/opencl/opencl_library.h"

namespace heddle::ops {
namespace {

// What the codes of a failed command mean to whoever waits for it.
Status CommandError(cl_int code, std::string_view command, const DeviceDescription& device) {
  const std::string name = NameOfOpenClError(code);
  if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY)
    return ResourceExhausted("{}: the device {} has no memory for it ({})", command, device.name, name);
  if (code == CL_OUT_OF_RESOURCES || code == CL_DEVICE_NOT_AVAILABLE || code < -1000)
    return Unavailable("{}: the device {} does not answer ({})", command, device.name, name);
  return Internal("{} on the device {}: {}", command, device.name, name);
}

class OpenClDevice;

class OpenClMemory : public DeviceMemory {
 public:
  OpenClMemory(const OpenClLibrary& library, cl_mem memory, int64_t bytes)
      : library_(library), memory_(memory), bytes_(bytes) {}
  ~OpenClMemory() override { library_.clReleaseMemObject(memory_); }
  OpenClMemory(const OpenClMemory&) = delete;
  OpenClMemory& operator=(const OpenClMemory&) = delete;
  int64_t bytes() const override { return bytes_; }
  cl_mem handle() const { return memory_; }

 private:
  const OpenClLibrary& library_;
  const cl_mem memory_;
  const int64_t bytes_;
};

cl_mem HandleOf(const DeviceMemory& memory) { return static_cast<const OpenClMemory&>(memory).handle(); }

class OpenClKernel : public DeviceKernel {
 public:
  OpenClKernel(const OpenClLibrary& library, cl_program program, cl_kernel kernel)
      : library_(library), program_(program), kernel_(kernel) {}
  ~OpenClKernel() override {
    library_.clReleaseKernel(kernel_);
    library_.clReleaseProgram(program_);
  }
  OpenClKernel(const OpenClKernel&) = delete;
  OpenClKernel& operator=(const OpenClKernel&) = delete;

  /// Arguments belong to the kernel until it is queued, so that one launch at a time sets them.
  std::mutex& mutex() { return mutex_; }
  cl_kernel handle() const { return kernel_; }

 private:
  const OpenClLibrary& library_;
  const cl_program program_;
  const cl_kernel kernel_;
  std::mutex mutex_;
};

class OpenClQueue : public DeviceQueue {
 public:
  OpenClQueue(const OpenClLibrary& library, const DeviceDescription& device, cl_command_queue queue)
      : library_(library), device_(device), queue_(queue) {}
  ~OpenClQueue() override {
    library_.clFinish(queue_);
    library_.clReleaseCommandQueue(queue_);
  }
  OpenClQueue(const OpenClQueue&) = delete;
  OpenClQueue& operator=(const OpenClQueue&) = delete;

  Status Write(const void* from, int64_t bytes, DeviceMemory& to, int64_t offset) override {
    if (bytes == 0) return OkStatus();
    return Check("a copy to the device",
                 library_.clEnqueueWriteBuffer(queue_, HandleOf(to), CL_FALSE, static_cast<size_t>(offset),
                                               static_cast<size_t>(bytes), from, 0, nullptr, nullptr));
  }
  Status Read(const DeviceMemory& from, int64_t offset, int64_t bytes, void* to) override {
    if (bytes == 0) return OkStatus();
    return Check("a copy from the device",
                 library_.clEnqueueReadBuffer(queue_, HandleOf(from), CL_FALSE, static_cast<size_t>(offset),
                                              static_cast<size_t>(bytes), to, 0, nullptr, nullptr));
  }
  Status Copy(const DeviceMemory& from, int64_t from_offset, int64_t bytes, DeviceMemory& to,
              int64_t to_offset) override {
    if (bytes == 0) return OkStatus();
    return Check("a copy on the device",
                 library_.clEnqueueCopyBuffer(
                     queue_, HandleOf(from), HandleOf(to), static_cast<size_t>(from_offset),
                     static_cast<size_t>(to_offset), static_cast<size_t>(bytes), 0, nullptr, nullptr));
  }
  Status Launch(const std::shared_ptr<DeviceKernel>& kernel, std::span<const DeviceArgument> arguments,
                const LaunchShape& shape) override {
    auto& function = static_cast<OpenClKernel&>(*kernel);
    const std::lock_guard lock(function.mutex());
    for (size_t i = 0; i < arguments.size(); ++i) {
      cl_mem memory = nullptr;
      const void* value = nullptr;
      size_t bytes = sizeof(int64_t);
      if (const auto* held = std::get_if<std::shared_ptr<DeviceMemory>>(&arguments[i]); held != nullptr) {
        if (*held != nullptr) memory = HandleOf(**held);
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
    // The driver keeps what a queued command uses.
    return Check("a kernel", library_.clEnqueueNDRangeKernel(queue_, function.handle(), 1, nullptr, &global,
                                                             &local, 0, nullptr, nullptr));
  }
  Status WhenDone(std::function<void(const Status&)> done) override {
    cl_event event = nullptr;
    HEDDLE_RETURN_IF_ERROR(
        Check("a marker", library_.clEnqueueMarkerWithWaitList(queue_, 0, nullptr, &event)));
    auto waiting = std::make_unique<Waiting>(Waiting{device_, std::move(done)});
    const Status status =
        Check("a marker", library_.clSetEventCallback(event, CL_COMPLETE, &OpenClQueue::Call, waiting.get()));
    library_.clReleaseEvent(event);
    HEDDLE_RETURN_IF_ERROR(status);
    waiting.release();  // Call has it.
    return Check("a marker", library_.clFlush(queue_));
  }
  Status Finish() override { return Check("a command", library_.clFinish(queue_)); }

 private:
  // What a callback needs, which may come when the queue is gone.
  struct Waiting {
    const DeviceDescription& device;
    std::function<void(const Status&)> done;
  };
  static void CL_CALLBACK Call(cl_event, cl_int status, void* data) {
    const std::unique_ptr<Waiting> waiting(static_cast<Waiting*>(data));
    waiting->done(status < 0 ? CommandError(status, "a command", waiting->device) : OkStatus());
  }
  Status Check(std::string_view command, cl_int code) const {
    return code == CL_SUCCESS ? OkStatus() : CommandError(code, command, device_);
  }

  const OpenClLibrary& library_;
  const DeviceDescription& device_;
  const cl_command_queue queue_;
};

class OpenClDevice : public ComputeDevice {
 public:
  OpenClDevice(const OpenClLibrary& library, cl_device_id id, cl_context context,
               DeviceDescription description)
      : library_(library), id_(id), context_(context), description_(std::move(description)) {}

  const DeviceDescription& description() const override { return description_; }

  Result<std::shared_ptr<DeviceMemory>> Allocate(int64_t bytes) override {
    if (bytes > description_.largest_allocation_bytes)
      return ResourceExhausted("{} bytes at once are more than the {} that the device {} gives", bytes,
                               description_.largest_allocation_bytes, description_.name);
    cl_int code = CL_SUCCESS;
    const cl_mem memory = library_.clCreateBuffer(
        context_, CL_MEM_READ_WRITE, static_cast<size_t>(std::max<int64_t>(bytes, 8)), nullptr, &code);
    if (memory == nullptr || code != CL_SUCCESS)
      return CommandError(code, fmt::format("{} bytes", bytes), description_);
    return std::shared_ptr<DeviceMemory>(std::make_shared<OpenClMemory>(library_, memory, bytes));
  }

  Result<std::unique_ptr<DeviceQueue>> MakeQueue() override {
    cl_int code = CL_SUCCESS;
    const cl_command_queue queue = library_.clCreateCommandQueue(context_, id_, 0, &code);
    if (queue == nullptr || code != CL_SUCCESS) return CommandError(code, "a queue", description_);
    return std::unique_ptr<DeviceQueue>(std::make_unique<OpenClQueue>(library_, description_, queue));
  }

  Result<std::shared_ptr<DeviceKernel>> Compile(const std::string& source, const std::string& name) override {
    cl_int code = CL_SUCCESS;
    const char* text = source.data();
    const size_t length = source.size();
    const cl_program program = library_.clCreateProgramWithSource(context_, 1, &text, &length, &code);
    if (program == nullptr || code != CL_SUCCESS) return CommandError(code, "a program", description_);
    // Floats, too, are divided as IEEE 754 has it, and no option gives up a rounding.
    code = library_.clBuildProgram(program, 1, &id_, "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt",
                                   nullptr, nullptr);
    cl_kernel kernel = nullptr;
    Status status;
    if (code != CL_SUCCESS) {
      status = Internal("the compiler of the device {} refuses a program ({}): {}", description_.name,
                        NameOfOpenClError(code), BuildLog(program));
    } else {
      kernel = library_.clCreateKernel(program, name.c_str(), &code);
      if (kernel == nullptr || code != CL_SUCCESS) status = CommandError(code, "a kernel", description_);
    }
    if (!status.ok()) {
      library_.clReleaseProgram(program);
      return status;
    }
    return std::shared_ptr<DeviceKernel>(std::make_shared<OpenClKernel>(library_, program, kernel));
  }

 private:
  // The first lines of what the compiler says.
  std::string BuildLog(cl_program program) const {
    size_t bytes = 0;
    if (library_.clGetProgramBuildInfo(program, id_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS)
      return "it does not say why";
    std::string log(bytes, '\0');
    library_.clGetProgramBuildInfo(program, id_, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
    log = log.substr(0, log.find('\0'));
    constexpr size_t kMostText = 600;
    return log.substr(0, kMostText);
  }

  const OpenClLibrary& library_;
  const cl_device_id id_;
  const cl_context context_;  // As long as the process.
  const DeviceDescription description_;
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
