// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace heddle::compiler {

/// What the analytical model knows about the machine: rates of all threads together, per second.
struct MachineConstants {
  double write = 0;             ///< Bytes of results.
  double read = 0;              ///< Bytes of inputs.
  double broadcast = 0;         ///< Bytes sent to or from one other rank.
  double compute = 0;           ///< Units of ops::FusionTraits::flops (or published_flops).
  double operator_seconds = 0;  ///< To start an operator and hand on its result.
  /// The published model: its table of operators, results written as if dense, an Outer operator scaled as a
  /// whole by the sparsity of its largest input and nothing else by sparsity, and a transpose counted under
  /// t(X) %*% Y. Otherwise results go by their format, and whatever goes along the non-zeros of a driver
  /// computes and gathers only there.
  bool published = false;
  bool measured = false;  ///< read, write and compute were measured on a machine, not built in.

  bool operator==(const MachineConstants&) const = default;
};

/// The constants of the reference (2 GiB/s write, 32 GiB/s read, 2 Gi operations per second and thread):
/// golden tests.
MachineConstants PublishedConstants(int threads);
/// Built-in constants of this engine until a machine has measured its own: huge pages are reused, so writing
/// costs little more than reading. Fewer threads than one count as one.
MachineConstants DefaultConstants(int threads);

/// Every rate a number that a machine of these years can have, so that the model may divide by them. False
/// for constants that nobody has set, and for damaged ones.
bool ArePlausible(const MachineConstants& constants);
/// `constants` where they are plausible, else the built-in ones.
MachineConstants OrDefault(const MachineConstants& constants, int threads);

/// "measured constants: read 36 GB/s, write 30 GB/s, compute 16 G/s, broadcast 1 GB/s, 3 us an operator"
std::string ToText(const MachineConstants& constants);

}  // namespace heddle::compiler
