// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace heddle {

/// In which memories the cells of a variable are, the same on every rank that has some.
struct Residence {
  bool on_host = true;
  bool on_device = false;
  bool operator==(const Residence&) const = default;
};

/// What runs of plans call the copy on a device of a variable that is on the host, too; the device of the
/// binding (Plan::live_in, Plan::live_out) tells which of both it is.
inline std::string NameOnDevice(std::string_view variable) { return std::string(variable) + "%device"; }

}  // namespace heddle
