// SPDX-License-Identifier: Apache-2.0
#include "ops/spectrum/fourier_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "ops/simd/cellwise/precise_math.h"

namespace heddle::ops {
namespace {

using Complex = FourierPlan::Complex;

constexpr int64_t kLargestFactor = 13;

// Written out, since operator* of std::complex looks for infinities and calls the C library.
inline Complex Times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// exp(-2 pi i k / n), 0 <= k < n, from an angle of at most pi / 4: the symmetries of the circle hold exactly.
Complex Root(int64_t k, int64_t n) {
  constexpr double kHalfPi = 1.5707963267948966;
  const int64_t quadrant = 4 * k / n;
  const int64_t rest = 4 * k - quadrant * n;  // The angle in the quadrant is (pi / 2) rest / n.
  const bool mirrored = 2 * rest > n;
  double sine, cosine;
  PreciseSineCosine(kHalfPi * (static_cast<double>(mirrored ? n - rest : rest) / static_cast<double>(n)),
                    &sine, &cosine);
  if (mirrored) std::swap(sine, cosine);
  switch (quadrant) {
    case 0: return {cosine, -sine};
    case 1: return {-sine, -cosine};
    case 2: return {-cosine, sine};
    default: return {sine, cosine};
  }
}

std::vector<Complex> Roots(int64_t n) {
  std::vector<Complex> roots(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) roots[static_cast<size_t>(k)] = Root(k, n);
  return roots;
}

// 4 and 2 first, then odd primes; empty if one of these is too large.
std::vector<int64_t> SmallFactors(int64_t n) {
  std::vector<int64_t> factors;
  if (n < 1) return factors;
  for (int64_t factor : {4, 2, 3, 5, 7, 11, 13}) {
    for (; n % factor == 0; n /= factor) factors.push_back(factor);
  }
  if (n > 1) factors.clear();
  return factors;
}

// A step of a transform of length n_of_step * stride: `stride` interleaved transforms of length n_of_step
// become `factor` times as many of a length that is as much smaller. Those of 2 and 4 need no
// multiplications.
struct Step {
  int64_t factor;
  int64_t length;  // Of the smaller transforms.
  int64_t stride;
};

void TransformOfFew(int64_t factor, const std::vector<Complex>& roots, const Complex* in, Complex* out) {
  if (factor == 2) {
    out[0] = in[0] + in[1];
    out[1] = in[0] - in[1];
    return;
  }
  if (factor == 4) {
    const Complex even = in[0] + in[2], odd = in[1] + in[3], difference = in[0] - in[2];
    const Complex turned = {in[1].imag() - in[3].imag(), in[3].real() - in[1].real()};  // -i (in1 - in3)
    out[0] = even + odd;
    out[1] = difference + turned;
    out[2] = even - odd;
    out[3] = difference - turned;
    return;
  }
  const auto apart = static_cast<int64_t>(roots.size()) / factor;
  for (int64_t u = 0; u < factor; ++u) {
    out[u] = in[0];
    for (int64_t t = 1; t < factor; ++t)
      out[u] += Times(in[t], roots[static_cast<size_t>(t * u % factor * apart)]);
  }
}

void RunStep(const Step& step, const std::vector<Complex>& roots, const Complex* in, Complex* out) {
  std::array<Complex, kLargestFactor> few, transformed;
  for (int64_t k = 0; k < step.length; ++k) {
    for (int64_t q = 0; q < step.stride; ++q) {
      for (int64_t t = 0; t < step.factor; ++t)
        few[static_cast<size_t>(t)] = in[q + step.stride * (k + step.length * t)];
      TransformOfFew(step.factor, roots, few.data(), transformed.data());
      Complex* to = out + q + step.stride * step.factor * k;
      to[0] = transformed[0];
      for (int64_t u = 1; u < step.factor; ++u)
        to[step.stride * u] =
            Times(transformed[static_cast<size_t>(u)], roots[static_cast<size_t>(step.stride * k * u)]);
    }
  }
}

}  // namespace

FourierPlan::FourierPlan(int64_t n) : n_(n), factors_(SmallFactors(n)) {
  if (n <= 1) return;
  if (!factors_.empty()) {
    roots_ = Roots(n);
    return;
  }
  const auto longer = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)));
  convolution_ = std::make_unique<FourierPlan>(longer);
  chirp_.resize(static_cast<size_t>(n));
  // k^2 modulo 2n, kept by adding 2k + 1: exp(-pi i k^2 / n) is a root of order 2n.
  int64_t square = 0;
  for (int64_t k = 0; k < n; ++k) {
    chirp_[static_cast<size_t>(k)] = Root(square, 2 * n);
    square = (square + 2 * k + 1) % (2 * n);
  }
  chirp_transform_.assign(static_cast<size_t>(longer), Complex());
  chirp_transform_[0] = std::conj(chirp_[0]);
  for (int64_t k = 1; k < n; ++k) {
    const Complex conjugate = std::conj(chirp_[static_cast<size_t>(k)]);
    chirp_transform_[static_cast<size_t>(k)] = conjugate;
    chirp_transform_[static_cast<size_t>(longer - k)] = conjugate;
  }
  std::vector<Complex> other(chirp_transform_.size());
  convolution_->Forward(&chirp_transform_, &other);
}

void FourierPlan::ForwardByFactors(std::vector<Complex>* cells, std::vector<Complex>* other) const {
  int64_t stride = 1;
  int64_t length = n_;
  for (const int64_t factor : factors_) {
    length /= factor;
    RunStep({factor, length, stride}, roots_, cells->data(), other->data());
    cells->swap(*other);
    stride *= factor;
  }
}

void FourierPlan::ForwardByConvolution(std::vector<Complex>* cells) const {
  const auto n = static_cast<size_t>(n_);
  const auto longer = static_cast<size_t>(convolution_->n_);
  std::vector<Complex> product(longer, Complex()), other(longer);
  for (size_t k = 0; k < n; ++k) product[k] = Times((*cells)[k], chirp_[k]);
  convolution_->Forward(&product, &other);
  // The inverse is the transform of the conjugate, conjugated.
  for (size_t k = 0; k < longer; ++k) product[k] = std::conj(Times(product[k], chirp_transform_[k]));
  convolution_->Forward(&product, &other);
  const double scale = 1.0 / static_cast<double>(longer);
  for (size_t k = 0; k < n; ++k) (*cells)[k] = Times(std::conj(product[k]) * scale, chirp_[k]);
}

void FourierPlan::Forward(std::vector<Complex>* cells, std::vector<Complex>* other) const {
  if (n_ <= 1) return;
  if (convolution_ != nullptr)
    ForwardByConvolution(cells);
  else
    ForwardByFactors(cells, other);
}

void FourierPlan::Transform(double* re, double* im, bool inverse, Workspace* workspace) const {
  const auto n = static_cast<size_t>(n_);
  workspace->cells.resize(n);
  workspace->other.resize(n);
  for (size_t k = 0; k < n; ++k) workspace->cells[k] = {re[k], inverse ? -im[k] : im[k]};
  Forward(&workspace->cells, &workspace->other);
  const auto count = static_cast<double>(n_);
  for (size_t k = 0; k < n; ++k) {
    const Complex y = workspace->cells[k];
    re[k] = inverse ? y.real() / count : y.real();
    im[k] = inverse ? -y.imag() / count : y.imag();
  }
}

}  // namespace heddle::ops
