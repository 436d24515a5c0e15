// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/role_tokens.h"

#include "cluster/master/master_folder.h"
#include "cluster/master/token_file.h"
#include "cluster/protocol_version.h"
#include "cluster/security/grpc_hello.h"
#include "cluster/security/rpc_security.h"
#include "core/version.h"

namespace heddle::cluster {
namespace {

std::string Article(Role role) { return fmt::format("{} {}", role == Role::kAdmin ? "an" : "a", Name(role)); }

std::string_view Find(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata, const char* name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? std::string_view()
                                 : std::string_view(found->second.data(), found->second.size());
}

}  // namespace

std::string_view Name(Role role) {
  switch (role) {
    case Role::kClient: return "client";
    case Role::kAdmin: return "admin";
    case Role::kWorker: return "worker";
  }
  return "";
}

std::string TokenFile(const std::string& folder, Role role) {
  return fmt::format("{}/{}.token", folder, Name(role));
}

Result<RoleTokens> RoleTokens::Read(const std::string& folder, const std::string& token_file) {
  RoleTokens tokens;
  if (!token_file.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string token, ReadToken(token_file));
    tokens.client_ = tokens.admin_ = tokens.worker_ = token;
    return tokens;
  }
  for (const auto& [role, token] : {std::pair(Role::kClient, &tokens.client_),
                                    {Role::kAdmin, &tokens.admin_},
                                    {Role::kWorker, &tokens.worker_}}) {
    const std::string path = TokenFile(folder, role);
    HEDDLE_RETURN_IF_ERROR(ReadOrMakeSecret(path).status());
    HEDDLE_ASSIGN_OR_RETURN(*token, ReadToken(path));
  }
  return tokens;
}

bool RoleTokens::Allow(std::string_view authorization, Role role) const {
  const bool client = EqualInConstantTime(authorization, "Bearer " + client_);
  const bool admin = EqualInConstantTime(authorization, "Bearer " + admin_);
  const bool worker = EqualInConstantTime(authorization, "Bearer " + worker_);
  switch (role) {
    case Role::kClient: return client || admin;
    case Role::kAdmin: return admin;
    case Role::kWorker: return worker;
  }
  return false;
}

std::optional<Role> RoleTokens::RoleOf(std::string_view authorization) const {
  for (const Role role : {Role::kAdmin, Role::kClient, Role::kWorker})
    if (Allow(authorization, role)) return role;
  return std::nullopt;
}

grpc::Status AdmitCaller(const RoleTokens& tokens, Role role, grpc::ServerContextBase* context) {
  const auto& metadata = context->client_metadata();
  context->AddInitialMetadata("heddle-version", kVersion);
  const std::string_view authorization = Find(metadata, "authorization");
  const std::optional<Role> theirs = tokens.RoleOf(authorization);
  if (!theirs) return {grpc::StatusCode::UNAUTHENTICATED, "the token is not that of this master"};
  if (!tokens.Allow(authorization, role))
    return ToGrpc(
        PermissionDenied("the token is that of {}; this takes that of {}", Article(*theirs), Article(role))
            .WithNote(fmt::format("the master keeps it in its folder: --token-file {}.token", Name(role))));
  if (Find(metadata, "heddle-protocol") != fmt::format("{}", kProtocolVersion))
    return ToGrpc(
        Unavailable("the master is Heddle {}, the caller is Heddle {}: they cannot talk to each other",
                    kVersion,
                    Find(metadata, "heddle-version").empty() ? "?" : Find(metadata, "heddle-version"))
            .WithNote("use the same version on both sides"));
  if (tokens.newcomers() != nullptr) tokens.newcomers()->Admit(context->peer());
  return grpc::Status::OK;
}

}  // namespace heddle::cluster
