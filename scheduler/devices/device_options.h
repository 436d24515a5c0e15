// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/programs/graph.h"
#include "core/programs/residence.h"
#include "core/programs/stream.h"
#include "ops/device/measure.h"

namespace heddle::scheduler {

/// The device of every rank, and how a plan chooses what runs there (docs/devices.md).
struct DeviceOptions {
  enum class Rule : uint8_t {
    kAll,     ///< Every operator that it can run.
    kByCost,  ///< Regions of operators that are faster there, with all copies.
    kRandom,  ///< A random half of what it can run: for tests.
  };
  Device device;
  Rule rule = Rule::kAll;
  uint64_t seed = 0;  ///< Of kRandom.
  ops::DeviceRates rates;  ///< Of kByCost.
  int64_t memory_bytes = 0;  ///< What plans may take of its memory; 0: what they like.
  ops::DeviceDescription description;  ///< Sizes of 0 are not known.
  /// Of kByCost: what names the kernels that have to be compiled before an operator runs; those with the same
  /// name are compiled once. nullopt: there are none. Without this function no operator waits for a compiler.
  std::function<std::optional<std::string>(const Node&, std::span<const ValueInfo>)> new_kernel;
  /// How many times the plan runs, about: in the rounds of loops. What is compiled serves all of them.
  double runs = 1;
  /// Of live-ins that are not on the host alone.
  std::map<std::string, Residence> residences;
  /// How many runs of plans read a live-in as it is, this one included; 1 of those left out. A copy of it
  /// that one run makes serves all of them.
  std::map<std::string, double> reads;
};

/// "opencl:0", "opencl:0/cost" or "opencl:0/random:SEED", without rates and what is known of live-ins;
/// nullopt for "cpu" and for other words.
std::optional<DeviceOptions> ParseDevices(std::string_view text);

}  // namespace heddle::scheduler
