// SPDX-License-Identifier: Apache-2.0
#include "cluster/metrics/metrics_server.h"

#include <civetweb.h>
#include <prometheus/collectable.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <iterator>
#include <utility>

#include "cluster/network/address.h"
#include "core/text/utf8.h"

namespace heddle::cluster {
namespace {

constexpr const char* kTextFormat = "text/plain; version=0.0.4; charset=utf-8";

class CivetMetricsServer : public MetricsServer {
 public:
  explicit CivetMetricsServer(Sources sources) : sources_(std::move(sources)) {}
  ~CivetMetricsServer() override {
    if (context_ != nullptr) mg_stop(context_);
  }

  Status Listen(const std::string& address) {
    const size_t colon = address.rfind(':');
    const std::string host = address.substr(0, colon);
    // Few threads: who scrapes is one, and its requests are short.
    const char* options[] = {"listening_ports",
                             address.c_str(),
                             "num_threads",
                             "3",
                             "request_timeout_ms",
                             "5000",
                             "enable_keep_alive",
                             "no",
                             "enable_directory_listing",
                             "no",
                             nullptr};
    std::array<char, 256> text{};
    mg_error_data error{nullptr, text.data(), text.size()};
    mg_init_data init{nullptr, this, options};
    context_ = mg_start2(&init, &error);
    if (context_ == nullptr) return Unavailable("cannot listen on {} for metrics: {}", address, text.data());
    mg_set_request_handler(context_, "/metrics$", &Metrics, this);
    mg_set_request_handler(context_, "/healthz$", &Health, this);
    mg_set_request_handler(context_, "/readyz$", &Readiness, this);
    mg_set_request_handler(context_, "/", &Other, this);
    mg_server_port port{};
    mg_get_server_ports(context_, 1, &port);
    address_ = fmt::format("{}:{}", host, port.port);
    return OkStatus();
  }

  const std::string& address() const override { return address_; }

 private:
  static int Answer(mg_connection* connection, int code, const char* reason, const char* type,
                    const std::string& body, const char* header = "") {
    mg_printf(connection,
              "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n"
              "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n%s\r\n",
              code, reason, type, body.size(), header);
    mg_write(connection, body.data(), body.size());
    return code;
  }

  // Others than GET and HEAD change nothing here: there is nothing to change.
  static bool IsRead(mg_connection* connection) {
    const std::string_view method = mg_get_request_info(connection)->request_method;
    return method == "GET" || method == "HEAD";
  }

  grpc::Status Admits(mg_connection* connection) const {
    if (!sources_.admits) return grpc::Status::OK;
    const char* const shown = mg_get_header(connection, "Authorization");
    const mg_request_info* const request = mg_get_request_info(connection);
    return sources_.admits(shown == nullptr ? "" : shown,
                           fmt::format("{}:{}", request->remote_addr, request->remote_port));
  }

  static int Metrics(mg_connection* connection, void* self) {
    if (!IsRead(connection)) return Refuse(connection);
    const grpc::Status admitted = static_cast<CivetMetricsServer*>(self)->Admits(connection);
    if (admitted.error_code() == grpc::StatusCode::UNAUTHENTICATED)
      return Answer(connection, 401, "Unauthorized", "text/plain; charset=utf-8",
                    EscapeForTerminal(admitted.error_message()) + "\n", "WWW-Authenticate: Bearer\r\n");
    if (!admitted.ok())
      return Answer(connection, 403, "Forbidden", "text/plain; charset=utf-8",
                    EscapeForTerminal(admitted.error_message()) + "\n");
    std::vector<prometheus::MetricFamily> families;
    for (const auto& collectable : static_cast<CivetMetricsServer*>(self)->sources_.collectables) {
      std::vector<prometheus::MetricFamily> more = collectable->Collect();
      families.insert(families.end(), std::make_move_iterator(more.begin()),
                      std::make_move_iterator(more.end()));
    }
    return Answer(
        connection, 200, "OK", kTextFormat,
        static_cast<const prometheus::Serializer&>(prometheus::TextSerializer()).Serialize(families));
  }

  static int Health(mg_connection* connection, void*) {
    return IsRead(connection) ? Answer(connection, 200, "OK", "text/plain", "ok\n") : Refuse(connection);
  }

  static int Readiness(mg_connection* connection, void* self) {
    if (!IsRead(connection)) return Refuse(connection);
    const auto* const server = static_cast<CivetMetricsServer*>(self);
    const Status status = server->sources_.ready();
    if (status.ok()) return Answer(connection, 200, "OK", "text/plain", "ready\n");
    // Whoever looks without a token, as what balances load does, learns that it is not ready, and not why.
    const bool shows_none = server->sources_.admits && mg_get_header(connection, "Authorization") == nullptr;
    const bool sees_why = !shows_none && server->Admits(connection).ok();
    return Answer(connection, 503, "Service Unavailable", "text/plain; charset=utf-8",
                  (sees_why ? EscapeForTerminal(status.message()) : "not ready") + "\n");
  }

  static int Refuse(mg_connection* connection) {
    return Answer(connection, 405, "Method Not Allowed", "text/plain", "GET only\n");
  }

  static int Other(mg_connection* connection, void*) {
    return Answer(connection, 404, "Not Found", "text/plain", "there are /metrics, /healthz and /readyz\n");
  }

  const Sources sources_;
  mg_context* context_ = nullptr;
  std::string address_;
};

}  // namespace

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address, Sources sources) {
  auto server = std::make_unique<CivetMetricsServer>(std::move(sources));
  HEDDLE_RETURN_IF_ERROR(server->Listen(address));
  return std::unique_ptr<MetricsServer>(std::move(server));
}

}  // namespace heddle::cluster
