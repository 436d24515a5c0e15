// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "core/environment/clock.h"
#include "ops/device/device.h"
#include "ops/device/opencl/driver_advice.h"
#include "ops/device/opencl/opencl_devices.h"
#include "ops/device/opencl/rates.h"
#include "ops/device/self_test.h"

namespace heddle::cluster::cli {
namespace {

constexpr Option kOptions[] = {{"json", Option::Kind::kFlag, "", "print one JSON object"}};

// A device, what it does, and why it is not used where it is not.
struct Found {
  ops::DeviceDescription description;
  ops::DeviceRates rates;
  std::string refused;
};

Found Look(ops::ComputeDevice& device) {
  Found found{.description = device.description()};
  if (const Status status = ops::CheckArithmetic(device); !status.ok()) {
    found.refused = status.message();
    return found;
  }
  // Runs that choose by cost find these.
  const Result<ops::DeviceRates> rates = ops::MeasureRates(device, SystemClock(), ops::DiskOfDevices());
  if (rates.ok())
    found.rates = *rates;
  else
    found.refused = rates.status().message();
  return found;
}

std::string NameOf(const ops::DeviceDescription& description) {
  return fmt::format("{}:{}", Name(description.device.type), description.device.index);
}

std::string ToText(const Found& found) {
  const ops::DeviceDescription& description = found.description;
  std::string text = fmt::format("{}  {} ({}), {} compute units, {:.1f} GB\n", NameOf(description),
                                 description.name, description.driver, description.compute_units,
                                 static_cast<double>(description.memory_bytes) / 1e9);
  if (!found.refused.empty()) return text + fmt::format("  not used: {}\n", found.refused);
  const ops::DeviceRates& rates = found.rates;
  return text + fmt::format(
                    "  memory {:.1f} GB/s, copies in {:.1f} and out {:.1f} GB/s, {:.1f} GFMA/s, "
                    "a launch takes {:.1f} us, a new kernel {:.0f} ms\n",
                    rates.memory / 1e9, rates.copy_in / 1e9, rates.copy_out / 1e9, rates.fma / 1e9,
                    rates.launch_ns / 1e3, rates.compile_ns / 1e6);
}

nlohmann::ordered_json ToJson(const Found& found) {
  const ops::DeviceDescription& description = found.description;
  return {{"device", NameOf(description)},
          {"name", description.name},
          {"driver", description.driver},
          {"compute_units", description.compute_units},
          {"memory_bytes", description.memory_bytes},
          {"local_bytes", description.local_bytes},
          {"is_usable", found.refused.empty()},
          {"is_host", description.is_host},
          {"refused", found.refused},
          {"memory_bytes_per_s", found.rates.memory},
          {"copy_in_bytes_per_s", found.rates.copy_in},
          {"copy_out_bytes_per_s", found.rates.copy_out},
          {"fma_per_s", found.rates.fma},
          {"launch_ns", found.rates.launch_ns},
          {"compile_ns", found.rates.compile_ns}};
}

int Run(const Arguments& arguments) {
  const Result<ops::DeviceSet*> set = ops::OpenClDevices();
  std::string text;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (set.ok())
    for (ops::ComputeDevice* const device : (*set)->devices()) {
      const Found found = Look(*device);
      text += ToText(found);
      list.push_back(ToJson(found));
    }
  const std::string why = set.ok() ? "OpenCL knows no device" : set.status().message();
  const std::string next = set.ok() && list.empty() ? ops::AdviceOnDrivers() : "";
  if (list.empty()) text = fmt::format("no device beside the processor: {}\n", why);
  if (!next.empty()) text += fmt::format("  {}\n", next);
  if (arguments.Has("json"))
    PrintOutput(
        nlohmann::ordered_json{{"devices", list}, {"why", list.empty() ? why : ""}, {"next", next}}.dump() +
        "\n");
  else
    PrintOutput(text);
  return 0;
}

}  // namespace

const Verb kDevicesVerb = {
    "devices",          "list the devices beside the processor, and measure what they do in a second",
    "devices [--json]", JoinOptions({kOptions}),
    "heddle devices",   Run};

}  // namespace heddle::cluster::cli
