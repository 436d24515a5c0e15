// SPDX-License-Identifier: Apache-2.0
#include "ops/base/machine_constants.h"

#include <fmt/core.h>

#include <algorithm>

#include "ops/base/operator.h"

namespace heddle::ops {
namespace {

constexpr double kLeastRate = 0.01;  // Ten megabytes a second,
constexpr double kMostRate = 1e5;    // a hundred terabytes.
constexpr double kMostNs = 1e9;      // To start an operator, or for a message.

bool IsRate(double rate) { return rate >= kLeastRate && rate <= kMostRate; }

}  // namespace

MachineConstants BuiltInConstants(int threads) {
  threads = std::max(threads, 1);
  // One thread streams 28 GB/s, all together about 36 (the slower of the bandwidth modes seen); simple vector
  // operations on tiles in the cache reach 8e9 a second and thread.
  return {.read_bytes_per_ns = std::min(28.0 * threads, 36.0),
          .write_bytes_per_ns = std::min(20.0 * threads, 30.0),
          .work_per_ns = 8.0 * threads,
          .operator_ns = 3000,
          .links = {}};
}

bool ArePlausible(const MachineConstants& constants) {
  return IsRate(constants.write_bytes_per_ns) && IsRate(constants.read_bytes_per_ns) &&
         IsRate(constants.work_per_ns) && constants.operator_ns >= 0 && constants.operator_ns <= kMostNs &&
         ArePlausible(constants.links);
}

bool ArePlausible(const LinkRates& links) {
  return IsRate(links.bytes_per_ns) && links.message_ns >= 0 && links.message_ns <= kMostNs;
}

MachineConstants OrBuiltIn(const MachineConstants& constants, int threads) {
  if (ArePlausible(constants)) return constants;
  MachineConstants built_in = BuiltInConstants(threads);
  if (constants.links.measured && ArePlausible(constants.links)) built_in.links = constants.links;
  return built_in;
}

double NanosecondsOf(const Cost& cost, const MachineConstants& constants) {
  return std::max(cost.bytes / constants.read_bytes_per_ns, cost.work / constants.work_per_ns);
}

std::string ToText(const MachineConstants& constants) {
  return fmt::format(
      "{} constants: read {:.3g} GB/s, write {:.3g} GB/s, compute {:.3g} G/s, {:.3g} us an operator",
      constants.measured ? "measured" : "built-in", constants.read_bytes_per_ns, constants.write_bytes_per_ns,
      constants.work_per_ns, constants.operator_ns / 1e3);
}

std::string ToText(const LinkRates& links) {
  return fmt::format("{}: {:.3g} us a message, {:.3g} GB/s", links.measured ? "measured" : "built-in",
                     links.message_ns / 1e3, links.bytes_per_ns);
}

}  // namespace heddle::ops
