// SPDX-License-Identifier: Apache-2.0
#include "ops/device/operators/device_commands.h"

#include <algorithm>

#include "core/values/panels.h"
#include "ops/device/compiled_kernels.h"

namespace heddle::ops {
namespace {

constexpr std::string_view kHead = R"(#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
)";
constexpr std::string_view kOfDoubles = R"(typedef double CELL;
#define SINGLE 0
#define ROUNDED(x) (x)
)";
constexpr std::string_view kOfFloats = R"(typedef float CELL;
#define SINGLE 1
#define ROUNDED(x) convert_float_rte(x)
)";

std::string Joined(std::string_view types, std::string_view text) {
  std::string source(kHead);
  source += types;
  source += text;
  return source;
}

}  // namespace

std::string OverCells(ElementType type, std::string_view text) {
  return Joined(type == ElementType::kFloat32 ? kOfFloats : kOfDoubles, text);
}

std::string OverBits(ElementType type, std::string_view text) {
  return Joined(type == ElementType::kFloat32 ? "typedef uint CELL;\n" : "typedef ulong CELL;\n", text);
}

Status DeviceCommands::Launch(const std::string& source, const std::string& name,
                              std::span<const DeviceArgument> arguments, const LaunchShape& shape) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceKernel> kernel, KernelOf(device_, source, name));
  return queue_.Launch(kernel, arguments, shape);
}

LaunchShape DeviceCommands::ShapeOfCells(int64_t cells) const {
  constexpr int64_t kGroupSize = 64, kGroupsOfUnit = 32;
  const int64_t group_size = std::min(kGroupSize, description().most_group_size);
  return {.groups = std::clamp<int64_t>(CeilDivide(cells, group_size), 1,
                                        description().compute_units * kGroupsOfUnit),
          .group_size = group_size};
}

Status DeviceSteps::Run() {
  constexpr int kLongAtOnce = 4;
  for (int launched = 0; !steps_.empty();) {
    if (steps_.front().is_long && launched == kLongAtOnce) {
      if (commands_.queue().Postpone([self = shared_from_this()] { return self->Run(); })) return OkStatus();
      HEDDLE_RETURN_IF_ERROR(commands_.queue().Finish());
      launched = 0;
    }
    if (commands_.IsCancelled()) return Cancelled("cancelled");
    launched += steps_.front().is_long ? 1 : 0;
    const std::function<Status()> take = std::move(steps_.front().take);
    steps_.pop_front();
    HEDDLE_RETURN_IF_ERROR(take());
  }
  return OkStatus();
}

}  // namespace heddle::ops
