// SPDX-License-Identifier: Apache-2.0
#include "ops/device/measure.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "ops/device/print/prelude.h"
#include "ops/device/print/print_cell.h"
#include "ops/device/print/printer.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGroup = 64;
constexpr int64_t kMostBytes = int64_t{64} << 20;
constexpr int64_t kLaunches = 100;
constexpr int64_t kFmasOfItem = int64_t{8} << 10;
constexpr int kRepetitions = 3;

constexpr std::string_view kKernels = R"(
__kernel void heddle_nothing(__global double* a) {}
__kernel void heddle_scale(const long count, __global const double* a, __global double* b) {
  for (long i = (long)get_global_id(0); i < count; i += (long)get_global_size(0)) b[i] = a[i] * 2.0;
}
__kernel void heddle_fma(const long count, __global double* a) {
  const long i = (long)get_global_id(0);
  double s0 = a[i], s1 = s0 + 1.0, s2 = s0 + 2.0, s3 = s0 + 3.0;
  for (long k = 0; k < count; k += 4) {
    s0 = fma(s0, 0.5, 1.0);
    s1 = fma(s1, 0.5, 1.0);
    s2 = fma(s2, 0.5, 1.0);
    s3 = fma(s3, 0.5, 1.0);
  }
  a[i] = (s0 + s1) + (s2 + s3);
}
)";

class Measurement {
 public:
  Measurement(ComputeDevice& device, Clock& clock) : device_(device), clock_(clock) {}

  Result<DeviceRates> Run() {
    HEDDLE_ASSIGN_OR_RETURN(queue_, device_.MakeQueue());
    const DeviceDescription& description = device_.description();
    const int64_t bytes =
        std::min({kMostBytes, description.memory_bytes / 8, description.largest_allocation_bytes}) / 8 * 8;
    const int64_t groups = description.compute_units * 32;
    host_.assign(static_cast<size_t>(bytes / 8), 1.0);
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceMemory> a, device_.Allocate(bytes));
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceMemory> b, device_.Allocate(bytes));
    const std::string source = std::string(printed::Prelude()) + std::string(kKernels);
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceKernel> nothing,
                            device_.Compile(source, "heddle_nothing"));
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceKernel> scale,
                            device_.Compile(source, "heddle_scale"));
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceKernel> fma, device_.Compile(source, "heddle_fma"));
    DeviceRates rates;
    const auto of_bytes = static_cast<double>(bytes);
    HEDDLE_ASSIGN_OR_RETURN(double ns, Time([&] { return queue_->Write(host_.data(), bytes, *a, 0); }));
    rates.copy_in = of_bytes / ns * 1e9;
    HEDDLE_ASSIGN_OR_RETURN(ns, Time([&] { return queue_->Read(*a, 0, bytes, host_.data()); }));
    rates.copy_out = of_bytes / ns * 1e9;
    const std::vector<DeviceArgument> cells = {bytes / 8, a, b};
    HEDDLE_ASSIGN_OR_RETURN(ns, Time([&] { return queue_->Launch(scale, cells, {groups, kGroup}); }));
    rates.memory = 2 * of_bytes / ns * 1e9;
    const std::vector<DeviceArgument> sums = {kFmasOfItem, b};
    const int64_t items = std::min(groups, bytes / 8 / kGroup) * kGroup;
    HEDDLE_ASSIGN_OR_RETURN(ns, Time([&] { return queue_->Launch(fma, sums, {items / kGroup, kGroup}); }));
    rates.fma = static_cast<double>(items * kFmasOfItem) / ns * 1e9;
    const std::vector<DeviceArgument> none = {a};
    HEDDLE_ASSIGN_OR_RETURN(ns, Time([&] {
                              for (int64_t i = 0; i < kLaunches; ++i)
                                HEDDLE_RETURN_IF_ERROR(queue_->Launch(nothing, none, {1, kGroup}));
                              return OkStatus();
                            }));
    rates.launch_ns = ns / static_cast<double>(kLaunches);
    return rates;
  }

 private:
  // Nanoseconds of the fastest of some times; one before them warms up.
  Result<double> Time(const std::function<Status()>& commands) {
    double least = std::numeric_limits<double>::infinity();
    for (int repetition = 0; repetition <= kRepetitions; ++repetition) {
      const int64_t start = clock_.MonotonicNs();
      HEDDLE_RETURN_IF_ERROR(commands());
      HEDDLE_RETURN_IF_ERROR(queue_->Finish());
      const auto ns = static_cast<double>(std::max<int64_t>(clock_.MonotonicNs() - start, 1));
      if (repetition > 0) least = std::min(least, ns);
    }
    return least;
  }

  ComputeDevice& device_;
  Clock& clock_;
  std::vector<double> host_;  // As long as the queue, whose commands read and write it.
  std::unique_ptr<DeviceQueue> queue_;
};

}  // namespace

Result<DeviceRates> MeasureDevice(ComputeDevice& device, Clock& clock) {
  return Measurement(device, clock).Run();
}

Result<double> MeasureCompiling(ComputeDevice& device, Clock& clock, int64_t salt) {
  // exp(a) * log(a), and what else depends on the salt.
  printed::Printer printer("v", "    ");
  const auto print = [](UnaryCode code) {
    return printed::PrintNode({.op = RegionOp::kUnary, .unary = code}, "x", "", "");
  };
  const std::string exp = print(UnaryCode::kExponential), log = print(UnaryCode::kLogarithm);
  printer.Line(fmt::format("a[i] = {} * {} + (double){};", exp, log, salt));
  const std::string source = fmt::format(
      "{}__kernel void heddle_new(const long count, __global double* a) {{\n"
      "  for (long i = (long)get_global_id(0); i < count; i += (long)get_global_size(0)) {{\n"
      "    const double x = a[i];\n{}  }}\n}}\n",
      printed::Prelude(), printer.TakeText());
  constexpr int64_t kCells = 1024;
  const std::vector<double> ones(kCells, 1.0);
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceQueue> queue, device.MakeQueue());
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceMemory> cells, device.Allocate(kCells * 8));
  HEDDLE_RETURN_IF_ERROR(queue->Write(ones.data(), kCells * 8, *cells, 0));
  HEDDLE_RETURN_IF_ERROR(queue->Finish());
  const int64_t begin = clock.MonotonicNs();
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceKernel> kernel, device.Compile(source, "heddle_new"));
  // Some drivers compile when a kernel is launched.
  const std::vector<DeviceArgument> arguments = {kCells, cells};
  HEDDLE_RETURN_IF_ERROR(queue->Launch(kernel, arguments, {kCells / kGroup, kGroup}));
  HEDDLE_RETURN_IF_ERROR(queue->Finish());
  return static_cast<double>(std::max<int64_t>(clock.MonotonicNs() - begin, 1));
}

}  // namespace heddle::ops
