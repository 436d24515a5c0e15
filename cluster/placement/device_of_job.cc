// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/device_of_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace heddle::cluster {

std::string DeviceIn(std::string_view devices) {
  return devices == "cpu" ? "" : std::string(devices.substr(0, devices.find('/')));
}

bool Offers(const WorkerDescription& worker, std::string_view device) {
  if (device == "auto") return !worker.device.empty();
  return device.empty() || device == worker.device;
}

std::string DevicesOn(const std::vector<const WorkerDescription*>& workers, const std::string& devices) {
  const std::string device = DeviceIn(devices);
  if (device.empty()) return "cpu";
  for (const WorkerDescription* const worker : workers)
    if (Offers(*worker, device)) return device == "auto" ? worker->device + "/cost" : devices;
  return "cpu";
}

std::string NoteOnDevices(const std::vector<const WorkerDescription*>& workers, const std::string& devices) {
  if (devices == "cpu") return "";
  const std::string chosen = DevicesOn(workers, devices);
  const std::string device = DeviceIn(chosen == "cpu" ? devices : chosen);
  std::vector<std::string> without;
  for (const WorkerDescription* const worker : workers)
    if (!Offers(*worker, device)) without.push_back(worker->name);
  if (without.empty()) return "";
  const bool is_one = without.size() == 1;
  return fmt::format("{} offer{} no {} (heddle worker --devices): {} compute{} in its place",
                     fmt::join(without, ", "), is_one ? "s" : "", device == "auto" ? "device" : device,
                     is_one ? "its processor" : "their processors", is_one ? "s" : "");
}

}  // namespace heddle::cluster
