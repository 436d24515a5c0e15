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

/// One term of sums to which the iterations of a parfor add (s = s + f(i)). Sums of doubles depend on the
/// order, so terms that were computed on other threads or ranks are added later, iteration by iteration: by
/// running the block that adds, with the variables that it reads beside the sums.
struct SumTerm {
  uint64_t iteration = 0;
  int32_t block = 0;
  std::map<std::string, Variable> values;  ///< Scalars, matrices and frames, whole.
};

/// The terms of the iterations that have run; those of one iteration in their order. Thread-safe.
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
