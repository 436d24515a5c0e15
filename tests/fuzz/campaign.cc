// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/campaign.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/minimize.h"
#include "tests/support/process.h"

namespace heddle::fuzz {
namespace {

using testing_support::WriteText;

std::string Quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += " '" + word + "'";
  return line;
}

void Save(const FuzzCase& c, const Fault& fault, const std::string& folder) {
  WriteFiles(c, folder);
  std::string commands = "heddle" + Quoted(FirstRun(c)) + "\n";
  if (!c.second_run.empty()) commands += "heddle" + Quoted(SecondRun(c)) + "\n";
  WriteText(folder + "/command", commands);
  WriteText(folder + "/fault",
            fmt::format("{}\n{}\nseed {}: {}\n", fault.kind, fault.detail, c.seed, c.origin));
}

void SaveMinimized(const FuzzCase& c, const Fault& fault, const CampaignOptions& options) {
  const std::string signature = fault.Signature();
  const FuzzCase least = MinimizeCase(c, [&](const FuzzCase& smaller) {
    const Judgement judgement = RunAndJudge(smaller, options.binary);
    return judgement.fault && judgement.fault->Signature() == signature;
  });
  Save(least, fault, fmt::format("{}/{}-minimized", options.failure_folder, c.seed));
}

}  // namespace

CampaignOptions CampaignOptions::FromEnvironment() {
  const auto variable = [](const char* name, const std::string& otherwise) {
    const char* value = std::getenv(name);
    return value == nullptr || *value == '\0' ? otherwise : std::string(value);
  };
  CampaignOptions options;
  options.binary = variable("HEDDLE_FUZZ_BINARY", HEDDLE_BINARY_DIR "/heddle");
  options.first_seed = std::stoull(variable("HEDDLE_FUZZ_SEED", "1"));
  options.seconds = std::stod(variable("HEDDLE_FUZZ_SECONDS", "20"));
  options.most_cases = std::stoll(variable("HEDDLE_FUZZ_CASES", "0"));
  options.minimize = variable("HEDDLE_FUZZ_MINIMIZE", "0") != "0";
  options.failure_folder = variable("HEDDLE_FUZZ_FOLDER", HEDDLE_BINARY_DIR "/fuzz");
  return options;
}

std::string CampaignReport::ToText() const {
  std::string text =
      fmt::format("{} cases, {} ran to their end, {} kinds of faults\n", cases, succeeded, findings.size());
  for (const auto& [signature, finding] : findings)
    text += fmt::format("seed {} ({} cases): {}: {}\n", finding.seed, finding.cases, finding.fault.kind,
                        finding.fault.detail);
  return text;
}

CampaignReport RunCampaign(const CampaignOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(options.seconds));
  const std::vector<CorpusScript> corpus = LoadCorpus();
  CampaignReport report;
  while (Clock::now() < end && (options.most_cases == 0 || report.cases < options.most_cases)) {
    const FuzzCase c = MakeCase(options.first_seed + static_cast<uint64_t>(report.cases), corpus);
    const Judgement judgement = RunAndJudge(c, options.binary);
    ++report.cases;
    if (judgement.succeeded) ++report.succeeded;
    if (!judgement.fault) continue;
    Finding& finding = report.findings[judgement.fault->Signature()];
    if (++finding.cases > 1) continue;
    finding.seed = c.seed;
    finding.fault = *judgement.fault;
    fmt::print("seed {}: {}: {}\n", c.seed, finding.fault.kind, finding.fault.detail);
    std::fflush(stdout);
    Save(c, finding.fault, fmt::format("{}/{}", options.failure_folder, c.seed));
    if (options.minimize) SaveMinimized(c, finding.fault, options);
  }
  return report;
}

}  // namespace heddle::fuzz
