// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "cluster/access/master_folder.h"
#include "cluster/cli/report.h"
#include "cluster/cli/verb.h"
#include "cluster/network/certificates.h"
#include "core/environment/clock.h"
#include "core/text/time_text.h"
#include "core/text/utf8.h"

namespace heddle::cluster::cli {
namespace {

using Kind = Option::Kind;

constexpr int64_t kSoonDays = 30;

constexpr Option kOptions[] = {
    {"folder", Kind::kValue, "DIR", "of the authority: DIR/ca.pem and DIR/ca.key; servers beside them"},
    {"host", Kind::kValue, "HOST", "name or address that the certificate is for; may be given again"},
    {"name", Kind::kValue, "NAME",
     "of the files of a server: DIR/NAME.pem and DIR/NAME.key (default: server)"},
    {"days", Kind::kValue, "N", "how long it is good (default: 3650 of an authority, 365 of a server)"},
    {"json", Kind::kFlag, "", "print JSON, one object a line"},
};

bool IsThere(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

// A certificate as a line of text or of JSON. Its days left.
int64_t Show(const Arguments& arguments, const std::string& path, const CertificateFacts& facts) {
  const int64_t left_ms = facts.until_ms - SystemClock().WallMs();
  const int64_t days = left_ms / kDayMs;
  if (arguments.Has("json")) {
    nlohmann::ordered_json json;
    json["file"] = path;
    json["subject"] = facts.subject;
    json["issuer"] = facts.issuer;
    json["names"] = facts.names;
    json["authority"] = facts.is_authority;
    json["from_ms"] = facts.from_ms;
    json["until_ms"] = facts.until_ms;
    PrintOutput(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return left_ms < 0 ? -1 : days;
  }
  std::string text = fmt::format("{}: {}{}, until {}", path, facts.is_authority ? "authority " : "",
                                 facts.subject, UtcTime(facts.until_ms));
  text += left_ms < 0 ? " (expired)" : fmt::format(" ({} days)", days);
  if (!facts.is_authority)
    text += fmt::format(", signed by {}, for {}", facts.issuer, fmt::join(facts.names, ", "));
  PrintOutput(EscapeForTerminal(text) + "\n");
  return left_ms < 0 ? -1 : days;
}

Result<std::string> FolderOf(const Arguments& arguments) {
  const std::string folder = arguments.Value("folder").value_or("");
  if (folder.empty()) return Usage("give the folder of the authority: --folder DIR");
  return folder;
}

// The key first, and the certificate at once: a server that reads the files in between finds a pair that does
// not match, and takes no new connections until it looks again.
Status Write(const std::string& stem, const CertificatePair& pair) {
  HEDDLE_RETURN_IF_ERROR(WritePrivateFile(stem + ".key", pair.key));
  return WritePrivateFile(stem + ".pem", pair.certificate);
}

int Tell(const Arguments& arguments, const std::string& stem) {
  const Result<CertificateFacts> facts = ReadCertificate(stem + ".pem");
  if (!facts.ok()) return ReportOutcome(arguments, facts.status());
  Show(arguments, stem + ".pem", *facts);
  return 0;
}

Status MakeOne(const Arguments& arguments, const std::string& folder) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t days, arguments.Integer("days", 3650, 1, 36'500));
  if (IsThere(folder + "/ca.pem") || IsThere(folder + "/ca.key"))
    return FailedPrecondition("there is an authority in '{}' already", folder)
        .WithNote(
            "certificates that it has signed would be worth nothing: take another folder, or move it away");
  HEDDLE_RETURN_IF_ERROR(MakePrivateFolder(folder));
  HEDDLE_ASSIGN_OR_RETURN(const CertificatePair pair,
                          MakeAuthority("heddle authority", static_cast<int>(days)));
  return Write(folder + "/ca", pair);
}

Result<std::string> MakeServer(const Arguments& arguments, const std::string& folder) {
  HEDDLE_ASSIGN_OR_RETURN(const int64_t days, arguments.Integer("days", 365, 1, 36'500));
  const std::vector<std::string>& hosts = arguments.rest("host");
  if (hosts.empty())
    return Usage("give the names and addresses by which clients reach the server: --host HOST");
  const std::string name = arguments.Value("name").value_or("server");
  if (name.empty() || name == "ca" || name.find('/') != std::string::npos || name.starts_with("."))
    return Usage("--name: '{}' is no name for the files of a server", name);
  HEDDLE_ASSIGN_OR_RETURN(
      const CertificatePair pair,
      MakeCertificate(hosts, static_cast<int>(days), folder + "/ca.pem", folder + "/ca.key"));
  const std::string stem = folder + "/" + name;
  HEDDLE_RETURN_IF_ERROR(Write(stem, pair));
  return stem;
}

int ShowAll(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.positional();
  if (words.size() < 2)
    return ReportOutcome(arguments, Usage("give the certificates to show: heddle admin cert show FILE.pem"));
  int64_t least = INT64_MAX;
  for (size_t i = 1; i < words.size(); ++i) {
    const Result<CertificateFacts> facts = ReadCertificate(words[i]);
    if (!facts.ok()) return ReportOutcome(arguments, facts.status());
    least = std::min(least, Show(arguments, words[i], *facts));
  }
  if (least < 0)
    return ReportOutcome(arguments, FailedPrecondition("a certificate has expired")
                                        .WithNote("'heddle admin cert server' makes a new one in its place"));
  if (least < kSoonDays) Warn(fmt::format("a certificate expires in {} days", least));
  return 0;
}

int Run(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.positional();
  const std::string what = words.empty() ? "" : words[0];
  if (what == "show") return ShowAll(arguments);
  if ((what != "authority" && what != "server") || words.size() > 1)
    return ReportOutcome(arguments, Usage("say what to do: heddle admin cert authority, server or show"));
  const Result<std::string> folder = FolderOf(arguments);
  if (!folder.ok()) return ReportOutcome(arguments, folder.status());
  if (what == "authority") {
    if (Status made = MakeOne(arguments, *folder); !made.ok()) return ReportOutcome(arguments, made);
    return Tell(arguments, *folder + "/ca");
  }
  const Result<std::string> stem = MakeServer(arguments, *folder);
  return stem.ok() ? Tell(arguments, *stem) : ReportOutcome(arguments, stem.status());
}

}  // namespace

const Verb kAdminCertVerb = {
    "admin cert",
    "make certificates of TLS, and show when they expire",
    "admin cert authority|server --folder DIR [OPTIONS] | admin cert show FILE.pem...",
    JoinOptions({kOptions}),
    "heddle admin cert server --folder tls --host master.example --host 10.0.0.5",
    Run,
    /*takes_words=*/true};

}  // namespace heddle::cluster::cli
