// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cluster/network/newcomers.h"
#include "core/status.h"

// Who may do what with a master (runtime reference 5.12). Each role has a token of its own, so that a user
// cannot pass for a worker, which is given programs and says what became of them.
namespace heddle::cluster {

enum class Role : uint8_t {
  kClient,  ///< Submits, watches and cancels jobs; sees the workers.
  kAdmin,   ///< What a client may do, and drain workers.
  kWorker,  ///< Works for the master; nothing else.
};
std::string_view Name(Role role);  ///< "client", ...

/// Where the master on `folder` keeps the token of a role: <folder>/<role>.token.
std::string TokenFile(const std::string& folder, Role role);

class RoleTokens {
 public:
  /// The tokens in the folder, made when missing; or with `token_file` the one in that file for all roles.
  /// Errors: those of ReadToken.
  static Result<RoleTokens> Read(const std::string& folder, const std::string& token_file);

  /// True if the caller with this value of the header "authorization" has the role, or is one that may do
  /// what the role may. Takes the same time whatever the value is.
  bool Allow(std::string_view authorization, Role role) const;
  /// The role of a caller; nullopt for a stranger.
  std::optional<Role> RoleOf(std::string_view authorization) const;

  /// The connections of calls that AdmitCaller lets in are no newcomers any more.
  void AdmitTo(std::shared_ptr<Newcomers> newcomers) { newcomers_ = std::move(newcomers); }
  Newcomers* newcomers() const { return newcomers_.get(); }

 private:
  std::shared_ptr<Newcomers> newcomers_;
  std::string client_, admin_, worker_;
};

/// The one place that lets a call in: every method of every service asks first. UNAUTHENTICATED without a
/// token of the master, PERMISSION_DENIED with that of another role, FAILED_PRECONDITION when the caller
/// speaks another protocol. Tells the caller our version.
grpc::Status AdmitCaller(const RoleTokens& tokens, Role role, grpc::ServerContextBase* context);

}  // namespace heddle::cluster
