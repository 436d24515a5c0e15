// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "cluster/cli/connection.h"
#include "cluster/cli/installation/findings.h"
#include "cluster/cli/verb.h"
#include "cluster/network/certificates.h"
#include "cluster/security/role.h"
#include "core/environment/clock.h"
#include "core/text/time_text.h"
#include "core/version.h"
#include "proto/master.pb.h"

namespace heddle::cluster::cli {
namespace {

constexpr int64_t kMostSkewMs = 5'000;
constexpr int64_t kLittleDisk = int64_t{1} << 30;
constexpr int64_t kSoonDays = 30;
constexpr int64_t kSlowMs = 200;

Finding Reached(const MasterAddress& master, int64_t took_ms) {
  std::string text = fmt::format("{} answers in {} ms", master.address, took_ms);
  if (took_ms > kSlowMs) return NoteFinding("master", std::move(text), "look at its load and at the network");
  return GoodFinding("master", std::move(text));
}

Finding Version(const AboutReply& about) {
  if (about.version() == kVersion)
    return GoodFinding("version", fmt::format("heddle {} on both sides", kVersion));
  return NoteFinding("version", fmt::format("the master is {}, this is {}", about.version(), kVersion),
                     "use the same version on all machines");
}

// The master read its clock between the beginning and the end of the call.
Finding Clocks(const AboutReply& about, int64_t begin_ms, int64_t end_ms) {
  const int64_t skew_ms = about.wall_ms() < begin_ms ? about.wall_ms() - begin_ms
                          : about.wall_ms() > end_ms ? about.wall_ms() - end_ms
                                                     : 0;
  if (std::abs(skew_ms) <= kMostSkewMs)
    return GoodFinding("clocks", fmt::format("the master's differs by {} ms at least", std::abs(skew_ms)));
  return NoteFinding("clocks",
                     fmt::format("the master's is {} s {} this machine's", std::abs(skew_ms) / 1000,
                                 skew_ms > 0 ? "ahead of" : "behind"),
                     "set both by NTP: times of jobs and the ends of certificates are told by the clock");
}

Finding Disk(const AboutReply& about) {
  std::string text =
      fmt::format("{} free, the job store has {}", Size(about.free_bytes()), Size(about.store_bytes()));
  if (about.free_bytes() < kLittleDisk)
    return FaultFinding(
        "disk of the master", std::move(text),
        "make room on that disk: without room no job is taken. heddle admin gc --older-than 30d "
        "frees room within the job store, whose file does not shrink");
  return GoodFinding("disk of the master", std::move(text));
}

Finding Expiry(const std::string& about, int64_t until_ms, const char* mend) {
  const int64_t left_ms = until_ms - SystemClock().WallMs();
  const int64_t days = left_ms / kDayMs;
  if (left_ms <= 0) return FaultFinding(about, "it has expired", mend);
  if (days < kSoonDays) return NoteFinding(about, fmt::format("it expires in {} days", days), mend);
  return GoodFinding(about, fmt::format("good for {} days", days));
}

std::vector<Finding> Certificates(const AboutReply& about, const MasterAddress& master) {
  std::vector<Finding> findings;
  if (about.certificate_until_ms() > 0)
    findings.push_back(
        Expiry("its certificate", about.certificate_until_ms(),
               "heddle admin cert server --folder DIR --host HOST; a master that was started with "
               "these files takes the new ones by itself, one with copies of them is restarted"));
  else if (about.certificate_until_ms() < 0)
    findings.push_back(FaultFinding("its certificate",
                                    "the master cannot read the file that it was started with",
                                    "put the file back, or make it readable for the master"));
  else
    findings.push_back(GoodFinding("its certificate", "none: it listens on its own machine only"));
  const std::tuple<const char*, std::string, const char*> kOwn[] = {
      {"authority", master.tls_authority,
       "make another one in a new folder: heddle admin cert authority --folder DIR; then certificates of it "
       "for all machines, and give its DIR/ca.pem to all of them"},
      {"own certificate", master.tls_certificate,
       "heddle admin cert server --folder DIR --host HOST --name NAME"},
  };
  for (const auto& [name, path, mend] : kOwn) {
    if (path.empty()) continue;
    const Result<CertificateFacts> facts = ReadCertificate(path);
    findings.push_back(facts.ok()
                           ? Expiry(name, facts->until_ms, mend)
                           : FaultFinding(name, facts.status().message(), Joined(facts.status().notes())));
  }
  return findings;
}

Finding Token(const AboutReply& about) {
  constexpr std::pair<Role, const char*> kMay[] = {
      {Role::kAdmin, "administrate"},
      {Role::kOperator, "use everybody's jobs and drain workers"},
      {Role::kSubmitter, "submit jobs and use those of the same owner"},
      {Role::kViewer, "see how jobs stand"},
  };
  for (const auto& [role, what] : kMay)
    if (std::ranges::find(about.roles(), Name(role)) != about.roles().end())
      return GoodFinding("token", fmt::format("of {}, role {}: it may {}", about.owner(),
                                              fmt::join(about.roles(), ", "), what));
  return NoteFinding("token", "of no role that is known here", "use the same version on all machines");
}

std::vector<Finding> Workers(Client& client) {
  NodesReply nodes;
  if (Status status = client.Nodes(&nodes); !status.ok())
    return {FaultFinding("workers", status.message(), Joined(status.notes()))};
  size_t alive = 0;
  std::set<std::string> others;
  std::vector<std::string> lost;
  for (const NodeDescription& node : nodes.nodes()) {
    if (node.state() == "ALIVE") {
      ++alive;
      if (node.version() != kVersion) others.insert(node.name());
    } else {
      lost.push_back(node.name());
    }
  }
  std::vector<Finding> findings;
  if (alive == 0)
    findings.push_back(FaultFinding("workers", "none is alive: jobs wait", "heddle worker, on each machine"));
  else if (!lost.empty())
    findings.push_back(NoteFinding("workers", fmt::format("{} alive, not {}", alive, fmt::join(lost, ", ")),
                                   "look at these machines, or start heddle worker there"));
  else
    findings.push_back(GoodFinding("workers", fmt::format("{} alive", alive)));
  if (!others.empty())
    findings.push_back(NoteFinding("their versions",
                                   fmt::format("{} are of another one", fmt::join(others, ", ")),
                                   "use the same version on all machines"));
  return findings;
}

int Run(const Arguments& arguments) {
  const auto fail = [&](const Status& status) {
    return ReportFindings(arguments, {FaultFinding("master", status.message(), Joined(status.notes()))});
  };
  const Result<MasterAddress> master = FindMaster(arguments, kAdminToken);
  if (!master.ok()) return fail(master.status());
  const Result<std::unique_ptr<Client>> client = Client::Connect(*master);
  if (!client.ok()) return fail(client.status());
  AboutReply about;
  const int64_t begin_ms = SystemClock().WallMs();
  if (Status status = (*client)->About(&about); !status.ok()) return fail(status);
  const int64_t end_ms = SystemClock().WallMs();
  std::vector<Finding> findings = {Reached(*master, end_ms - begin_ms), Version(about),
                                   Clocks(about, begin_ms, end_ms), Disk(about)};
  const auto add = [&](std::vector<Finding> more) {
    findings.insert(findings.end(), more.begin(), more.end());
  };
  add(Certificates(about, *master));
  add({Token(about)});
  add(Workers(**client));
  return ReportFindings(arguments, findings);
}

}  // namespace

const Verb kAdminDoctorVerb = {
    "admin doctor",
    "look at a cluster from here: what is wrong and how to mend it",
    "admin doctor [OPTIONS]",
    MasterVerbOptions(),
    "heddle admin doctor --master host:7070 --token-file admin.token --tls-ca ca.pem",
    Run};

}  // namespace heddle::cluster::cli
