// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/connection.h"

#include <charconv>

#include "cluster/access/master_folder.h"
#include "cluster/master/master_server.h"
#include "cluster/access/token_file.h"
#include "ops/io/files/own_folders.h"

namespace heddle::cluster::cli {

std::vector<Option> ConnectionOptions() {
  using Kind = Option::Kind;
  return {
      {"master", Kind::kValue, "ADDRESS", "host:port or unix:/path (default: that of 'heddle master --dev')"},
      {"token-file", Kind::kValue, "FILE",
       "file with your token (default: that of the user of 'heddle master --dev')"},
      {"tls-ca", Kind::kValue, "FILE", "certificates that the master's must be signed by"},
      {"tls-certificate", Kind::kValue, "FILE", "own certificate, if the master asks for one"},
      {"tls-key", Kind::kValue, "FILE", "key of the own certificate"},
  };
}

std::vector<Option> MasterVerbOptions() {
  const Option json[] = {{"json", Option::Kind::kFlag, "", "print JSON, one object a line"}};
  return JoinOptions({json, ConnectionOptions()});
}

std::string DevelopmentFolder() { return ops::UserStateFolder() + "/master"; }

Result<std::string> CheckAddress(std::string_view option, const std::string& address) {
  constexpr int kHighestPort = 65535;
  if (address.starts_with("unix:/")) return address;
  if (address.starts_with("/")) return "unix:" + address;
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon != std::string::npos && colon > 0) {
    const char* end = address.data() + address.size();
    const auto [stop, error] = std::from_chars(address.data() + colon + 1, end, port);
    if (error != std::errc() || stop != end) port = -1;
  }
  if (port < 0 || port > kHighestPort)
    return Usage("--{} takes HOST:PORT or unix:/path, not '{}'", option, address);
  return address;
}

Result<std::string> CheckPort(std::string_view option, const std::string& address) {
  HEDDLE_ASSIGN_OR_RETURN(std::string checked, CheckAddress(option, address));
  if (checked.starts_with("unix:")) return Usage("--{} takes HOST:PORT, not '{}'", option, address);
  return checked;
}

Result<MasterAddress> FindMaster(const Arguments& arguments, std::string_view name) {
  MasterAddress master;
  if (const auto address = arguments.Value("master")) {
    HEDDLE_ASSIGN_OR_RETURN(master.address, CheckAddress("master", *address));
  } else {
    const Result<std::string> found = ReadFirstLine(AddressFile(DevelopmentFolder()));
    if (!found.ok())
      return Unavailable("no master of this user is running")
          .WithNote("start one with 'heddle master --dev', or name one with --master ADDRESS");
    master.address = *found;
  }
  const std::string token_file = arguments.Value("token-file").value_or(TokenFile(DevelopmentFolder(), name));
  const Result<std::string> token = ReadToken(token_file);
  const bool is_missing = token.status().code() == StatusCode::kNotFound;
  if (is_missing && name != kWorkerToken)
    return token.status().WithNote("--token-file FILE names the file with the token");
  if (!is_missing) {
    HEDDLE_RETURN_IF_ERROR(token.status());
    master.token = *token;
  }
  master.tls_authority = arguments.Value("tls-ca").value_or("");
  master.tls_certificate = arguments.Value("tls-certificate").value_or("");
  master.tls_key = arguments.Value("tls-key").value_or("");
  return master;
}

Result<std::unique_ptr<Client>> ConnectToMaster(const Arguments& arguments, std::string_view token) {
  HEDDLE_ASSIGN_OR_RETURN(const MasterAddress master, FindMaster(arguments, token));
  return Client::Connect(master);
}

}  // namespace heddle::cluster::cli
