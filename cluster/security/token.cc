// SPDX-License-Identifier: Apache-2.0
#include "cluster/security/token.h"

#include <fmt/format.h>

#include "core/environment/random.h"

namespace heddle::cluster {

std::string MakeToken() {
  return fmt::format("{:016x}{:016x}", SystemRandom().Next(), SystemRandom().Next());
}

std::string MakeSecret() { return "heddle_" + MakeToken() + MakeToken(); }

}  // namespace heddle::cluster
