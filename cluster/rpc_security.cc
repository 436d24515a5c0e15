// SPDX-License-Identifier: Apache-2.0
#include "cluster/rpc_security.h"

#include <fstream>
#include <iterator>

#include "cluster/grpc_hello.h"
#include "cluster/value_wire.h"
#include "cluster/version.h"

namespace heddle::cluster {
namespace {

constexpr size_t kMostDetailBytes = 4096;  // headers are limited to 8 KiB

std::string_view Find(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata, const char* name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? std::string_view()
                                 : std::string_view(found->second.data(), found->second.size());
}

Result<std::string> ReadPem(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound("cannot read '{}'", path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

bool IsLocalAddress(const std::string& address) {
  if (address.starts_with("unix:") || address.starts_with("unix-abstract:")) return true;
  const size_t colon = address.rfind(':');
  const std::string host = colon == std::string::npos ? address : address.substr(0, colon);
  return host == "localhost" || host == "[::1]" || host == "::1" || host.starts_with("127.");
}

Result<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const TlsFiles& tls) {
  if (tls.certificate.empty() != tls.key.empty())
    return Usage("--tls-certificate and --tls-key belong together");
  if (tls.certificate.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(tls.authority.empty()
                                                ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  grpc::SslServerCredentialsOptions::PemKeyCertPair pair;
  HEDDLE_ASSIGN_OR_RETURN(pair.private_key, ReadPem(tls.key));
  HEDDLE_ASSIGN_OR_RETURN(pair.cert_chain, ReadPem(tls.certificate));
  options.pem_key_cert_pairs.push_back(std::move(pair));
  HEDDLE_ASSIGN_OR_RETURN(options.pem_root_certs, ReadPem(tls.authority));
  return grpc::SslServerCredentials(options);
}

Result<std::shared_ptr<grpc::Channel>> MakeMasterChannel(const std::string& address, const TlsFiles& tls) {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (!tls.authority.empty()) {
    grpc::SslCredentialsOptions options;
    HEDDLE_ASSIGN_OR_RETURN(options.pem_root_certs, ReadPem(tls.authority));
    HEDDLE_ASSIGN_OR_RETURN(options.pem_private_key, ReadPem(tls.key));
    HEDDLE_ASSIGN_OR_RETURN(options.pem_cert_chain, ReadPem(tls.certificate));
    credentials = grpc::SslCredentials(options);
  } else if (IsLocalAddress(address)) {
    credentials = grpc::InsecureChannelCredentials();
  } else {
    return Usage("the master at {} is on another machine and needs TLS", address)
        .WithNote("give the certificate that its own is signed by: --tls-ca FILE");
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMostMessageBytes);
  arguments.SetMaxSendMessageSize(kMostMessageBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // In fact the time that an attempt to connect may take: a busy master is not one that is away.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

void AddCaller(const std::string& token, grpc::ClientContext* context) {
  context->AddMetadata("authorization", "Bearer " + token);
  context->AddMetadata("heddle-version", kVersion);
  context->AddMetadata("heddle-protocol", fmt::format("{}", kProtocolVersion));
}

grpc::Status AdmitCaller(const std::string& token, grpc::ServerContextBase* context) {
  const auto& metadata = context->client_metadata();
  context->AddInitialMetadata("heddle-version", kVersion);
  if (token.empty() || !EqualInConstantTime(Find(metadata, "authorization"), "Bearer " + token))
    return {grpc::StatusCode::UNAUTHENTICATED, "the token is not that of this master"};
  if (Find(metadata, "heddle-protocol") != fmt::format("{}", kProtocolVersion))
    return ToGrpc(
        Unavailable("the master is Heddle {}, the caller is Heddle {}: they cannot talk to each other",
                    kVersion,
                    Find(metadata, "heddle-version").empty() ? "?" : Find(metadata, "heddle-version"))
            .WithNote("use the same version on both sides"));
  return grpc::Status::OK;
}

std::string VersionWarning(const grpc::ClientContext& context) {
  const std::string_view theirs = Find(context.GetServerInitialMetadata(), "heddle-version");
  if (theirs.empty() || theirs == kVersion) return "";
  return fmt::format("the master is Heddle {}, this is Heddle {}", theirs, kVersion);
}

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = status.code() == StatusCode::kUsage
                        ? grpc::StatusCode::INVALID_ARGUMENT
                        : static_cast<grpc::StatusCode>(static_cast<int>(status.code()));
  std::string details = EncodeStatus(status);
  if (details.size() > kMostDetailBytes) details.clear();
  return {code, status.message().substr(0, kMostDetailBytes / 2), details};
}

Status FromGrpc(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return OkStatus();
  Status decoded;
  if (!status.error_details().empty() && DecodeStatus(status.error_details(), &decoded).ok() && !decoded.ok())
    return decoded;
  switch (status.error_code()) {
    case grpc::StatusCode::UNAUTHENTICATED:
      return PermissionDenied("the master at {} does not accept the token", address)
          .WithNote("give the token that it was started with: --token-file FILE");
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Unavailable("no master at {}", address)
          .WithNote("'heddle master --dev' starts one on this machine");
    case grpc::StatusCode::CANCELLED: return Unavailable("the master at {} ended the call", address);
    default: return Unavailable("the master at {}: {}", address, status.error_message());
  }
}

}  // namespace heddle::cluster
