// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cluster/cli/connection.h"
#include "cluster/cli/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/master/membership.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

std::string ToJson(const NodeDescription& node) {
  nlohmann::ordered_json json;
  json["name"] = node.name();
  json["state"] = node.state();
  json["drained"] = node.drained();
  json["host"] = node.host();
  json["pid"] = node.pid();
  json["threads"] = node.threads();
  json["memory_bytes"] = node.memory_bytes();
  json["version"] = node.version();
  json["job"] = node.job();
  json["silent_ms"] = node.silent_ms();
  json["uuid"] = node.uuid();
  json["isolation"] = node.isolation();
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A lost worker is that first of all.
std::string StateOf(const NodeDescription& node) {
  if (!node.drained() || node.state() == Name(WorkerState::kLost)) return node.state();
  return node.job().empty() ? "DRAINED" : "DRAINING";
}

int Nodes(const Arguments& arguments) {
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  NodesReply nodes;
  if (Status status = (*client)->Nodes(&nodes); !status.ok()) return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  std::string text;
  if (!arguments.Has("json"))
    text = fmt::format("{:<19} {:<8} {:<7} {:<19} {:<8} {:<8} {:>9}\n", "NAME", "STATE", "JOB", "HOST", "PID",
                       "THREADS", "SILENT S");
  for (const NodeDescription& node : nodes.nodes()) {
    text += arguments.Has("json")
                ? ToJson(node) + "\n"
                : fmt::format("{:<19} {:<8} {:<7} {:<19} {:<8} {:<8} {:>9.1f}\n", node.name(), StateOf(node),
                              node.job().empty() ? "-" : node.job(), node.host(), node.pid(), node.threads(),
                              static_cast<double>(node.silent_ms()) / 1e3);
  }
  PrintOutput(arguments.Has("json") ? text : EscapeForTerminal(text));
  return 0;
}

int SetDrained(const Arguments& arguments, bool drained) {
  if (arguments.positional().size() != 1)
    return ReportOutcome(
        arguments,
        Usage("give the name or uuid of one worker").WithNote("'heddle admin nodes' lists the workers"));
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  NodeDescription node;
  if (Status status = (*client)->Drain(arguments.positional()[0], drained, &node); !status.ok())
    return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  if (arguments.Has("json")) {
    PrintOutput(ToJson(node) + "\n");
    return 0;
  }
  const std::string job =
      node.job().empty() ? "" : fmt::format("; job {} goes on there to its end", node.job());
  const std::string name = EscapeForTerminal(node.name());
  PrintOutput(drained ? fmt::format("{} gets no new job{}\n", name, job)
                      : fmt::format("{} gets jobs again\n", name));
  return 0;
}

int Remove(const Arguments& arguments) {
  if (arguments.positional().size() != 1)
    return ReportOutcome(
        arguments,
        Usage("give the name or uuid of one worker").WithNote("'heddle admin nodes' lists the workers"));
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  RemoveReply removed;
  if (Status status = (*client)->Remove(arguments.positional()[0], &removed); !status.ok())
    return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  if (arguments.Has("json")) {
    const nlohmann::ordered_json json = {{"name", removed.name()},
                                         {"uuid", removed.uuid()},
                                         {"joined_by", removed.joined_by()},
                                         {"reusable", removed.reusable()}};
    PrintOutput(json.dump() + "\n");
    return 0;
  }
  PrintOutput(EscapeForTerminal(fmt::format("{} is let in no more\n", removed.name())));
  if (removed.reusable())
    Warn(fmt::format(
        "the token '{0}' lets further workers join, also one on that machine: heddle admin token revoke {0}",
        EscapeForTerminal(removed.joined_by())));
  return 0;
}

int Drain(const Arguments& arguments) { return SetDrained(arguments, true); }
int Undrain(const Arguments& arguments) { return SetDrained(arguments, false); }

}  // namespace

const Verb kAdminNodesVerb = {"admin nodes",       "list the workers of a master", "admin nodes [OPTIONS]",
                              MasterVerbOptions(), "heddle admin nodes --json",    Nodes};
const Verb kAdminDrainVerb = {"admin drain",
                              "give a worker no new job; the one that it works on ends first",
                              "admin drain [OPTIONS] NODE",
                              MasterVerbOptions(),
                              "heddle admin drain HOST-1",
                              Drain,
                              /*takes_words=*/true};
const Verb kAdminUndrainVerb = {
    "admin undrain",     "give a drained worker jobs again", "admin undrain [OPTIONS] NODE",
    MasterVerbOptions(), "heddle admin undrain HOST-1",      Undrain,
    /*takes_words=*/true};

const Verb kAdminRemoveVerb = {"admin remove",
                               "let a worker in no more; what runs there is started again elsewhere",
                               "admin remove [OPTIONS] NODE",
                               MasterVerbOptions(),
                               "heddle admin remove HOST-1",
                               Remove,
                               /*takes_words=*/true};

}  // namespace heddle::cluster::cli
