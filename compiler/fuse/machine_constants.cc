// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/machine_constants.h"

#include <fmt/core.h>

#include <algorithm>

namespace heddle::compiler {
namespace {

constexpr double kGibi = 1024.0 * 1024.0 * 1024.0;
constexpr double kLeastRate = 1e7;
constexpr double kMostRate = 1e14;
constexpr double kMostOperatorSeconds = 1;

bool IsRate(double rate) { return rate >= kLeastRate && rate <= kMostRate; }

}  // namespace

MachineConstants PublishedConstants(int threads) {
  return {.write = 2 * kGibi,
          .read = 32 * kGibi,
          .broadcast = kGibi / 8,
          .compute = 2 * kGibi * threads,
          .published = true};
}

MachineConstants DefaultConstants(int threads) {
  threads = std::max(threads, 1);
  // One thread streams 28 GB/s, all together about 36 (the slower of the bandwidth modes seen); simple vector
  // operations on tiles in the cache reach 8e9 a second and thread.
  return {.write = std::min(20e9 * threads, 30e9),
          .read = std::min(28e9 * threads, 36e9),
          .broadcast = 1e9,
          .compute = 8e9 * threads,
          .operator_seconds = 3e-6};
}

bool ArePlausible(const MachineConstants& constants) {
  return IsRate(constants.write) && IsRate(constants.read) && IsRate(constants.broadcast) &&
         IsRate(constants.compute) && constants.operator_seconds >= 0 &&
         constants.operator_seconds <= kMostOperatorSeconds;
}

MachineConstants OrDefault(const MachineConstants& constants, int threads) {
  return ArePlausible(constants) ? constants : DefaultConstants(threads);
}

std::string ToText(const MachineConstants& constants) {
  return fmt::format(
      "{} constants: read {:.3g} GB/s, write {:.3g} GB/s, compute {:.3g} G/s, broadcast {:.3g} GB/s, "
      "{:.3g} us an operator",
      constants.measured ? "measured" : "built-in", constants.read / 1e9, constants.write / 1e9,
      constants.compute / 1e9, constants.broadcast / 1e9, constants.operator_seconds * 1e6);
}

}  // namespace heddle::compiler
