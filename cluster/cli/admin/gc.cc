// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <nlohmann/json.hpp>

#include "cluster/cli/connection.h"
#include "cluster/cli/jobs/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr int64_t kLongestAgeMs = int64_t{100} * 366 * 24 * 3'600'000;

constexpr Option kOptions[] = {
    {"older-than", Kind::kValue, "TIME", "forget jobs that have been finished for so long: 12h, 30d"},
    {"keep", Kind::kValue, "SIZE",
     "forget the oldest finished jobs until the output, logs and records of others take no more"},
    {"dry-run", Kind::kFlag, "", "tell only what would go"},
};

Result<GarbageRequest> ReadRequest(const Arguments& arguments) {
  GarbageRequest request;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t age_ms, arguments.Milliseconds("older-than", 0, kLongestAgeMs));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t keep, arguments.Bytes("keep", 0));
  if (arguments.Has("older-than")) request.set_older_than_ms(age_ms);
  if (arguments.Has("keep")) request.set_keep_bytes(keep);
  request.set_dry_run(arguments.Has("dry-run"));
  return request;
}

std::string ToJson(const GarbageItem& item) {
  nlohmann::ordered_json json;
  json["kind"] = item.kind();
  json["name"] = item.name();
  json["bytes"] = item.bytes();
  json["time_ms"] = item.time_ms();
  if (!item.node().empty()) json["node"] = item.node();
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

int Run(const Arguments& arguments) {
  const Result<GarbageRequest> request = ReadRequest(arguments);
  if (!request.ok()) return ReportOutcome(arguments, request.status());
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  GarbageReply reply;
  if (Status status = (*client)->CollectGarbage(*request, &reply); !status.ok())
    return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  const char* const what = arguments.Has("dry-run") ? "would go" : "are gone";
  std::string text;
  struct Sum {
    int64_t items = 0, bytes = 0;
  };
  Sum all;
  std::map<std::string, Sum> of_nodes;
  for (const GarbageItem& item : reply.items()) {
    for (Sum* const sum : {&all, &of_nodes[item.node()]}) {
      ++sum->items;
      sum->bytes += item.bytes();
    }
    text += arguments.Has("json") ? ToJson(item) + "\n"
                                  : fmt::format("{} {}{}{}: {} bytes\n", item.kind(), item.name(),
                                                item.node().empty() ? "" : " on ", item.node(), item.bytes());
  }
  if (!arguments.Has("json")) {
    for (const auto& [node, sum] : of_nodes)
      if (!node.empty()) text += fmt::format("on {}: {} {}, {} bytes\n", node, sum.items, what, sum.bytes);
    text += fmt::format("{} {}, {} bytes\n", all.items, what, all.bytes);
  }
  for (const std::string& problem : reply.problems()) Warn(problem);
  PrintOutput(arguments.Has("json") ? text : EscapeForTerminal(text));
  return 0;
}

}  // namespace

const Verb kAdminGcVerb = {"admin gc",
                           "forget old finished jobs, and remove what nobody needs any more",
                           "admin gc [OPTIONS]",
                           JoinOptions({kOptions, MasterVerbOptions()}),
                           "heddle admin gc --older-than 30d --keep 10G --dry-run",
                           Run};

}  // namespace heddle::cluster::cli
