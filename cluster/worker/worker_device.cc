// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/worker_device.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/environment/child_process.h"
#include "core/environment/clock.h"
#include "core/text/utf8.h"

namespace heddle::cluster {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostListedBytes = 1 << 20;
constexpr int64_t kPatienceNs = 60'000'000'000;  // Of drivers that compile the kernels which measure them.
constexpr size_t kMostNameBytes = 100;

// What the process says, to its end; kUnavailable for one that says too much or takes too long.
Result<std::string> ReadOf(const Descriptor& from) {
  const int64_t end_ns = SystemClock().MonotonicNs() + kPatienceNs;
  std::string text;
  char block[4096];
  for (;;) {
    const int64_t left_ms = (end_ns - SystemClock().MonotonicNs()) / 1'000'000;
    pollfd ready = {from.get(), POLLIN, 0};
    const int polled = left_ms > 0 ? poll(&ready, 1, static_cast<int>(left_ms)) : 0;
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return Unavailable("the drivers of devices say nothing for a minute");
    const ssize_t got = read(from.get(), block, sizeof(block));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(block, static_cast<size_t>(got));
    if (static_cast<int64_t>(text.size()) > kMostListedBytes)
      return Unavailable("the drivers of devices say more than {} bytes", kMostListedBytes);
  }
}

Result<std::string> ListDevices() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return Unavailable("cannot look for devices: {}", strerror(errno));
  const Descriptor from(ends[0]);
  Descriptor to = AboveThoseOfChild(Descriptor(ends[1]));
  HEDDLE_ASSIGN_OR_RETURN(const pid_t pid, StartChild({.child = "a look for devices",
                                                       .program = "/proc/self/exe",
                                                       .arguments = {"heddle", "devices", "--json"},
                                                       .control = to.get(),
                                                       .log = to.get()}));
  to = Descriptor();
  Result<std::string> listed = ReadOf(from);
  if (!listed.ok()) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (listed.ok() && WIFSIGNALED(status))
    return Unavailable("a driver of a device was killed by signal {}", WTERMSIG(status));
  return listed;
}

std::string TextOf(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Drivers may say something of their own before its line, and behind it.
Json ObjectIn(const std::string& listed) {
  const size_t begin = listed.starts_with('{') ? 0 : listed.find("\n{");
  if (begin == std::string::npos) return Json();
  const std::string line = listed.substr(begin, listed.find('\n', begin + 1) - begin);
  return Json::parse(line, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

Result<WorkerDevice> ChooseWorkerDevice(const std::string& devices, const std::string& listed) {
  const Json found = ObjectIn(listed);
  if (!found.is_object() || !found.contains("devices") || !found["devices"].is_array()) {
    const std::string line = listed.substr(0, listed.find('\n'));
    return Unavailable("'heddle devices' lists none: it says '{}'",
                       EscapeForTerminal(CutAtCharacter(line, kMostNameBytes)));
  }
  WorkerDevice chosen;
  double most = 0;
  for (const Json& device : found["devices"]) {
    const std::string name = TextOf(device, "device");
    const bool is_asked_for = devices == "auto" ? !device.value("is_host", true) : name == devices;
    if (!is_asked_for) continue;
    if (!device.value("is_usable", false)) {
      chosen.why_not = name + ": " + TextOf(device, "refused");
      continue;
    }
    const double rate = device.value("memory_bytes_per_s", 0.0);
    if (!chosen.device.empty() && rate <= most) continue;
    most = rate;
    chosen.device = name;
    chosen.name = CutAtCharacter(TextOf(device, "name"), kMostNameBytes);
  }
  if (!chosen.device.empty()) {
    chosen.why_not.clear();
  } else if (chosen.why_not.empty()) {
    const std::string why = TextOf(found, "why");
    const size_t count = found["devices"].size();
    chosen.why_not = !why.empty() ? why
                     : devices == "auto"
                         ? "this machine has no device beside its processor"
                         : fmt::format("there is no {}, the last device is opencl:{}", devices, count - 1);
  }
  return chosen;
}

Result<WorkerDevice> FindWorkerDevice(const std::string& devices) {
  if (devices == "cpu") return WorkerDevice();
  HEDDLE_ASSIGN_OR_RETURN(const std::string listed, ListDevices());
  return ChooseWorkerDevice(devices, listed);
}

}  // namespace heddle::cluster
