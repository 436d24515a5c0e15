// SPDX-License-Identifier: Apache-2.0
#include "cluster/metrics/metrics_server.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>
#include <string.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "cluster/network/address.h"
#include "cluster/process/repeated_work.h"
#include "core/environment/descriptor.h"
#include "core/environment/log.h"
#include "core/text/utf8.h"

namespace heddle::cluster {
namespace {

constexpr const char* kTextFormat = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kText = "text/plain; charset=utf-8";
// Who scrapes is one, and its requests are short.
constexpr unsigned kThreads = 3;
constexpr unsigned kMostConnections = 64;
constexpr size_t kMostBytesOfRequest = 16 << 10;
constexpr unsigned kIdleSeconds = 5;
constexpr std::chrono::milliseconds kLookAtCertificate(2'000);

// A socket that listens at the first of the addresses that can be bound; errno of the last one otherwise.
Descriptor ListenAt(const std::vector<SocketAddress>& addresses) {
  int error = EADDRNOTAVAIL;
  for (const SocketAddress& address : addresses) {
    Descriptor listener(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int yes = 1;
    if (listener.ok()) setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (listener.ok() && bind(listener.get(), address.get(), address.size) == 0 &&
        listen(listener.get(), SOMAXCONN) == 0)
      return listener;
    error = errno;
  }
  errno = error;
  return Descriptor();
}

std::string NameOf(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "";
  return fmt::format("{}:{}", host.data(), port.data());
}

class MicrohttpdServer : public MetricsServer {
 public:
  MicrohttpdServer(TlsFiles tls, Sources sources) : tls_(std::move(tls)), sources_(std::move(sources)) {}
  ~MicrohttpdServer() override { looks_.reset(); }

  Status Listen(const std::string& address) {
    HEDDLE_ASSIGN_OR_RETURN(TlsTexts texts, ReadTlsFiles(tls_));
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<SocketAddress> addresses, Resolve(address));
    listener_ = ListenAt(addresses);
    if (listener_.ok()) daemon_ = StartDaemon(std::move(texts));
    if (daemon_ == nullptr)
      return Unavailable("cannot listen on {} for metrics: {}", address, strerror(errno));
    SocketAddress bound;
    bound.size = sizeof(bound.storage);
    getsockname(listener_.get(), bound.get(), &bound.size);
    const std::string name = NameOf(bound.get(), bound.size);
    address_ = address.substr(0, address.rfind(':')) + name.substr(name.rfind(':'));
    if (!tls_.certificate.empty()) looks_.emplace(kLookAtCertificate, kLookAtCertificate, [this] { Look(); });
    return OkStatus();
  }

  const std::string& address() const override { return address_; }

 private:
  // One that answers, with the certificate that it shows. Those that connect are answered by any that is
  // there.
  struct Daemon {
    TlsTexts texts;
    MHD_Daemon* daemon = nullptr;

    explicit Daemon(TlsTexts shown) : texts(std::move(shown)) {}
    Daemon(const Daemon&) = delete;
    ~Daemon() {
      if (daemon == nullptr) return;
      close(MHD_quiesce_daemon(daemon));
      MHD_stop_daemon(daemon);
    }
  };

  // nullptr with errno where that fails. The daemon owns a copy of the socket that listens, also when
  // it does not start.
  std::unique_ptr<Daemon> StartDaemon(TlsTexts texts) {
    auto started = std::make_unique<Daemon>(std::move(texts));
    const int listener = fcntl(listener_.get(), F_DUPFD_CLOEXEC, 0);
    if (listener < 0) return nullptr;
    const bool has_tls = !started->texts.certificate.empty();
    const unsigned flags =
        MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC | (has_tls ? unsigned{MHD_USE_TLS} : 0U);
    std::vector<MHD_OptionItem> tls;
    if (has_tls) {
      tls.push_back({MHD_OPTION_HTTPS_MEM_KEY, 0, started->texts.key.data()});
      tls.push_back({MHD_OPTION_HTTPS_MEM_CERT, 0, started->texts.certificate.data()});
      tls.push_back({MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>("NORMAL:-VERS-TLS1.0:-VERS-TLS1.1")});
    }
    tls.push_back({MHD_OPTION_END, 0, nullptr});
    started->daemon = MHD_start_daemon(
        flags, 0, nullptr, nullptr, &Answer, this, MHD_OPTION_LISTEN_SOCKET, listener,
        MHD_OPTION_THREAD_POOL_SIZE, kThreads, MHD_OPTION_CONNECTION_LIMIT, kMostConnections,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMostBytesOfRequest, MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,
        MHD_OPTION_ARRAY, tls.data(), MHD_OPTION_END);
    return started->daemon != nullptr ? std::move(started) : nullptr;
  }

  // Another certificate is shown to whoever connects from now on. The one before goes when the next one is
  // shown: files of no use leave what there was.
  void Look() {
    Result<TlsTexts> texts = ReadTlsFiles(tls_);
    if (!texts.ok() || *texts == daemon_->texts || *texts == refused_) return;
    if (std::unique_ptr<Daemon> next = StartDaemon(*texts)) {
      daemon_ = std::move(next);
      return;
    }
    HEDDLE_LOG(kError, "the new certificate of metrics is of no use; the one before is shown",
               {"file", tls_.certificate});
    refused_ = *std::move(texts);
  }

  static MHD_Result Reply(MHD_Connection* connection, unsigned code, const char* type,
                          const std::string& body, bool asks_for_token = false) {
    MHD_Response* const response =
        MHD_create_response_from_buffer(body.size(), const_cast<char*>(body.data()), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Connection", "close");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (asks_for_token) MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    const MHD_Result queued = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return queued;
  }

  // Asked twice: when the headers are here, then for the reply.
  static MHD_Result Answer(void* self, MHD_Connection* connection, const char* url, const char* method,
                           const char*, const char*, size_t* bytes_of_body, void** state) {
    // Others than GET and HEAD change nothing here: there is nothing to change.
    if (const std::string_view asks = method; asks != "GET" && asks != "HEAD")
      return Reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, kText, "GET only\n");
    if (*state == nullptr) {
      *state = self;
      return MHD_YES;
    }
    if (*bytes_of_body != 0) {  // of no use to anybody
      *bytes_of_body = 0;
      return MHD_YES;
    }
    const auto* const server = static_cast<const MicrohttpdServer*>(self);
    const std::string_view path = url;
    if (path == "/metrics") return server->Metrics(connection);
    if (path == "/healthz") return Reply(connection, MHD_HTTP_OK, kText, "ok\n");
    if (path == "/readyz") return server->Readiness(connection);
    return Reply(connection, MHD_HTTP_NOT_FOUND, kText, "there are /metrics, /healthz and /readyz\n");
  }

  static const char* AuthorizationOf(MHD_Connection* connection) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
  }

  grpc::Status Admits(MHD_Connection* connection) const {
    if (!sources_.admits) return grpc::Status::OK;
    const MHD_ConnectionInfo* const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const sockaddr* const peer = info == nullptr ? nullptr : info->client_addr;
    const socklen_t size =
        peer != nullptr && peer->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    const char* const shown = AuthorizationOf(connection);
    return sources_.admits(shown == nullptr ? "" : shown, peer == nullptr ? "" : NameOf(peer, size));
  }

  MHD_Result Metrics(MHD_Connection* connection) const {
    const grpc::Status admitted = Admits(connection);
    if (!admitted.ok()) {
      const bool is_unknown = admitted.error_code() == grpc::StatusCode::UNAUTHENTICATED;
      const unsigned code =
          is_unknown                                                      ? MHD_HTTP_UNAUTHORIZED
          : admitted.error_code() == grpc::StatusCode::UNAVAILABLE        ? MHD_HTTP_SERVICE_UNAVAILABLE
          : admitted.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ? MHD_HTTP_TOO_MANY_REQUESTS
                                                                          : MHD_HTTP_FORBIDDEN;
      return Reply(connection, code, kText, EscapeForTerminal(admitted.error_message()) + "\n", is_unknown);
    }
    std::vector<prometheus::MetricFamily> families;
    for (const auto& collectable : sources_.collectables) {
      std::vector<prometheus::MetricFamily> more = collectable->Collect();
      families.insert(families.end(), std::make_move_iterator(more.begin()),
                      std::make_move_iterator(more.end()));
    }
    return Reply(
        connection, MHD_HTTP_OK, kTextFormat,
        static_cast<const prometheus::Serializer&>(prometheus::TextSerializer()).Serialize(families));
  }

  MHD_Result Readiness(MHD_Connection* connection) const {
    const Status status = sources_.ready();
    if (status.ok()) return Reply(connection, MHD_HTTP_OK, kText, "ready\n");
    // Whoever looks without a token, as what balances load does, learns that it is not ready, and not why.
    const bool shows_none = sources_.admits && AuthorizationOf(connection) == nullptr;
    const bool sees_why = !shows_none && Admits(connection).ok();
    return Reply(connection, MHD_HTTP_SERVICE_UNAVAILABLE, kText,
                 (sees_why ? EscapeForTerminal(status.message()) : "not ready") + "\n");
  }

  const TlsFiles tls_;
  const Sources sources_;
  Descriptor listener_;
  std::string address_;
  std::unique_ptr<Daemon> daemon_;  // of the thread that looks, once there is one
  TlsTexts refused_;                // that are of no use; told once
  std::optional<RepeatedWork> looks_;
};

}  // namespace

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address, const TlsFiles& tls,
                                                            Sources sources) {
  auto server = std::make_unique<MicrohttpdServer>(tls, std::move(sources));
  HEDDLE_RETURN_IF_ERROR(server->Listen(address));
  return std::unique_ptr<MetricsServer>(std::move(server));
}

}  // namespace heddle::cluster
