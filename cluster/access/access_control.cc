// SPDX-License-Identifier: Apache-2.0
#include "cluster/access/access_control.h"

#include <google/protobuf/message.h>

#include <utility>

#include "cluster/protocol_version.h"
#include "cluster/security/rpc_rules.h"
#include "cluster/security/rpc_security.h"
#include "core/text/utf8.h"
#include "core/version.h"
#include "engine/wire/value_wire.h"
#include "proto/master.pb.h"

namespace heddle::cluster {
namespace {

constexpr size_t kMostObjectBytes = 256;

std::string_view Find(const grpc::ServerContextBase& context, const char* name) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(name);
  return found == metadata.end() ? std::string_view()
                                 : std::string_view(found->second.data(), found->second.size());
}

std::string_view NameOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK: return "OK";
    case grpc::StatusCode::CANCELLED: return "CANCELLED";
    case grpc::StatusCode::INVALID_ARGUMENT: return "INVALID_ARGUMENT";
    case grpc::StatusCode::NOT_FOUND: return "NOT_FOUND";
    case grpc::StatusCode::PERMISSION_DENIED: return "PERMISSION_DENIED";
    case grpc::StatusCode::UNAUTHENTICATED: return "UNAUTHENTICATED";
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return "RESOURCE_EXHAUSTED";
    case grpc::StatusCode::FAILED_PRECONDITION: return "FAILED_PRECONDITION";
    case grpc::StatusCode::UNAVAILABLE: return "UNAVAILABLE";
    case grpc::StatusCode::INTERNAL: return "INTERNAL";
    default: return "OTHER";
  }
}

bool IsRefusal(grpc::StatusCode code) {
  return code == grpc::StatusCode::PERMISSION_DENIED || code == grpc::StatusCode::UNAUTHENTICATED ||
         code == grpc::StatusCode::NOT_FOUND || code == grpc::StatusCode::FAILED_PRECONDITION;
}

// The text of a field, or of the field of that name in the message that it holds.
std::string TextOf(const google::protobuf::Message& message, const std::string& name) {
  const google::protobuf::FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(name);
  if (field == nullptr || field->is_repeated()) return "";
  const google::protobuf::Reflection* const reflection = message.GetReflection();
  if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE)
    return TextOf(reflection->GetMessage(message, field), name);
  if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_STRING) return "";
  return EscapeInvalidUtf8(CutAtCharacter(reflection->GetString(message, field), kMostObjectBytes));
}

// Of a submit that was in vain: gRPC knows of no failure, and the reply says why.
std::string_view OutcomeIn(const google::protobuf::Message& reply) {
  if (reply.GetDescriptor() != SubmitReply::descriptor()) return "";
  const std::string& bytes = static_cast<const SubmitReply&>(reply).status();
  Status status;
  if (bytes.empty() || !engine::DecodeStatus(bytes, &status).ok() || status.ok()) return "";
  return NameOf(ToGrpc(status).error_code());
}

// Of one call of one method.
class Auditor : public grpc::experimental::Interceptor {
 public:
  Auditor(const AccessControl& access, const RpcRule& rule, grpc::experimental::ServerRpcInfo* info)
      : access_(access), rule_(rule), info_(info) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using Hook = grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(Hook::POST_RECV_MESSAGE)) Look(methods->GetRecvMessage());
    if (methods->QueryInterceptionHookPoint(Hook::PRE_SEND_MESSAGE)) {
      const auto* const reply = static_cast<const google::protobuf::Message*>(methods->GetSendMessage());
      Look(reply);
      if (reply != nullptr && !is_stream_) outcome_ = OutcomeIn(*reply);
    }
    if (methods->QueryInterceptionHookPoint(Hook::PRE_SEND_STATUS)) Write(methods->GetSendStatus());
    methods->Proceed();
  }

 private:
  void Look(const void* message) {
    if (message != nullptr && object_.empty() && !rule_.object.empty())
      object_ = TextOf(*static_cast<const google::protobuf::Message*>(message), std::string(rule_.object));
  }

  void Write(const grpc::Status& status) {
    if (!rule_.changes && !IsRefusal(status.error_code())) return;
    const grpc::ServerContextBase& context = *info_->server_context();
    AuditRecord record;
    if (const Result<Caller> caller = access_.tokens().Find(AuthorizationOf(context), &record.token);
        caller.ok()) {
      record.token = caller->token;
      record.owner = caller->owner;
    }
    record.peer = DescribePeer(context.peer());
    record.rpc = rule_.ShortName();
    record.object = object_;
    record.outcome = status.ok() && !outcome_.empty() ? outcome_ : NameOf(status.error_code());
    access_.log().Write(record);
  }

  const AccessControl& access_;
  const RpcRule& rule_;
  grpc::experimental::ServerRpcInfo* const info_;
  const bool is_stream_ = info_->type() != grpc::experimental::ServerRpcInfo::Type::UNARY;
  std::string object_;
  std::string_view outcome_;
};

class AuditorFactory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit AuditorFactory(const AccessControl& access) : access_(access) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override {
    using Type = grpc::experimental::ServerRpcInfo::Type;
    const RpcRule* const rule = FindRule(info->method());
    // Of a worker's stream, which has thousands of messages, ServeWorker writes down what there is.
    return rule == nullptr || info->type() == Type::BIDI_STREAMING ? nullptr
                                                                   : new Auditor(access_, *rule, info);
  }

 private:
  const AccessControl& access_;
};

}  // namespace

std::string_view AuthorizationOf(const grpc::ServerContextBase& context) {
  return Find(context, "authorization");
}

grpc::Status AccessControl::Screen(std::string_view path, std::string_view authorization) const {
  const RpcRule* const rule = FindRule(path);
  const std::string method =
      rule == nullptr ? EscapeInvalidUtf8(CutAtCharacter(path, kMostObjectBytes)) : rule->ShortName();
  return Decide(method, rule == nullptr ? nullptr : &rule->roles, authorization, newcomers_->Describe());
}

grpc::Status AccessControl::ScreenUrl(std::string_view url, std::string_view authorization,
                                      const std::string& peer) const {
  static constexpr Roles kTakes = {Role::kViewer, Role::kOperator, Role::kAdmin};
  return Decide(url, &kTakes, authorization, peer);
}

// `takes`: nullptr where there is no such method.
grpc::Status AccessControl::Decide(std::string_view method, const Roles* takes,
                                   std::string_view authorization, const std::string& peer) const {
  AuditRecord record;
  const Result<Caller> caller = tokens_->Find(authorization, &record.token);
  if (caller.ok() && takes != nullptr && caller->roles.HasAnyOf(*takes)) return grpc::Status::OK;
  record.rpc = method;
  record.peer = peer;
  if (!caller.ok()) {
    const grpc::Status refused(grpc::StatusCode::UNAUTHENTICATED, caller.status().message());
    record.outcome = NameOf(refused.error_code());
    record.why = caller.status().message();
    record.token.empty() ? log_->WriteStranger(record) : log_->Write(record);
    return refused;
  }
  record.token = caller->token;
  record.owner = caller->owner;
  record.outcome = NameOf(grpc::StatusCode::PERMISSION_DENIED);
  record.why = takes == nullptr
                   ? "there is no such method"
                   : fmt::format("the token '{}' of {} has the role {}; {} takes {}", caller->token,
                                 caller->owner, ToText(caller->roles), method, ToText(*takes));
  log_->Write(record);
  return {grpc::StatusCode::PERMISSION_DENIED, record.why};
}

grpc::Status AccessControl::Admit(grpc::ServerContextBase* context, Caller* caller) const {
  context->AddInitialMetadata("heddle-version", kVersion);
  Result<Caller> found = tokens_->Find(AuthorizationOf(*context));
  if (!found.ok()) return {grpc::StatusCode::UNAUTHENTICATED, found.status().message()};
  if (Find(*context, "heddle-protocol") != fmt::format("{}", kProtocolVersion))
    return ToGrpc(
        Unavailable("the master is Heddle {}, the caller is Heddle {}: they cannot talk to each other",
                    kVersion,
                    Find(*context, "heddle-version").empty() ? "?" : Find(*context, "heddle-version"))
            .WithNote("use the same version on both sides"));
  newcomers_->Admit(context->peer());
  *caller = *std::move(found);
  return grpc::Status::OK;
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> AccessControl::MakeAuditor() const {
  return std::make_unique<AuditorFactory>(*this);
}

}  // namespace heddle::cluster
