// SPDX-License-Identifier: Apache-2.0
#include "ops/generate/seed.h"

#include "ops/base/arguments.h"
#include "ops/base/whole_number.h"

namespace heddle::ops {
namespace {

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

Result<int64_t> SeedOf(const KernelCall& call, int input) {
  if (const Scalar* given = GivenScalar(call, input)) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t seed, RequireWholeNumber(*given, call.node.op, "seed",
                                                                   StatusCode::kFailedPrecondition));
    if (seed != -1) return seed;
  }
  const Scalar* stream = call.node.FindAttribute("stream");
  const auto number = static_cast<uint64_t>(stream == nullptr ? 0 : stream->AsInteger());
  return static_cast<int64_t>(Mix(Mix(call.context.job_seed ^ Mix(number)) ^ Mix(~call.context.execution)));
}

}  // namespace heddle::ops
