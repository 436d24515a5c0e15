// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ops/region/region.h"

namespace heddle::codegen {

/// Doubles whose last byte is the last of a page, behind which nothing may be touched.
class GuardedArray {
 public:
  explicit GuardedArray(size_t size);
  ~GuardedArray();
  GuardedArray(const GuardedArray&) = delete;
  GuardedArray& operator=(const GuardedArray&) = delete;
  double* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void* pages_ = nullptr;
  size_t bytes_ = 0;
  double* data_ = nullptr;
  size_t size_ = 0;
};

/// How a region is called, with inputs drawn from ordinary and special values (-0.0, denormals, Inf, NaN).
struct CaseShape {
  int64_t rows = 1, columns = 1;
  int64_t gap = 0;  ///< Cells between rows.
  bool stream = false;
};

/// Inputs and outputs of one call. All sources of code get the same; outputs begin with a value that is not
/// theirs.
class RegionCase {
 public:
  RegionCase(const ops::Region& region, const CaseShape& shape, uint32_t seed);
  /// What the code leaves in the outputs, in order, gaps included and padding excluded.
  std::vector<double> Run(const ops::RegionCode& code);
  /// The same from literal loops: ops::Apply cell by cell, simd::FoldTwo lane by lane.
  std::vector<double> RunLiterally();

 private:
  void ResetOutputs();
  std::vector<double> TakeOutputs() const;
  double ValueAt(int node, int64_t i, int64_t j, std::vector<double>& values) const;

  const ops::Region& region_;
  CaseShape shape_;
  std::vector<std::unique_ptr<GuardedArray>> inputs_, outputs_;
  std::vector<const double*> input_pointers_;
  std::vector<double*> output_pointers_;
  std::vector<int64_t> input_strides_, output_strides_, output_sizes_;
};

/// "" when the two agree bit for bit (NaN equals NaN), else the first difference.
std::string FirstDifference(const std::vector<double>& expected, const std::vector<double>& actual);

/// Generated code and the interpreter give the bits of literal loops, on inputs drawn by `seed` and what
/// follows it.
void ExpectSameBits(const ops::Region& region, const std::vector<CaseShape>& shapes, uint32_t seed = 1);

/// `nodes` nodes of all kinds, stores and folds of some of them; fold-flat only where `flat`.
ops::Region RandomRegion(std::mt19937& random, int nodes, bool flat);

}  // namespace heddle::codegen
