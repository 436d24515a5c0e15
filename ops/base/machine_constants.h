// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace heddle::ops {

struct Cost;

/// How fast the ranks of a job reach each other, all links alike: a step is as slow as its slowest rank.
struct LinkRates {
  double bytes_per_ns = 1;     ///< To or from one other rank.
  double message_ns = 50'000;  ///< From a value that is there to the task of another rank that reads it.
  bool measured = false;       ///< Between these ranks, not built in.

  bool operator==(const LinkRates&) const = default;
};

/// How fast a machine is, as measured on it (engine/machine/machine_probe.h) or built in: rates of all
/// threads of a rank together. The one place where amounts of bytes and work become time; fusion, plans, and
/// whoever asks whether something is too small to be worth a plan, a task or a thread, go by these.
struct MachineConstants {
  double read_bytes_per_ns = 0;
  double write_bytes_per_ns = 0;  ///< Of results.
  double work_per_ns = 0;         ///< Units of Cost::work.
  double operator_ns = 0;         ///< To start an operator and hand on its result.
  LinkRates links;
  bool measured = false;  ///< Bytes read and written and work were measured, not built in.

  bool operator==(const MachineConstants&) const = default;
};

/// Constants of a machine that has not measured its own: huge pages are reused, so writing costs little more
/// than reading. Fewer threads than one count as one.
MachineConstants BuiltInConstants(int threads);

/// Every rate a number that a machine of these years can have, so that the model may divide by them. False
/// for constants that nobody has set, and for damaged ones.
bool ArePlausible(const MachineConstants& constants);
bool ArePlausible(const LinkRates& links);
/// `constants` where they are plausible, else the built-in ones, with links that were measured.
MachineConstants OrBuiltIn(const MachineConstants& constants, int threads);

/// Work of a multiply-add inside a product.
constexpr double kWorkOfMultiplyAdd = 0.3;

/// How long an operator takes that computes and moves so much, whichever of both takes longer; without what
/// every operator takes (MachineConstants::operator_ns).
double NanosecondsOf(const Cost& cost, const MachineConstants& constants);

/// "measured constants: read 36 GB/s, write 30 GB/s, compute 16 G/s, broadcast 1 GB/s, 3 us an operator"
std::string ToText(const MachineConstants& constants);
/// "measured: 33 us a message, 8 GB/s"
std::string ToText(const LinkRates& links);

}  // namespace heddle::ops
