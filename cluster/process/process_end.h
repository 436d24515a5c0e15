// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a process of Heddle that ended without an answer tells why: by its exit code (core/status.h: ExitCode)
// or by the signal that ended it.
namespace heddle::cluster {

inline constexpr int kMemoryExitCode = 5;
inline constexpr int kBugExitCode = 70;

/// True for signals that a process brings on itself: a failed check, a wrong address, instruction or
/// division.
bool IsSignalOfBug(int signal);
/// Whether a signal stops a process until another one lets it go on. Of an executor that is killed because
/// such a signal has kept it silent, this is ExecutorExit::value: somebody did that to it.
bool IsSignalOfStop(int signal);

}  // namespace heddle::cluster
