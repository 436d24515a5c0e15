// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace heddle::fuzz {

/// A script of the project, and the words behind its name that make it small ("-nvargs", "rows=403", ...).
struct CorpusScript {
  std::string name;
  std::string text;
  std::vector<std::string> parameters;
};

/// The scripts of tests/scripts, of tests/errors, and those of examples and bench that tests/scripts has
/// arguments for; in the order of their names.
std::vector<CorpusScript> LoadCorpus();

}  // namespace heddle::fuzz
