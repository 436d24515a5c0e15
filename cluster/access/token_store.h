// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/security/role.h"
#include "core/environment/clock.h"
#include "core/status.h"

// The tokens of a master, by which it knows its callers, and the workers that have joined it. It knows
// secrets by their hashes (SHA-256 of 256 random bits); who reads its files finds none but those of the first
// tokens.
namespace heddle::cluster {

/// Who calls: what a token says of its holder.
struct Caller {
  std::string token;  ///< Its name; of a worker that has joined: "worker NAME".
  std::string owner;  ///< Whose jobs are submitted by it.
  Roles roles;
  std::string uuid;  ///< Of a worker that has joined; "" for all others.
};

struct Token {
  std::string name;
  std::string owner;
  Roles roles;
  std::string hash;
  std::string old_hash;  ///< Of the secret before, which lets in until old_until_ms.
  int64_t old_until_ms = 0;
  int64_t created_ms = 0;
  int64_t expires_ms = 0;    ///< 0: never.
  int64_t revoked_ms = 0;    ///< 0: not.
  bool reusable = false;     ///< Lets any number of workers join; else one.
  std::string used_by;       ///< The worker that has joined by it: its name
  std::string used_by_uuid;  ///< and uuid; "": none yet.
};

/// "valid", "expired", "revoked", "used"
std::string_view StateOf(const Token& token, int64_t now_ms);

/// A worker that has joined: the secret of its identity lets it in.
struct JoinedWorker {
  std::string uuid;
  std::string name;
  std::string owner;
  std::string hash;
  std::string token;  ///< By which it joined.
  int64_t joined_ms = 0;
  int64_t removed_ms = 0;  ///< 0: not. A removed one never joins again.
};

/// The tokens that a master makes for itself, each with its secret in a file of the master's folder,
/// <folder>/<name>.token: role submitter, admin, and one by which workers join. So the verbs of the user of
/// this folder need no token of their own.
inline constexpr std::string_view kClientToken = "client";
inline constexpr std::string_view kAdminToken = "admin";
inline constexpr std::string_view kWorkerToken = "worker";
std::string TokenFile(const std::string& folder, std::string_view name);
/// The user who runs this process: owner of the tokens that a master makes for itself.
std::string OwnUserName();

/// Thread-safe. What has returned Ok is on disk, in <folder>/tokens.json.
class TokenStore {
 public:
  /// Tokens that whoever starts a master gives it, each in a file, instead of those that it makes for itself.
  struct GivenTokens {
    std::string admin_file;  ///< Of the role admin, and of worker as well without the next one; "": none.
    /// By which workers join, any number of them; "": none. Only beside `admin_file`.
    std::string worker_file;
  };
  /// Takes up the tokens of the folder and makes those that a master has for itself, unless they were revoked
  /// or others are given. Errors: those of ReadToken, kDataLoss for a malformed file. `clock` outlives it.
  static Result<std::unique_ptr<TokenStore>> Open(const std::string& folder, const GivenTokens& given,
                                                  Clock& clock);
  virtual ~TokenStore() = default;

  /// Who calls with this value of the header "authorization". kPermissionDenied says why nobody may: "it is
  /// none of its tokens", "'ci' of anna expired on ...". `name`, which may be nullptr, is set to that of a
  /// token that lets nobody in any more.
  virtual Result<Caller> Find(std::string_view authorization, std::string* name = nullptr) const = 0;

  struct NewToken {
    std::string name, owner;
    Roles roles;
    int64_t lives_ms = 0;  ///< 0: until it is revoked.
    bool reusable = false;
  };
  /// Makes a token and returns its secret. kUsage for a name that a token has, unless that one lets nobody in
  /// any more.
  virtual Result<std::string> Create(const NewToken& token, Token* made) = 0;
  virtual std::vector<Token> List() const = 0;
  /// kNotFound; kUsage for the last one that makes others.
  virtual Status Revoke(const std::string& name, Token* revoked) = 0;
  /// A new secret; the old one lets in for `overlap_ms` more. kNotFound, kUsage for one that is not valid.
  virtual Result<std::string> Rotate(const std::string& name, int64_t overlap_ms, Token* rotated) = 0;

  /// From now on `secret` lets the worker in whose uuid is UuidOf(secret). kPermissionDenied where the token
  /// of the caller has let another worker join, or this one was removed. Joining twice is joining.
  virtual Status Join(const Caller& caller, const std::string& secret, const std::string& name) = 0;
  /// Lets a worker in no more (by name or uuid). kNotFound, kUsage for a name that several have.
  virtual Result<JoinedWorker> RemoveWorker(const std::string& node) = 0;
  /// Whether the token of that name lets further workers join.
  virtual bool LetsJoin(const std::string& name) const = 0;
};

}  // namespace heddle::cluster
