// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "ops/base/cell_codes.h"

// Cell-wise kernels on flat arrays, one table per target. The same code serves matrices, scalars and the
// constant folder: it is the one definition of every cell-wise operator (docs/numerics.md R5). No standard
// headers: see vector.h.
namespace heddle::ops {

/// How an operand of a kernel is read: one value a cell, or one value for all cells.
enum class Operands : uint8_t { kCellsCells, kCellsScalar, kScalarCells };

/// out[i] = a[i] op b[i] for i < n; a scalar operand is read at [0] only. `out` may be `a` or `b`. With
/// `stream` the result goes past the caches (for results much larger than these).
using BinaryKernel = void (*)(const double* a, const double* b, double* out, int64_t n, bool stream);
using UnaryKernel = void (*)(const double* a, double* out, int64_t n, bool stream);
/// out[i] = condition[i * condition_step] != 0 ? a[i * a_step] : b[i * b_step]; steps are 0 or 1.
using SelectKernel = void (*)(const double* condition, int64_t condition_step, const double* a,
                              int64_t a_step, const double* b, int64_t b_step, double* out, int64_t n);

/// Writes each of `count` values `times` times; up to seven more cells of `out` are overwritten.
using RepeatKernel = void (*)(const double* values, int64_t count, int64_t times, double* out);

/// out[i] = in[i] for i < n: exact, and rounded to nearest.
using WidenKernel = void (*)(const float* in, double* out, int64_t n);
using NarrowKernel = void (*)(const double* in, float* out, int64_t n);

struct ElementwiseKernels {
  BinaryKernel binary[kBinaryCodes][3];  ///< [code][Operands]
  UnaryKernel unary[kUnaryCodes];
  SelectKernel select;
  RepeatKernel repeat;
  WidenKernel widen;
  NarrowKernel narrow;

  BinaryKernel Of(BinaryCode code, Operands operands) const {
    return binary[static_cast<int>(code)][static_cast<int>(operands)];
  }
  UnaryKernel Of(UnaryCode code) const { return unary[static_cast<int>(code)]; }
};

extern const ElementwiseKernels kElementwiseKernelsAvx2;
extern const ElementwiseKernels kElementwiseKernelsAvx512;

/// The table for SelectedCpu() (ops/base/cpu.h).
const ElementwiseKernels& SelectedElementwiseKernels();

}  // namespace heddle::ops
