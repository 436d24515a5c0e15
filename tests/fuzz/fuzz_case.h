// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/corpus.h"

namespace heddle::fuzz {

inline const std::string kScriptName = "case.dml";
/// What `--memory` says in every case.
constexpr int64_t kMemoryPromise = int64_t{200} << 20;

/// What a second run of a case must share with the first, which is `heddle run`.
enum class Agreement : uint8_t {
  kNothing,  ///< It is only watched.
  kCompile,  ///< It finds errors of the script exactly when the first one does.
  kBytes,    ///< Exit code, output and written files.
};

struct FuzzCase {
  uint64_t seed = 0;
  std::string origin;                        ///< How it was made, for people.
  std::map<std::string, std::string> files;  ///< kScriptName and its data, by name.
  std::vector<std::string> parameters;       ///< Words behind the script.
  std::vector<std::string> second_run;       ///< Verb and options; empty: there is one run only.
  Agreement agreement = Agreement::kNothing;
};

/// The case of this seed: the same, byte for byte, whenever the corpus is the same.
FuzzCase MakeCase(uint64_t seed, const std::vector<CorpusScript>& corpus);

/// The words of the first run behind the binary: "run", options, kScriptName, parameters.
std::vector<std::string> FirstRun(const FuzzCase& c);
std::vector<std::string> SecondRun(const FuzzCase& c);

/// Writes the files into `folder`, which is made.
void WriteFiles(const FuzzCase& c, const std::string& folder);

}  // namespace heddle::fuzz
