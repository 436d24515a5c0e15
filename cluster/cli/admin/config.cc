// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "cluster/cli/connection.h"
#include "cluster/cli/jobs/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

int Run(const Arguments& arguments) {
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  ConfigReply reply;
  if (Status status = (*client)->Config(&reply); !status.ok()) return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  std::string text;
  if (!arguments.Has("json")) text = fmt::format("{:<16} {:<13} {}\n", "OPTION", "FROM", "VALUE");
  for (const Setting& setting : reply.settings()) {
    if (arguments.Has("json")) {
      nlohmann::ordered_json json;
      json["name"] = setting.name();
      json["value"] = setting.value();
      json["source"] = setting.source();
      json["help"] = setting.help();
      text += json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    } else {
      text += fmt::format("{:<16} {:<13} {}\n", setting.name(), setting.source(),
                          setting.value().empty() ? "-" : setting.value());
    }
  }
  PrintOutput(arguments.Has("json") ? text : EscapeForTerminal(text));
  return 0;
}

}  // namespace

const Verb kAdminConfigVerb = {"admin config",
                               "show the options of a master that are in force, and where each comes from",
                               "admin config [OPTIONS]",
                               MasterVerbOptions(),
                               "heddle admin config --json",
                               Run};

}  // namespace heddle::cluster::cli
