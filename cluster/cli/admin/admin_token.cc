// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cluster/access/master_folder.h"
#include "cluster/cli/connection.h"
#include "cluster/cli/jobs/job_report.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "core/text/time_text.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr int64_t kLifeMs = 90 * kDayMs;
constexpr int64_t kLifeOfInvitationMs = kDayMs;
constexpr int64_t kLongestLifeMs = 3660 * kDayMs;
constexpr std::string_view kForEver = "never";

constexpr Option kOutOption = {"out", Kind::kValue, "FILE",
                               "write the token into a new file of mode 0600, not to stdout"};
constexpr Option kCreateOptions[] = {
    {"role", Kind::kValue, "ROLE", "viewer, submitter, operator, admin or worker; may be given again"},
    {"owner", Kind::kValue, "USER", "to whom its jobs belong (default: yours)"},
    {"expires", Kind::kValue, "TIME",
     "when it ends, such as 30d, or never (default 90d, of role worker 24h)"},
    {"reusable", Kind::kFlag, "", "with --role worker: lets any number of workers join (default: one)"},
    kOutOption};
constexpr Option kRotateOptions[] = {
    {"overlap", Kind::kValue, "TIME", "how long the old secret goes on to let in (default 0)"}, kOutOption};

std::string DayOf(int64_t ms) { return ms == 0 ? "never" : UtcTime(ms, "%Y-%m-%d %H:%M"); }

std::string RolesOf(const TokenDescription& token) {
  return fmt::format("{}", fmt::join(token.roles(), ","));
}

std::string ToJson(const TokenDescription& token) {
  nlohmann::ordered_json json;
  json["name"] = token.name();
  json["owner"] = token.owner();
  json["roles"] = std::vector<std::string>(token.roles().begin(), token.roles().end());
  json["state"] = token.state();
  json["created_ms"] = token.created_ms();
  json["expires_ms"] = token.expires_ms();
  json["revoked_ms"] = token.revoked_ms();
  json["reusable"] = token.reusable();
  json["used_by"] = token.used_by();
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The secret itself to where it is wanted, and all else to stderr: `> FILE` takes the secret alone.
int Hand(const Arguments& arguments, const TokenSecret& secret) {
  if (const auto file = arguments.Value(kOutOption.name)) {
    if (Status status = WritePrivateFile(*file, secret.secret() + "\n"); !status.ok())
      return ReportOutcome(
          arguments,
          status.WithNote(fmt::format(
              "the token is made: 'heddle admin token rotate {}' makes its secret anew", secret.name())));
  }
  if (arguments.Has("json")) {
    nlohmann::ordered_json json = {{"name", secret.name()}, {"expires_ms", secret.expires_ms()}};
    if (!arguments.Has(kOutOption.name)) json["secret"] = secret.secret();
    PrintOutput(json.dump() + "\n");
    return 0;
  }
  if (!arguments.Has(kOutOption.name)) PrintOutput(secret.secret() + "\n");
  std::fputs(fmt::format("heddle: token '{}'{}{}; it is shown this once\n", EscapeForTerminal(secret.name()),
                         secret.expires_ms() == 0 ? " does not expire" : " expires on ",
                         secret.expires_ms() == 0 ? "" : DayOf(secret.expires_ms()) + " UTC")
                 .c_str(),
             stderr);
  return 0;
}

// The file is looked at before a token is made that would be lost.
Status CheckOut(const Arguments& arguments) {
  struct stat status {};
  const std::optional<std::string> file = arguments.Value(kOutOption.name);
  if (!file || lstat(file->c_str(), &status) != 0) return OkStatus();
  return Usage("--out: '{}' is there already", *file);
}

Result<std::string> NameOf(const Arguments& arguments) {
  if (arguments.positional().size() == 1) return arguments.positional()[0];
  return Usage("give the name of one token").WithNote("'heddle admin token list' lists the tokens");
}

Result<CreateTokenRequest> ReadRequest(const Arguments& arguments) {
  CreateTokenRequest request;
  HEDDLE_ASSIGN_OR_RETURN(const std::string name, NameOf(arguments));
  request.set_name(EscapeInvalidUtf8(name));
  request.set_owner(EscapeInvalidUtf8(arguments.Value("owner").value_or("")));
  bool joins = false;
  for (const std::string& role : arguments.rest("role")) {
    request.add_roles(EscapeInvalidUtf8(role));
    joins |= role == Name(Role::kWorker);
  }
  if (request.roles().empty())
    return Usage("give the roles of the token: --role ROLE")
        .WithNote("viewer, submitter, operator, admin or worker");
  request.set_reusable(arguments.Has("reusable"));
  if (arguments.Value("expires") != kForEver) {
    HEDDLE_ASSIGN_OR_RETURN(
        const int64_t lives_ms,
        arguments.Milliseconds("expires", joins && !request.reusable() ? kLifeOfInvitationMs : kLifeMs,
                               kLongestLifeMs));
    if (lives_ms == 0)
      return Usage("--expires 0: the token would let nobody in").WithNote("one that lasts: --expires never");
    request.set_lives_ms(lives_ms);
  }
  HEDDLE_RETURN_IF_ERROR(CheckOut(arguments));
  return request;
}

int Create(const Arguments& arguments) {
  const Result<CreateTokenRequest> request = ReadRequest(arguments);
  if (!request.ok()) return ReportOutcome(arguments, request.status());
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  TokenSecret secret;
  if (Status status = (*client)->CreateToken(*request, &secret); !status.ok())
    return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  return Hand(arguments, secret);
}

int List(const Arguments& arguments) {
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  std::vector<TokenDescription> tokens;
  if (Status status = (*client)->ListTokens(&tokens); !status.ok()) return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  std::string text;
  if (!arguments.Has("json"))
    text = fmt::format("{:<19} {:<11} {:<8} {:<17} {}\n", "NAME", "OWNER", "STATE", "EXPIRES (UTC)", "ROLES");
  for (const TokenDescription& token : tokens) {
    if (arguments.Has("json")) {
      text += ToJson(token) + "\n";
      continue;
    }
    std::string roles = RolesOf(token);
    if (token.reusable()) roles += " (reusable)";
    if (!token.used_by().empty()) roles += " (of " + token.used_by() + ")";
    text += fmt::format("{:<19} {:<11} {:<8} {:<17} {}\n", token.name(), token.owner(), token.state(),
                        DayOf(token.expires_ms()), roles);
  }
  PrintOutput(arguments.Has("json") ? text : EscapeForTerminal(text));
  return 0;
}

int Rotate(const Arguments& arguments) {
  const Result<std::string> name = NameOf(arguments);
  const Result<int64_t> overlap_ms = arguments.Milliseconds("overlap", 0, kLongestLifeMs);
  const Status file = CheckOut(arguments);
  for (const Status& status : {name.status(), overlap_ms.status(), file})
    if (!status.ok()) return ReportOutcome(arguments, status);
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  TokenSecret secret;
  if (Status status = (*client)->RotateToken(*name, *overlap_ms, &secret); !status.ok())
    return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  return Hand(arguments, secret);
}

int Revoke(const Arguments& arguments) {
  const Result<std::string> name = NameOf(arguments);
  if (!name.ok()) return ReportOutcome(arguments, name.status());
  const Result<std::unique_ptr<Client>> client = ConnectToMaster(arguments, kAdminToken);
  if (!client.ok()) return ReportOutcome(arguments, client.status());
  TokenDescription token;
  if (Status status = (*client)->RevokeToken(*name, &token); !status.ok())
    return ReportOutcome(arguments, status);
  WarnOfVersion(**client);
  PrintOutput(arguments.Has("json")
                  ? ToJson(token) + "\n"
                  : EscapeForTerminal(fmt::format("the token '{}' of {} lets nobody in any more\n",
                                                  token.name(), token.owner())));
  return 0;
}

}  // namespace

const Verb kTokenCreateVerb = {
    "admin token create",
    "make a token for a user, a program or a worker",
    "admin token create [OPTIONS] NAME",
    JoinOptions({kCreateOptions, MasterVerbOptions()}),
    "heddle admin token create anna-laptop --owner anna --role submitter --out anna.token",
    Create,
    /*takes_words=*/true};
const Verb kTokenListVerb = {
    "admin token list",  "list the tokens of a master",    "admin token list [OPTIONS]",
    MasterVerbOptions(), "heddle admin token list --json", List};
const Verb kTokenRotateVerb = {"admin token rotate",
                               "give a token a new secret",
                               "admin token rotate [OPTIONS] NAME",
                               JoinOptions({kRotateOptions, MasterVerbOptions()}),
                               "heddle admin token rotate anna-laptop --overlap 1h --out anna.token",
                               Rotate,
                               /*takes_words=*/true};
const Verb kTokenRevokeVerb = {
    "admin token revoke", "let nobody in by a token any more",     "admin token revoke [OPTIONS] NAME",
    MasterVerbOptions(),  "heddle admin token revoke anna-laptop", Revoke,
    /*takes_words=*/true};

}  // namespace heddle::cluster::cli
