// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cluster/cli/connection.h"
#include "cluster/cli/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"

namespace heddle::cluster::cli {
namespace {

const std::vector<Option>& Options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> all = {{"json", Option::Kind::kFlag, "", "print JSON, one object a line"}};
    for (const Option& option : ConnectionOptions()) all.push_back(option);
    return all;
  }();
  return options;
}

std::string ToJson(const NodeDescription& node) {
  nlohmann::ordered_json json;
  json["name"] = node.name();
  json["state"] = node.state();
  json["host"] = node.host();
  json["pid"] = node.pid();
  json["threads"] = node.threads();
  json["memory_bytes"] = node.memory_bytes();
  json["version"] = node.version();
  json["job"] = node.job();
  json["silent_ms"] = node.silent_ms();
  json["uuid"] = node.uuid();
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

int Nodes(const Arguments& arguments) {
  if (!arguments.positional().empty())
    return ReportOutcome(arguments, Usage("'{}': heddle admin nodes takes options only", arguments.positional()[0]));
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  NodesReply nodes;
  if (Status status = (*client)->Nodes(&nodes); !status.ok()) return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  std::string text;
  if (!arguments.Has("json"))
    text = fmt::format("{:<20}{:<9}{:<8}{:<20}{:<9}{:<9}{:>10}\n", "NAME", "STATE", "JOB", "HOST", "PID", "THREADS", "SILENT S");
  for (const NodeDescription& node : nodes.nodes()) {
    text += arguments.Has("json") ? ToJson(node) + "\n"
                                  : fmt::format("{:<20}{:<9}{:<8}{:<20}{:<9}{:<9}{:>10.1f}\n", node.name(), node.state(),
                                                node.job().empty() ? "-" : node.job(), node.host(), node.pid(), node.threads(),
                                                static_cast<double>(node.silent_ms()) / 1e3);
  }
  PrintOutput(text);
  return 0;
}

}  // namespace

const Verb kAdminNodesVerb = {"admin nodes", "list the workers of a master", "admin nodes [OPTIONS]", Options(), "heddle admin nodes --json", Nodes};

}  // namespace heddle::cluster::cli
