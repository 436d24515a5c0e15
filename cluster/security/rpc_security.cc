// SPDX-License-Identifier: Apache-2.0
#include "cluster/security/rpc_security.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/stat.h>

#include "cluster/network/grpc_library.h"
#include "cluster/network/unreachable.h"
#include "cluster/protocol_version.h"
#include "core/text/utf8.h"
#include "core/version.h"
#include "engine/wire/value_wire.h"

namespace heddle::cluster {
namespace {

constexpr size_t kMostDetailBytes = 4096;  // headers are limited to 8 KiB

std::string_view Find(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata, const char* name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? std::string_view()
                                 : std::string_view(found->second.data(), found->second.size());
}

// Looks at a call when its headers are here. Its messages would be taken in, up to the largest size, before a
// method sees the call.
class Doorkeeper : public grpc::AuthMetadataProcessor {
 public:
  explicit Doorkeeper(Screen screen) : screen_(std::move(screen)) {}
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext*, OutputMetadata*,
                       OutputMetadata*) override {
    return screen_(Find(metadata, ":path"), Find(metadata, "authorization"));
  }

 private:
  const Screen screen_;
};

std::shared_ptr<grpc::ServerCredentials> WithoutTls(const std::string& address) {
  return grpc::experimental::LocalServerCredentials(IsUnixAddress(address) ? UDS : LOCAL_TCP);
}

std::shared_ptr<grpc::ServerCredentials> WithTls(TlsTexts texts) {
  grpc::SslServerCredentialsOptions options(texts.authority.empty()
                                                ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_key_cert_pairs.push_back({std::move(texts.key), std::move(texts.certificate)});
  options.pem_root_certs = std::move(texts.authority);
  return grpc::SslServerCredentials(options);
}

// The files are read again when they change, so that certificates are replaced while the server runs. A file
// that cannot be read leaves what there was. While a pair does not match nobody can connect by TLS; those
// who are connected go on.
std::shared_ptr<grpc::ServerCredentials> WithTlsOfFiles(const TlsFiles& tls) {
  constexpr unsigned kRefreshSeconds = 5;
  const auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      tls.key, tls.certificate, tls.authority, kRefreshSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  if (!tls.authority.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

// Others, such as pipes, can be read once.
bool CanBeReadAgain(const TlsFiles& tls) {
  for (const std::string& path : {tls.certificate, tls.key, tls.authority}) {
    struct stat status {};
    if (!path.empty() && (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))) return false;
  }
  return true;
}

}  // namespace

Result<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const std::string& address,
                                                                       const TlsFiles& tls, Screen screen) {
  HEDDLE_ASSIGN_OR_RETURN(TlsTexts texts, ReadTlsFiles(tls));
  const auto credentials = texts.certificate.empty() ? WithoutTls(address)
                           : CanBeReadAgain(tls)     ? WithTlsOfFiles(tls)
                                                     : WithTls(std::move(texts));
  credentials->SetAuthMetadataProcessor(std::make_shared<Doorkeeper>(std::move(screen)));
  return credentials;
}

Result<std::shared_ptr<grpc::Channel>> MakeMasterChannel(const std::string& address, const TlsFiles& tls) {
  KeepGrpcLibrary();
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (!tls.authority.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(TlsTexts texts, ReadTlsFiles(tls));
    credentials = grpc::SslCredentials(
        {std::move(texts.authority), std::move(texts.key), std::move(texts.certificate)});
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
  std::string details = engine::EncodeStatus(status);
  if (details.size() > kMostDetailBytes) details.clear();
  return {code, std::string(CutAtCharacter(status.message(), kMostDetailBytes / 2)), details};
}

Status FromGrpc(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return OkStatus();
  Status decoded;
  if (!status.error_details().empty() && engine::DecodeStatus(status.error_details(), &decoded).ok() &&
      !decoded.ok())
    return decoded;
  switch (status.error_code()) {
    case grpc::StatusCode::UNAUTHENTICATED:
      return PermissionDenied("the master at {} does not accept the token: {}", address,
                              status.error_message())
          .WithNote(
              "give one that an administrator has made ('heddle admin token create'): --token-file FILE");
    case grpc::StatusCode::PERMISSION_DENIED:
      return PermissionDenied("{}", status.error_message())
          .WithNote(
              "an administrator makes tokens of other roles: heddle admin token create NAME --role ROLE");
    case grpc::StatusCode::UNAVAILABLE:
      return Unavailable("no master at {}", address)
          .WithNote("'heddle master --dev' starts one on this machine");
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Unavailable("the master at {} did not answer in time", address);
    case grpc::StatusCode::CANCELLED: return Unavailable("the master at {} ended the call", address);
    default: return Unavailable("the master at {}: {}", address, status.error_message());
  }
}

bool IsUnreachable(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE && status.error_details().empty();
}

Status FromGrpc(const grpc::Status& status, const std::string& address, const TlsFiles& tls) {
  return IsUnreachable(status) ? WhyUnreachable(address, tls) : FromGrpc(status, address);
}

}  // namespace heddle::cluster
