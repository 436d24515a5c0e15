// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cluster/cli/admin/node_json.h"
#include "cluster/cli/connection.h"
#include "cluster/cli/jobs/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/placement/membership.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {

nlohmann::ordered_json JsonOf(const NodeDescription& node) {
  nlohmann::ordered_json json;
  json["name"] = node.name();
  json["state"] = node.state();
  json["drained"] = node.drained();
  json["host"] = node.host();
  json["pid"] = node.pid();
  json["threads"] = node.threads();
  json["memory_bytes"] = node.memory_bytes();
  json["slots"] = node.slots();
  json["reserved_threads"] = node.reserved_threads();
  json["reserved_bytes"] = node.reserved_bytes();
  json["confinement"] = node.confinement();
  json["version"] = node.version();
  json["jobs"] = std::vector<std::string>(node.jobs().begin(), node.jobs().end());
  json["silent_ms"] = node.silent_ms();
  json["uuid"] = node.uuid();
  json["isolation"] = node.isolation();
  json["device"] = node.device();
  json["device_name"] = node.device_name();
  return json;
}

namespace {

std::string ToJson(const NodeDescription& node) {
  return JsonOf(node).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string JobsOf(const NodeDescription& node) { return fmt::format("{}", fmt::join(node.jobs(), ",")); }

// "1.5G/16.0G": what is reserved of what there is.
std::string MemoryOf(const NodeDescription& node) {
  if (node.memory_bytes() == 0) return "-";
  const auto amount = [](int64_t bytes) {
    return fmt::format("{:.1f}G", static_cast<double>(bytes) / (1 << 30));
  };
  return fmt::format("{}/{}", amount(node.reserved_bytes()), amount(node.memory_bytes()));
}

// A lost worker is that first of all.
std::string StateOf(const NodeDescription& node) {
  if (!node.drained() || node.state() == Name(WorkerState::kLost)) return node.state();
  return node.jobs().empty() ? "DRAINED" : "DRAINING";
}

int Nodes(const Arguments& arguments) {
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  NodesReply nodes;
  if (Status status = (*client)->Nodes(&nodes); !status.ok()) return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  std::string text;
  if (!arguments.Has("json"))
    text = fmt::format("{:<19} {:<8} {:<11} {:<15} {:<7} {:<7} {:<11} {:<9} {:<7} {}\n", "NAME", "STATE",
                       "JOBS", "HOST", "PID", "THREADS", "MEMORY", "DEVICE", "HELD BY", "SILENT S");
  for (const NodeDescription& node : nodes.nodes()) {
    text += arguments.Has("json")
                ? ToJson(node) + "\n"
                : fmt::format("{:<19} {:<8} {:<11} {:<15} {:<7} {:<7} {:<11} {:<9} {:<7} {:.1f}\n",
                              node.name(), StateOf(node), node.jobs().empty() ? "-" : JobsOf(node),
                              node.host(), node.pid(),
                              fmt::format("{}/{}", node.reserved_threads(), node.threads()), MemoryOf(node),
                              node.device().empty() ? "-" : node.device(),
                              node.confinement().substr(0, node.confinement().find(' ')),
                              static_cast<double>(node.silent_ms()) / 1e3);
  }
  PrintOutput(arguments.Has("json") ? text : EscapeForTerminal(text));
  return 0;
}

// For a verb whose only word names a worker.
Result<std::unique_ptr<Client>> ConnectForOneWorker(const Arguments& arguments) {
  if (arguments.positional().size() != 1)
    return Usage("give the name or uuid of one worker").WithNote("'heddle admin nodes' lists the workers");
  return ConnectToMaster(arguments, kAdminToken);
}

int SetDrained(const Arguments& arguments, bool drained) {
  const Result<std::unique_ptr<Client>> client = ConnectForOneWorker(arguments);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  NodeDescription node;
  if (Status status = (*client)->Drain(arguments.positional()[0], drained, &node); !status.ok())
    return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  if (arguments.Has("json")) {
    PrintOutput(ToJson(node) + "\n");
    return 0;
  }
  const bool is_one = node.jobs_size() == 1;
  const std::string jobs =
      node.jobs().empty()
          ? ""
          : fmt::format("; job{} {} go{} on there to {} next checkpoint, or end", is_one ? "" : "s",
                        JobsOf(node), is_one ? "es" : "", is_one ? "its" : "their");
  const std::string name = EscapeForTerminal(node.name());
  PrintOutput(drained ? fmt::format("{} gets no new job{}\n", name, jobs)
                      : fmt::format("{} gets jobs again\n", name));
  return 0;
}

int Remove(const Arguments& arguments) {
  const Result<std::unique_ptr<Client>> client = ConnectForOneWorker(arguments);
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
const Verb kAdminDrainVerb = {
    "admin drain",
    "give a worker no new job; one that leaves checkpoints moves at its next, others end there first",
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
