// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace heddle::ops {

/// The discrete Fourier transform of n complex numbers, y_k = sum of x_j exp(-2 pi i jk / n), for any n.
///
/// Lengths whose prime factors are at most 13 are taken apart factor by factor (Stockham's form of the
/// algorithm of Cooley and Tukey); others are convolutions of a length that is a power of two (Bluestein, A
/// linear filtering approach to the computation of discrete Fourier transform, 1970).
/// Error: |y - exact| <= c log2(n) eps |x| in the Euclidean norm (Higham, Accuracy and Stability of Numerical
/// Algorithms, section 24.1). Cost: O(n log n).
/// The order of operations is a function of n. Const functions may be called by any number of threads.
class FourierPlan {
 public:
  using Complex = std::complex<double>;

  explicit FourierPlan(int64_t n);
  int64_t n() const { return n_; }

  /// Room for one transform at a time.
  struct Workspace {
    std::vector<Complex> cells, other;
  };
  /// Transforms re + i im in place. `inverse`: with +2 pi i and divided by n.
  void Transform(double* re, double* im, bool inverse, Workspace* workspace) const;

 private:
  /// Transforms `cells`; `other` is as long and ends up arbitrary.
  void Forward(std::vector<Complex>* cells, std::vector<Complex>* other) const;
  void ForwardByFactors(std::vector<Complex>* cells, std::vector<Complex>* other) const;
  void ForwardByConvolution(std::vector<Complex>* cells) const;

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Complex> roots_;  // exp(-2 pi i k / n)
  // Of Bluestein's way: exp(-pi i k^2 / n), the transform of its conjugate, and the plan of their length.
  std::vector<Complex> chirp_, chirp_transform_;
  std::unique_ptr<FourierPlan> convolution_;
};

}  // namespace heddle::ops
