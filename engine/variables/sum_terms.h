// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/variables/variables.h"

namespace heddle::engine {

/// What an iteration of a parfor has computed for a block that adds to sums: the variables that the block
/// reads, but the sums.
struct SumTerm {
  uint64_t iteration = 0;
  int32_t block = 0;
  std::map<std::string, Variable> values;  ///< Scalars, matrices and frames, whole.
};

/// The terms of iterations that run where the sums are not, those of one iteration in their order.
/// Thread-safe.
class SumTerms {
 public:
  void Add(SumTerm term) {
    const std::lock_guard<std::mutex> lock(mutex_);
    terms_.push_back(std::move(term));
  }
  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    terms_.clear();
  }
  /// While nobody adds.
  const std::vector<SumTerm>& terms() const { return terms_; }

 private:
  std::mutex mutex_;
  std::vector<SumTerm> terms_;
};

/// Terms as bytes, and back: appended. kInternal when these are no such bytes.
std::string EncodeTerms(const std::vector<SumTerm>& terms);
Status DecodeTerms(std::string_view bytes, std::vector<SumTerm>* terms);

}  // namespace heddle::engine
