// SPDX-License-Identifier: Apache-2.0
#include "core/version.h"

#include <nlohmann/json.hpp>

#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/protocol_version.h"
#include "ops/base/cpu.h"

namespace heddle::cluster::cli {
namespace {

constexpr Option kOptions[] = {{"json", Option::Kind::kFlag, "", "print one JSON object"}};

int Run(const Arguments& arguments) {
  const std::string cpu(ops::Name(ops::SelectedCpu()));
  if (arguments.Has("json")) {
    PrintOutput(
        nlohmann::ordered_json{{"version", kVersion}, {"protocol", kProtocolVersion}, {"kernels", cpu}}
            .dump() +
        "\n");
  } else {
    PrintOutput(fmt::format("heddle {} (protocol {}, kernels for {})\n", kVersion, kProtocolVersion, cpu));
  }
  return 0;
}

}  // namespace

const Verb kVersionVerb = {
    "version", "print the version", "version [--json]", JoinOptions({kOptions}), "heddle version", Run};

}  // namespace heddle::cluster::cli
