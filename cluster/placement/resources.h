// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace heddle::cluster {

/// What one executor has of its worker: nobody else gets it as long as the executor may run.
struct Share {
  int threads = 1;           ///< Of its kernels.
  int64_t memory_bytes = 0;  ///< 0: its worker does not know how much it has.

  friend bool operator==(const Share&, const Share&) = default;
};

/// What a job asks for. Jobs of equal demands can take each other's places.
struct Demand {
  int workers = 0;           ///< 0: all that are alive.
  int threads = 0;           ///< On each of them; 0: what the worker offers divided by its slots.
  int64_t memory_bytes = 0;  ///< The same.
  /// Of the time that the job has until its deadline, in seconds, the number of binary digits; 0: it has
  /// none. Those with little time may fit where others must not (Placement).
  int digits_of_deadline = 0;
  /// As many workers as are free will do, one at least: the job goes on from a checkpoint.
  bool may_shrink = false;
  /// Number of a job that is to avoid workers on which it failed, so that it can take nobody's place; else 0.
  int64_t only_job = 0;
  /// Workers that have it come first: "auto", any device, or "opencl:0"; "": it asks for none.
  std::string device;

  friend auto operator<=>(const Demand&, const Demand&) = default;
};

}  // namespace heddle::cluster
