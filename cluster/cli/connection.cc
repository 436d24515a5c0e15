// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/connection.h"

#include "cluster/master_folder.h"
#include "cluster/master_server.h"

namespace heddle::cluster::cli {

std::vector<Option> ConnectionOptions() {
  using Kind = Option::Kind;
  return {
      {"master", Kind::kValue, "ADDRESS", "host:port or unix:/path (default: that of 'heddle master --dev')"},
      {"token-file", Kind::kValue, "FILE", "file with the master's token"},
      {"tls-ca", Kind::kValue, "FILE", "certificates that the master's must be signed by"},
      {"tls-certificate", Kind::kValue, "FILE", "own certificate, if the master asks for one"},
      {"tls-key", Kind::kValue, "FILE", "key of the own certificate"},
  };
}

std::string DevelopmentFolder() { return UserStateFolder() + "/master"; }

Result<MasterAddress> FindMaster(const Arguments& arguments) {
  MasterAddress master;
  if (const auto address = arguments.Value("master")) {
    master.address = *address;
  } else {
    const Result<std::string> found = ReadFirstLine(AddressFile(DevelopmentFolder()));
    if (!found.ok())
      return Unavailable("no master of this user is running").WithNote("start one with 'heddle master --dev', or name one with --master ADDRESS");
    master.address = *found;
  }
  const std::string token_file = arguments.Value("token-file").value_or(TokenFile(DevelopmentFolder()));
  const Result<std::string> token = ReadFirstLine(token_file);
  if (!token.ok()) return token.status().WithNote("--token-file FILE names the file with the master's token");
  master.token = *token;
  master.tls_authority = arguments.Value("tls-ca").value_or("");
  master.tls_certificate = arguments.Value("tls-certificate").value_or("");
  master.tls_key = arguments.Value("tls-key").value_or("");
  return master;
}

Result<std::unique_ptr<Client>> ConnectToMaster(const Arguments& arguments) {
  HEDDLE_ASSIGN_OR_RETURN(const MasterAddress master, FindMaster(arguments));
  return Client::Connect(master);
}

}  // namespace heddle::cluster::cli
