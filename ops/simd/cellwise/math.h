// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/cellwise/elementwise.h"

// Mathematical functions of one number. They run the vector kernels on one lane, so matrices, scalars and
// folded constants have the same bits on every machine (docs/numerics.md R5); the host's libm is never asked
// for a value. Special values are IEEE 754's.
namespace heddle::ops {

/// The cell-wise operator `code` on one number.
double Apply(UnaryCode code, double x);
double Apply(BinaryCode code, double x, double y);

inline double Exp(double x) { return Apply(UnaryCode::kExponential, x); }  ///< <= 1 ulp.
inline double Log(double x) {
  return Apply(UnaryCode::kLogarithm, x);
}  ///< <= 1 ulp; 0 gives -Infinity, x < 0 NaN.
inline double Sin(double x) { return Apply(UnaryCode::kSine, x); }         ///< <= 1 ulp for every finite x.
inline double Cos(double x) { return Apply(UnaryCode::kCosine, x); }       ///< <= 1 ulp for every finite x.
inline double Tan(double x) { return Apply(UnaryCode::kTangent, x); }      ///< <= 1 ulp for every finite x.
inline double Asin(double x) { return Apply(UnaryCode::kArcSine, x); }     ///< <= 2 ulp.
inline double Acos(double x) { return Apply(UnaryCode::kArcCosine, x); }   ///< <= 2 ulp.
inline double Atan(double x) { return Apply(UnaryCode::kArcTangent, x); }  ///< <= 2 ulp.
inline double Sinh(double x) { return Apply(UnaryCode::kHyperbolicSine, x); }     ///< <= 2 ulp.
inline double Cosh(double x) { return Apply(UnaryCode::kHyperbolicCosine, x); }   ///< <= 2 ulp.
inline double Tanh(double x) { return Apply(UnaryCode::kHyperbolicTangent, x); }  ///< <= 1 ulp.
inline double Erf(double x) { return Apply(UnaryCode::kErrorFunction, x); }       ///< <= 1 ulp.
inline double Sigmoid(double x) { return Apply(UnaryCode::kSigmoid, x); }  ///< 1 / (1 + e^-x), <= 1 ulp.
/// x ^ y: <= 0.52 ulp, but for x*x, (x*x)*x and 1/x (y = 2, 3, -1); 1 for y = 0 or x = 1 (NaN included).
inline double Power(double x, double y) { return Apply(BinaryCode::kPower, x, y); }

}  // namespace heddle::ops
