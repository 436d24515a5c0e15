// SPDX-License-Identifier: Apache-2.0
#pragma once

// The Eigen library as this folder uses it, which alone includes it: factorizations that can be interrupted.
//
// Eigen states what it takes for granted in assertions, and lets its users define what an assertion is. Here
// those at blocks of cells and at rotations, which every step of a factorization has, are a look at the flag
// of the kernel that runs on the thread: when the kernel was cancelled, an exception leaves the library,
// which is as safe with it as with one of operator new. Assertions at single cells and rows, in inner loops,
// are nothing. No value that is computed depends on it.
#include <atomic>
#include <string_view>

namespace heddle::ops {

/// Thrown through Eigen and caught by Interruptible().
struct EigenInterrupted {};

/// Of a kernel that cannot be cancelled, and where none is.
inline constexpr std::atomic<bool> kNeverCancelled{false};
/// The flag of the kernel that uses Eigen on this thread.
inline constinit thread_local const std::atomic<bool>* eigen_cancelled = &kNeverCancelled;

[[noreturn]] void LeaveEigen();
inline void LeaveEigenIfCancelled() {
  if (eigen_cancelled->load(std::memory_order_relaxed)) [[unlikely]]
    LeaveEigen();
}

/// Whether an assertion of Eigen's with this condition belongs to a block of cells or a rotation.
consteval bool IsOfAStep(std::string_view condition) {
  return condition.find("startRow") != std::string_view::npos ||
         condition.find("xpr_x.size()") != std::string_view::npos;
}

}  // namespace heddle::ops

#define eigen_assert(condition)                                                                 \
  do {                                                                                          \
    if constexpr (::heddle::ops::IsOfAStep(#condition)) ::heddle::ops::LeaveEigenIfCancelled(); \
  } while (false)

// The macro comes first.
#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <unsupported/Eigen/MatrixFunctions>

#include "ops/base/kernel.h"

namespace heddle::ops {

/// While it lives, Eigen looks at this flag on the calling thread.
class EigenInterruptScope {
 public:
  explicit EigenInterruptScope(const std::atomic<bool>* cancelled) {
    if (cancelled != nullptr) eigen_cancelled = cancelled;
  }
  ~EigenInterruptScope() { eigen_cancelled = &kNeverCancelled; }
  EigenInterruptScope(const EigenInterruptScope&) = delete;
};

/// A kernel that ends with kCancelled soon after it was cancelled, wherever in Eigen it is.
template <Result<Value> (*run)(const KernelCall&)>
Result<Value> Interruptible(const KernelCall& call) {
  const EigenInterruptScope scope(call.context.cancelled);
  try {
    return run(call);
  } catch (const EigenInterrupted&) {
    return Cancelled("cancelled");
  }
}
template <Status (*run)(const KernelCall&, std::span<Value>)>
Status Interruptible(const KernelCall& call, std::span<Value> results) {
  const EigenInterruptScope scope(call.context.cancelled);
  try {
    return run(call, results);
  } catch (const EigenInterrupted&) {
    return Cancelled("cancelled");
  }
}

}  // namespace heddle::ops
