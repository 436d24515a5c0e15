// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_tokens.h"

#include "cluster/access/token_store.h"
#include "cluster/master/message_limits.h"
#include "cluster/security/rpc_security.h"
#include "core/environment/clock.h"
#include "proto/master.grpc.pb.h"

namespace heddle::cluster {
namespace {

void ToProto(const Token& token, TokenDescription* proto) {
  proto->set_name(token.name);
  proto->set_owner(token.owner);
  for (size_t i = 0; i < kRoleNames.size(); ++i)
    if (token.roles.Has(static_cast<Role>(i))) proto->add_roles(std::string(kRoleNames[i]));
  proto->set_state(std::string(StateOf(token, SystemClock().WallMs())));
  proto->set_created_ms(token.created_ms);
  proto->set_expires_ms(token.expires_ms);
  proto->set_revoked_ms(token.revoked_ms);
  proto->set_reusable(token.reusable);
  proto->set_used_by(token.used_by);
}

void ToProto(const Token& token, const std::string& secret, TokenSecret* proto) {
  proto->set_name(token.name);
  proto->set_secret(secret);
  proto->set_expires_ms(token.expires_ms);
}

class TokensService : public Tokens::Service {
 public:
  explicit TokensService(const AccessControl* access) : access_(access) {}

  grpc::Status Create(grpc::ServerContext* context, const CreateTokenRequest* request,
                      TokenSecret* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(context, *request, &caller); !status.ok()) return status;
    TokenStore::NewToken wanted = {request->name(),
                                   request->owner().empty() ? caller.owner : request->owner(),
                                   {},
                                   request->lives_ms(),
                                   request->reusable()};
    for (const std::string& role : request->roles()) wanted.roles.Add(*ParseRole(role));
    Token made;
    const Result<std::string> secret = access_->tokens().Create(wanted, &made);
    if (!secret.ok()) return ToGrpc(secret.status());
    ToProto(made, *secret, reply);
    return grpc::Status::OK;
  }

  grpc::Status List(grpc::ServerContext* context, const ListTokensRequest*, ListTokensReply* reply) override {
    Caller caller;
    if (grpc::Status status = access_->Admit(context, &caller); !status.ok()) return status;
    for (const Token& token : access_->tokens().List()) ToProto(token, reply->add_tokens());
    return grpc::Status::OK;
  }

  grpc::Status Revoke(grpc::ServerContext* context, const TokenRequest* request,
                      TokenDescription* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(context, *request, &caller); !status.ok()) return status;
    Token revoked;
    if (Status status = access_->tokens().Revoke(request->name(), &revoked); !status.ok())
      return ToGrpc(status);
    ToProto(revoked, reply);
    return grpc::Status::OK;
  }

  grpc::Status Rotate(grpc::ServerContext* context, const RotateTokenRequest* request,
                      TokenSecret* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(context, *request, &caller); !status.ok()) return status;
    Token rotated;
    const Result<std::string> secret =
        access_->tokens().Rotate(request->name(), request->overlap_ms(), &rotated);
    if (!secret.ok()) return ToGrpc(secret.status());
    ToProto(rotated, *secret, reply);
    return grpc::Status::OK;
  }

 private:
  template <typename Message>
  grpc::Status Admit(grpc::ServerContextBase* context, const Message& message, Caller* caller) {
    grpc::Status status = access_->Admit(context, caller);
    return status.ok() ? ToGrpc(CheckMessage(message)) : status;
  }

  const AccessControl* access_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeTokensService(const AccessControl* access) {
  return std::make_unique<TokensService>(access);
}

}  // namespace heddle::cluster
