// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/master_tokens.h"

#include <algorithm>
#include <chrono>

#include "cluster/security/role.h"
#include "cluster/security/rpc_security.h"
#include "proto/master.grpc.pb.h"

namespace heddle::cluster {
namespace {

constexpr auto kPatience = std::chrono::seconds(3);

}  // namespace

grpc::Status MasterTokens::MaySeeMetrics(const std::string& token) {
  const grpc::Status nobody(grpc::StatusCode::UNAVAILABLE,
                            "no master is there to tell what this token is for");
  const Result<MasterAddress> master = find_master_();
  if (!master.ok()) return nobody;
  const Result<std::shared_ptr<grpc::Channel>> channel = ChannelTo(*master);
  if (!channel.ok()) return nobody;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  AddCaller(token, &context);
  AboutReply about;
  const grpc::Status answer = Admin::NewStub(*channel)->About(&context, AboutRequest(), &about);
  if (answer.error_code() == grpc::StatusCode::UNAUTHENTICATED)
    return {grpc::StatusCode::UNAUTHENTICATED, "metrics take a token that the master knows"};
  const bool is_other = answer.ok()
                            ? std::ranges::none_of(about.roles(),
                                                   [](const std::string& name) {
                                                     const std::optional<Role> role = ParseRole(name);
                                                     return role == Role::kViewer ||
                                                            role == Role::kOperator || role == Role::kAdmin;
                                                   })
                            : answer.error_code() == grpc::StatusCode::PERMISSION_DENIED;
  if (is_other)
    return {grpc::StatusCode::PERMISSION_DENIED,
            "metrics take a token of role viewer, operator or admin: this one has another"};
  return answer.ok() ? grpc::Status::OK : nobody;
}

Result<std::shared_ptr<grpc::Channel>> MasterTokens::ChannelTo(const MasterAddress& master) {
  const std::lock_guard lock(mutex_);
  if (channel_ == nullptr || address_ != master.address) {
    HEDDLE_ASSIGN_OR_RETURN(
        channel_,
        MakeMasterChannel(master.address, {master.tls_certificate, master.tls_key, master.tls_authority}));
    address_ = master.address;
  }
  return channel_;
}

}  // namespace heddle::cluster
