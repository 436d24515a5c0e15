// SPDX-License-Identifier: Apache-2.0
#include "cluster/security/token.h"

#include <fmt/format.h>

#include "core/environment/random.h"
#include "ops/io/checksums/sha256.h"

namespace heddle::cluster {

std::string MakeToken() {
  return fmt::format("{:016x}{:016x}", SystemRandom().Next(), SystemRandom().Next());
}

std::string MakeSecret() { return "heddle_" + MakeToken() + MakeToken(); }

std::string ShortHash(const std::string& kind, const std::string& text) {
  constexpr size_t kBytes = 16;
  const ops::Sha256Digest digest = ops::Sha256({kind, "\n", text});
  std::string hash;
  for (size_t i = 0; i < kBytes; ++i) hash += fmt::format("{:02x}", digest[i]);
  return hash;
}

std::string UuidOf(const std::string& secret) { return ShortHash("worker", secret); }

}  // namespace heddle::cluster
