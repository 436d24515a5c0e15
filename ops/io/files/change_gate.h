// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/status.h"

namespace heddle::ops {

/// Says when files may be changed, for a process whose work somebody else may have taken over without its
/// knowing (docs/decisions/0004). Thread-safe.
class ChangeGate {
 public:
  virtual ~ChangeGate() = default;
  /// Waits until `path` may be changed: a permission. Not Ok: it must stay as it is.
  virtual Result<int64_t> Open(const std::string& path) = 0;
  /// True while a permission lasts. Asked right before the change, as the process may have been stopped
  /// since.
  virtual bool IsOpen(int64_t permission) = 0;
};

/// Makes a change of `path` when the gate (nullptr: none) lets it. Nothing comes between the last look at the
/// gate and the change; what may take a while is done before by `prepare`, which may run again.
template <typename Prepare, typename Make>
Status ChangeThrough(ChangeGate* gate, const std::string& path, const Prepare& prepare, const Make& make) {
  for (;;) {
    int64_t permission = 0;
    if (gate != nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(permission, gate->Open(path));
    }
    HEDDLE_RETURN_IF_ERROR(prepare());
    if (gate == nullptr || gate->IsOpen(permission)) return make();
  }
}

}  // namespace heddle::ops
