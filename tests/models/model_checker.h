// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "actor/protocol.h"
#include "tests/models/instances.h"

namespace heddle::actor {

/// What SPIN says of an instance.
struct Verdict {
  bool is_ok = false;  ///< Every history was looked at, and none breaks a property.
  double states = 0;
  double seconds = 0;
  std::string why;     ///< The first thing that went wrong.
  std::string report;  ///< All that SPIN said.
};

/// Whether SPIN has found nothing, or what it has to find.
bool IsAsExpected(const ModelInstance& instance, const Verdict& verdict);

/// Runs SPIN on instances. Verifiers are made once for each text of a model and kept until the object goes.
class ModelChecker {
 public:
  ModelChecker();
  ~ModelChecker();
  /// Why models cannot be checked here: no spin, no C compiler. Empty: they can be.
  static std::string WhatIsMissing();

  /// Explores every history of `instance`, with one guard of the protocol taken away (Guard::kNone: none).
  /// Gives up after `seconds`, which is not ok. `with_progress`: p3 instead of the absence of stops.
  Verdict Check(const ModelInstance& instance, Guard without = Guard::kNone, int seconds = 60,
                bool with_progress = false);
  /// The events of the history that led to the last verdict, one a line.
  std::string Trail(const ModelInstance& instance, Guard without);

 private:
  std::string VerifierOf(const std::string& model, bool with_progress, std::string* error);

  std::string folder_;
  std::map<std::string, std::string> verifiers_;  ///< By text.
};

}  // namespace heddle::actor
