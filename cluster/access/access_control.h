// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <string>
#include <string_view>

#include "cluster/access/audit_log.h"
#include "cluster/access/token_store.h"
#include "cluster/network/newcomers.h"
#include "core/status.h"

// Who may do what with a master (runtime reference 5.12). A call meets three things: Screen, when its headers
// are here, looks its method up in the table of rules and its token in the store, and turns away whom no rule
// lets in; the method asks Admit who calls; and what the auditor says of it in the end goes into the audit
// log.
namespace heddle::cluster {

class AccessControl {
 public:
  /// All outlive it.
  AccessControl(TokenStore* tokens, AuditLog* log, Newcomers* newcomers)
      : tokens_(tokens), log_(log), newcomers_(newcomers) {}

  /// UNAUTHENTICATED without a token that is valid, PERMISSION_DENIED for a method that the token does not
  /// let its holder call, or that has no rule. Writes a refusal down.
  grpc::Status Screen(std::string_view path, std::string_view authorization) const;

  /// The same for who asks the master's HTTP port for `url` ("GET /metrics"), which takes viewers, operators
  /// and admins.
  grpc::Status ScreenUrl(std::string_view url, std::string_view authorization, const std::string& peer) const;

  /// Who makes a call that Screen has let in. UNAVAILABLE when the caller speaks another protocol,
  /// UNAUTHENTICATED when the token has ended since. Tells the caller our version.
  grpc::Status Admit(grpc::ServerContextBase* context, Caller* caller) const;

  /// Writes calls down that change something, and those that are refused or ask for what is not there.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeAuditor() const;

  TokenStore& tokens() const { return *tokens_; }
  AuditLog& log() const { return *log_; }

 private:
  grpc::Status Decide(std::string_view method, const Roles* takes, std::string_view authorization,
                      const std::string& peer) const;

  TokenStore* const tokens_;
  AuditLog* const log_;
  Newcomers* const newcomers_;
};

/// The value of the header "authorization"; "" without it.
std::string_view AuthorizationOf(const grpc::ServerContextBase& context);

}  // namespace heddle::cluster
