// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/status.h"

namespace heddle::engine {

struct ControlState;

/// Takes the states of a session, one rank's part of them, at moments that are the same on every rank: for
/// checkpoints (engine/checkpoints/checkpoints.h). Called on the thread of the session: to take a state
/// between two steps of its control program, and to wait for the last one within a step, too.
class StateTaker {
 public:
  virtual ~StateTaker() = default;

  /// Where a session stands between two steps.
  struct Moment {
    static constexpr int32_t kMain = -1;
    int32_t block = kMain;        ///< Whose list of blocks is being run; kMain: the main program's.
    bool ends_round = false;      ///< All of that list have run, and it is the body of a loop.
    bool is_first_round = false;  ///< Of this run of the loop.
  };
  /// A text that rank 0 makes and all ranks get. Every rank asks at the same moments.
  using Share = std::function<Result<std::string>(const std::function<std::string()>& make)>;

  /// Whether it takes the state of this moment; the same on every rank. An error ends the run with it.
  virtual Result<bool> Wants(const Moment& moment, const Share& share) = 0;
  /// How much memory Take() works with beside the values of the state.
  virtual int64_t working_bytes() const { return 0; }
  /// Takes it. An error ends the run with it.
  virtual Status Take(ControlState state) = 0;
  /// Returns when the last state is written, and its values are held no longer: where their memory is needed.
  virtual void WaitForWrite() {}
};

}  // namespace heddle::engine
