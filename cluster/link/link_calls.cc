// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/link_calls.h"

#include <grpcpp/generic/generic_stub.h>

#include <chrono>

#include "cluster/network/grpc_acceptor.h"
#include "cluster/security/peer_tls.h"
#include "cluster/security/rpc_security.h"
#include "engine/wire/value_wire.h"
#include "proto/executor.grpc.pb.h"

namespace heddle::cluster {
namespace {

constexpr int kMostControlBytes = 4 << 20;
constexpr int kMostDataBytes = static_cast<int>(engine::kChunkBytes) + 4096;

using DataStub = grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>;

// Ends a call at once.
template <typename Frame>
class RefusedStream : public grpc::ServerBidiReactor<Frame, Frame> {
 public:
  explicit RefusedStream(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

class Service : public ExecutorLink::WithCallbackMethod_Control<
                    ExecutorLink::WithRawCallbackMethod_Data<ExecutorLink::Service>> {
 public:
  Service(Hello own, LinkCalls* calls, std::shared_ptr<Newcomers> newcomers)
      : own_(std::move(own)), calls_(calls), newcomers_(std::move(newcomers)) {}

  ControlReactor* Control(grpc::CallbackServerContext* context) override {
    int rank = 0;
    grpc::Status status = Admit(*context, &rank);
    if (status.ok() && rank < own_.rank)
      status = {grpc::StatusCode::FAILED_PRECONDITION, "the larger rank calls"};
    return status.ok() ? calls_->AcceptControl(context, rank) : RefuseControl(status);
  }
  DataReactor* Data(grpc::CallbackServerContext* context) override {
    int rank = 0;
    const grpc::Status status = Admit(*context, &rank);
    return status.ok() ? calls_->AcceptData(context, rank) : RefuseData(status);
  }

 private:
  grpc::Status Admit(const grpc::CallbackServerContext& context, int* rank) {
    grpc::Status status = CheckHello(own_, context, rank);
    if (status.ok()) newcomers_->Admit(context.peer());
    return status;
  }

  const Hello own_;
  LinkCalls* const calls_;
  const std::shared_ptr<Newcomers> newcomers_;
};

class LinkServerImpl : public LinkServer {
 public:
  LinkServerImpl(const Hello& own, LinkCalls* calls)
      : ranks_(own.ranks), newcomers_(std::make_shared<Newcomers>()), service_(own, calls, newcomers_) {}
  ~LinkServerImpl() override { Shutdown(0); }

  Status Bind(const std::string& listen) {
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    if (!IsLocalAddress(listen)) {
      HEDDLE_ASSIGN_OR_RETURN(const PeerIdentity identity, MakePeerIdentity());
      credentials = PeerServerCredentials(identity);
      certificate_ = identity.certificate;
    }
    HEDDLE_ASSIGN_OR_RETURN(acceptor_, Acceptor::Listen(listen, LimitsForPeers(ranks_), newcomers_));
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(kMostControlBytes);
    BoundSilence(&builder);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    Acceptor::Taker taker = TakeConnections(&builder, credentials);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return Unavailable("cannot bind {}", listen);
    acceptor_->Start(std::move(taker));
    endpoint_ = acceptor_->address();
    return OkStatus();
  }

  const std::string& endpoint() const override { return endpoint_; }
  const std::string& certificate() const override { return certificate_; }
  // gRPC returns from it only after the reactors of all calls are done and their calls given back.
  void Shutdown(int64_t grace_ms) override {
    acceptor_.reset();
    if (server_ != nullptr)
      server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(grace_ms));
  }

 private:
  const int ranks_;
  std::string endpoint_;
  std::string certificate_;
  const std::shared_ptr<Newcomers> newcomers_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;  // after the service, which it calls
  std::unique_ptr<Acceptor> acceptor_;    // hands connections to the server
};

Result<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& endpoint,
                                                   const std::string& certificate, int most_bytes) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(most_bytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  if (certificate.empty() && !IsLocalAddress(endpoint))
    return PermissionDenied("the executor at {} is on another machine and has no certificate", endpoint);
  const auto credentials = certificate.empty() ? grpc::InsecureChannelCredentials()
                                               : PeerChannelCredentials(certificate, &arguments);
  return grpc::CreateCustomChannel(endpoint, credentials, arguments);
}

}  // namespace

ControlReactor* RefuseControl(const grpc::Status& status) { return new RefusedStream<ControlFrame>(status); }
DataReactor* RefuseData(const grpc::Status& status) { return new RefusedStream<grpc::ByteBuffer>(status); }

Result<std::unique_ptr<LinkServer>> LinkServer::Start(const std::string& listen, const Hello& own,
                                                      LinkCalls* calls) {
  auto server = std::make_unique<LinkServerImpl>(own, calls);
  HEDDLE_RETURN_IF_ERROR(server->Bind(listen));
  return std::unique_ptr<LinkServer>(std::move(server));
}

Status CallControl(const std::string& endpoint, const std::string& certificate,
                   ClientStream<ControlFrame>* stream) {
  HEDDLE_ASSIGN_OR_RETURN(const auto channel, OpenChannel(endpoint, certificate, kMostControlBytes));
  stream->context().set_wait_for_ready(true);
  ExecutorLink::NewStub(channel)->async()->Control(&stream->context(), stream);
  return OkStatus();
}

Status CallData(const std::string& endpoint, const std::string& certificate,
                ClientStream<grpc::ByteBuffer>* stream) {
  HEDDLE_ASSIGN_OR_RETURN(const auto channel, OpenChannel(endpoint, certificate, kMostDataBytes));
  stream->context().set_wait_for_ready(true);
  DataStub(channel).PrepareBidiStreamingCall(&stream->context(), "/heddle.ExecutorLink/Data",
                                             grpc::StubOptions(), stream);
  return OkStatus();
}

}  // namespace heddle::cluster
