// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz_case.h"

#include <fmt/format.h>

#include <filesystem>

#include "tests/fuzz/chooser.h"
#include "tests/fuzz/data_generator.h"
#include "tests/fuzz/hostile.h"
#include "tests/fuzz/script_generator.h"
#include "tests/fuzz/script_mutations.h"
#include "tests/support/process.h"

namespace heddle::fuzz {
namespace {

void MutateParameters(std::vector<std::string>* parameters, Chooser& choose) {
  if (parameters->size() < 2) return;
  std::string& word = (*parameters)[1 + choose.Below(parameters->size() - 1)];
  const size_t equals = word.find('=');
  // Names of files stay: what is at the other end is not the fuzzer's to read.
  if (equals != std::string::npos && word.find('/') == std::string::npos)
    word = word.substr(0, equals + 1) + HostileNumber(choose);
}

void MakeFromCorpus(FuzzCase* c, const std::vector<CorpusScript>& corpus, Chooser& choose) {
  const CorpusScript& script = choose.Pick(corpus);
  c->origin = "changed " + script.name;
  c->files[kScriptName] = MutateScript(script.text, choose.Pick(corpus).text, choose);
  c->parameters = script.parameters;
  if (choose.Chance(15)) MutateParameters(&c->parameters, choose);
}

void MakeFromGrammar(FuzzCase* c, const std::vector<CorpusScript>& corpus, Chooser& choose) {
  c->origin = "generated";
  const GeneratedScript generated = GenerateScript(choose);
  std::string script = generated.text;
  if (!generated.library.empty()) c->files["library.dml"] = generated.library;
  if (choose.Chance(20)) {
    c->origin = "generated and changed";
    script = MutateScript(script, choose.Pick(corpus).text, choose);
  }
  c->files[kScriptName] = script;
}

void MakeFromData(FuzzCase* c, Chooser& choose) {
  DataFile file = GenerateData(choose);
  c->origin = "data";
  if (choose.Chance(85)) {
    c->origin = "changed data";
    MutateData(&file, choose);
  }
  c->files[kScriptName] = ScriptThatReads(file, choose);
  c->files[file.name] = file.bytes;
  if (!file.metadata.empty()) c->files[file.name + ".mtd"] = file.metadata;
}

void ChooseSecondRun(FuzzCase* c, Chooser& choose) {
  const auto as_run = [&](std::vector<std::string> options, const std::string& verb = "run") {
    c->agreement = Agreement::kBytes;
    c->second_run = {verb, "--seed", "1", "--memory", std::to_string(kMemoryPromise)};
    c->second_run.insert(c->second_run.end(), options.begin(), options.end());
  };
  const size_t kind = choose.Below(100);
  if (kind < 45) {
    as_run({"--fusion", "off"});
  } else if (kind < 55) {
    as_run({"--fusion", "all"});
  } else if (kind < 60) {
    as_run({"--fusion-seed", std::to_string(choose.Below(1000))});
  } else if (kind < 67) {
    as_run({"--cpu", "avx2", "--threads", "1"});
  } else if (kind < 77) {
    as_run({"--workers", "2", "--min-distributed-bytes", "0"}, "sim");
  } else if (kind < 87) {
    c->agreement = Agreement::kCompile;
    c->second_run = {"check"};
  } else if (kind < 93) {
    c->second_run = {"explain", "--level", choose.Pick({"all", "cost"})};
  } else {
    as_run({"--precision", "single"});
    c->agreement = Agreement::kNothing;
  }
}

std::vector<std::string> WithScript(std::vector<std::string> words, const FuzzCase& c) {
  words.push_back(kScriptName);
  words.insert(words.end(), c.parameters.begin(), c.parameters.end());
  return words;
}

}  // namespace

FuzzCase MakeCase(uint64_t seed, const std::vector<CorpusScript>& corpus) {
  Chooser choose(seed);
  FuzzCase c;
  c.seed = seed;
  const size_t kind = choose.Below(100);
  if (kind < 45) {
    MakeFromGrammar(&c, corpus, choose);
  } else if (kind < 70) {
    MakeFromCorpus(&c, corpus, choose);
  } else if (kind < 97) {
    MakeFromData(&c, choose);
  } else {
    c.origin = "large";
    c.files[kScriptName] = GenerateLargeScript(choose);
  }
  ChooseSecondRun(&c, choose);
  return c;
}

std::vector<std::string> FirstRun(const FuzzCase& c) {
  // rand() without a seed is the same in both runs.
  return WithScript({"run", "--seed", "1", "--memory", std::to_string(kMemoryPromise)}, c);
}

std::vector<std::string> SecondRun(const FuzzCase& c) { return WithScript(c.second_run, c); }

void WriteFiles(const FuzzCase& c, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& [name, bytes] : c.files) testing_support::WriteText(folder + "/" + name, bytes);
}

}  // namespace heddle::fuzz
