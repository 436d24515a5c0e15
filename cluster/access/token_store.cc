// SPDX-License-Identifier: Apache-2.0
#include "cluster/access/token_store.h"

#include <openssl/evp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "cluster/access/master_folder.h"
#include "cluster/access/token_file.h"
#include "cluster/security/grpc_hello.h"
#include "cluster/security/token.h"
#include "core/text/time_text.h"

namespace heddle::cluster {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::string_view kGivenToken = "token-file";
constexpr std::string_view kGivenWorkerToken = "worker-token-file";
constexpr std::string_view kBearer = "Bearer ";
constexpr size_t kMostTokens = 10'000;
constexpr size_t kMostJoined = 10'000;
constexpr int64_t kKeptMs =
    30 * kDayMs;  // of tokens that let nobody in any more, so that the log can name them

struct FirstToken {
  std::string_view name;
  Role role;
};
constexpr FirstToken kFirstTokens[] = {
    {kClientToken, Role::kSubmitter}, {kAdminToken, Role::kAdmin}, {kWorkerToken, Role::kWorker}};

std::string HashOf(std::string_view secret) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned size = 0;
  const bool made =
      EVP_Digest(secret.data(), secret.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1;
  HEDDLE_CHECK(made, "OpenSSL has SHA-256");
  std::string hash;
  for (unsigned i = 0; i < size; ++i) hash += fmt::format("{:02x}", digest[i]);
  return hash;
}

Json ToJson(Roles roles) {
  Json names = Json::array();
  for (size_t i = 0; i < kRoleNames.size(); ++i)
    if (roles.Has(static_cast<Role>(i))) names.push_back(kRoleNames[i]);
  return names;
}

Json ToJson(const Token& token) {
  return {{"name", token.name},
          {"owner", token.owner},
          {"roles", ToJson(token.roles)},
          {"hash", token.hash},
          {"old_hash", token.old_hash},
          {"old_until_ms", token.old_until_ms},
          {"created_ms", token.created_ms},
          {"expires_ms", token.expires_ms},
          {"revoked_ms", token.revoked_ms},
          {"reusable", token.reusable},
          {"used_by", token.used_by},
          {"used_by_uuid", token.used_by_uuid}};
}

Json ToJson(const JoinedWorker& worker) {
  return {{"uuid", worker.uuid},
          {"name", worker.name},
          {"owner", worker.owner},
          {"hash", worker.hash},
          {"token", worker.token},
          {"joined_ms", worker.joined_ms},
          {"removed_ms", worker.removed_ms}};
}

// These throw where the JSON is not as it was written.
Token TokenOf(const Json& json) {
  Token token;
  token.name = json.at("name");
  token.owner = json.at("owner");
  for (const std::string name : json.at("roles"))
    if (const auto role = ParseRole(name)) token.roles.Add(*role);
  token.hash = json.at("hash");
  token.old_hash = json.at("old_hash");
  token.old_until_ms = json.at("old_until_ms");
  token.created_ms = json.at("created_ms");
  token.expires_ms = json.at("expires_ms");
  token.revoked_ms = json.at("revoked_ms");
  token.reusable = json.at("reusable");
  token.used_by = json.at("used_by");
  token.used_by_uuid = json.at("used_by_uuid");
  return token;
}
JoinedWorker WorkerOf(const Json& json) {
  return {json.at("uuid"),  json.at("name"),      json.at("owner"),     json.at("hash"),
          json.at("token"), json.at("joined_ms"), json.at("removed_ms")};
}

// Named as the option of a master whose file holds it.
bool IsGiven(const std::string& name) { return name == kGivenToken || name == kGivenWorkerToken; }
bool IsFirst(const std::string& name) {
  return std::any_of(std::begin(kFirstTokens), std::end(kFirstTokens),
                     [&](const FirstToken& first) { return first.name == name; });
}

class TokenStoreImpl : public TokenStore {
 public:
  TokenStoreImpl(std::string folder, Clock& clock) : folder_(std::move(folder)), clock_(clock) {}

  Status Start(const GivenTokens& given) {
    HEDDLE_RETURN_IF_ERROR(Load());
    std::erase_if(tokens_, [](const Token& token) { return IsGiven(token.name); });
    // The tokens that lie in the folder let nobody in meanwhile.
    has_given_ = !given.admin_file.empty();
    if (!has_given_) {
      for (const FirstToken& first : kFirstTokens) HEDDLE_RETURN_IF_ERROR(MakeFirst(first));
    } else if (given.worker_file.empty()) {
      HEDDLE_RETURN_IF_ERROR(TakeGiven(kGivenToken, given.admin_file, {Role::kAdmin, Role::kWorker}));
    } else {
      HEDDLE_RETURN_IF_ERROR(TakeGiven(kGivenToken, given.admin_file, {Role::kAdmin}));
      HEDDLE_RETURN_IF_ERROR(TakeGiven(kGivenWorkerToken, given.worker_file, {Role::kWorker}));
      if (FindOrAdd(std::string(kGivenToken)).hash == FindOrAdd(std::string(kGivenWorkerToken)).hash)
        return Usage("--token-file and --worker-token-file hold the same token")
            .WithNote("one token is for both without --worker-token-file");
    }
    return Save();
  }

  Result<Caller> Find(std::string_view authorization, std::string* name) const override {
    const Status unknown = PermissionDenied("it is none of its tokens");
    if (!authorization.starts_with(kBearer)) return unknown;
    const std::string hash = HashOf(authorization.substr(kBearer.size()));
    const std::lock_guard lock(mutex_);
    // What is looked up is the hash of what the caller says: how long that takes tells nothing of other
    // hashes that the caller could make use of. The comparison itself takes the same time whatever differs.
    const auto found = by_hash_.find(hash);
    if (found == by_hash_.end()) return unknown;
    if (found->second.is_worker) {
      const JoinedWorker& worker = workers_[found->second.index];
      if (name != nullptr) *name = "worker " + worker.name;
      if (!EqualInConstantTime(hash, worker.hash)) return unknown;
      if (worker.removed_ms != 0)
        return PermissionDenied("worker {} was removed on {}", worker.name, UtcTime(worker.removed_ms));
      return Caller{"worker " + worker.name, worker.owner, {Role::kWorker}, worker.uuid};
    }
    const Token& token = tokens_[found->second.index];
    const int64_t now_ms = clock_.WallMs();
    const bool is_current = EqualInConstantTime(hash, token.hash);
    const bool is_old = !token.old_hash.empty() && EqualInConstantTime(hash, token.old_hash);
    if (!is_current && !is_old) return unknown;
    if (name != nullptr) *name = token.name;
    if (has_given_ && IsFirst(token.name)) return unknown;
    if (token.revoked_ms != 0)
      return PermissionDenied("'{}' of {} was revoked on {}", token.name, token.owner,
                              UtcTime(token.revoked_ms));
    if (token.expires_ms != 0 && now_ms >= token.expires_ms)
      return PermissionDenied("'{}' of {} expired on {}", token.name, token.owner, UtcTime(token.expires_ms));
    if (!is_current && now_ms >= token.old_until_ms)
      return PermissionDenied("'{}' of {} has another secret since {}", token.name, token.owner,
                              UtcTime(token.old_until_ms));
    return Caller{token.name, token.owner, token.roles, ""};
  }

  Result<std::string> Create(const NewToken& wanted, Token* made) override {
    const std::lock_guard lock(mutex_);
    const int64_t now_ms = clock_.WallMs();
    const auto same = std::find_if(tokens_.begin(), tokens_.end(),
                                   [&](const Token& token) { return token.name == wanted.name; });
    if (same != tokens_.end() && (StateOf(*same, now_ms) == "valid" || IsFirst(wanted.name)))
      return Usage("there is a token '{}' of {} already", same->name, same->owner)
          .WithNote("give another name, or make a new secret for this one: heddle admin token rotate NAME");
    Change change(this);
    if (same != tokens_.end()) tokens_.erase(same);
    DropOld(now_ms);
    if (tokens_.size() >= kMostTokens)
      return Usage("the master has {} tokens, which is the most it keeps", kMostTokens);
    const std::string secret = MakeSecret();
    Token& token = tokens_.emplace_back();
    token.name = wanted.name;
    token.owner = wanted.owner;
    token.roles = wanted.roles;
    token.reusable = wanted.reusable;
    token.created_ms = now_ms;
    token.expires_ms = wanted.lives_ms == 0 ? 0 : now_ms + wanted.lives_ms;
    token.hash = HashOf(secret);
    *made = token;
    HEDDLE_RETURN_IF_ERROR(change.Keep());
    return secret;
  }

  std::vector<Token> List() const override {
    const std::lock_guard lock(mutex_);
    std::vector<Token> tokens = tokens_;
    if (has_given_) std::erase_if(tokens, [](const Token& token) { return IsFirst(token.name); });
    return tokens;
  }

  Status Revoke(const std::string& name, Token* revoked) override {
    const std::lock_guard lock(mutex_);
    HEDDLE_ASSIGN_OR_RETURN(Token * token, FindByName(name));
    const int64_t now_ms = clock_.WallMs();
    const bool is_last = token->roles.Has(Role::kAdmin) &&
                         std::none_of(tokens_.begin(), tokens_.end(), [&](const Token& other) {
                           return &other != token && other.roles.Has(Role::kAdmin) &&
                                  StateOf(other, now_ms) == "valid" && !(has_given_ && IsFirst(other.name));
                         });
    if (is_last)
      return Usage("'{}' is the last token with the role admin: nobody could make another", name)
          .WithNote("make one first: heddle admin token create NAME --role admin");
    if (IsGiven(name))
      return Usage("'{}' is a token that the master was started with", name)
          .WithNote(fmt::format("start it with another one in the file of --{}, or without, to be rid of it",
                                name));
    Change change(this);
    if (token->revoked_ms == 0) token->revoked_ms = now_ms;
    *revoked = *token;
    HEDDLE_RETURN_IF_ERROR(change.Keep());
    if (IsFirst(name)) unlink(TokenFile(folder_, name).c_str());
    return OkStatus();
  }

  Result<std::string> Rotate(const std::string& name, int64_t overlap_ms, Token* rotated) override {
    const std::lock_guard lock(mutex_);
    HEDDLE_ASSIGN_OR_RETURN(Token * token, FindByName(name));
    const int64_t now_ms = clock_.WallMs();
    if (StateOf(*token, now_ms) != "valid" || IsGiven(name))
      return Usage("'{}' of {} gets no new secret: it is {}", name, token->owner,
                   IsGiven(name) ? "in the file that the master was started with" : StateOf(*token, now_ms))
          .WithNote("'heddle admin token create' makes a token");
    const std::string secret = MakeSecret();
    Change change(this);
    token->old_hash = token->hash;
    token->old_until_ms = now_ms + overlap_ms;
    token->hash = HashOf(secret);
    *rotated = *token;
    // A master that ends between the two takes the secret of the file up when it starts: a new one.
    if (IsFirst(name)) HEDDLE_RETURN_IF_ERROR(WritePrivateFile(TokenFile(folder_, name), secret + "\n"));
    HEDDLE_RETURN_IF_ERROR(change.Keep());
    return secret;
  }

  Status Join(const Caller& caller, const std::string& secret, const std::string& name) override {
    const std::string uuid = UuidOf(secret);
    const std::string hash = HashOf(secret);
    const std::lock_guard lock(mutex_);
    const auto token = std::find_if(tokens_.begin(), tokens_.end(),
                                    [&](const Token& one) { return one.name == caller.token; });
    if (token == tokens_.end() || token->revoked_ms != 0)
      return PermissionDenied("the token '{}' was revoked", caller.token);
    const auto worker = std::find_if(workers_.begin(), workers_.end(),
                                     [&](const JoinedWorker& one) { return one.uuid == uuid; });
    if (worker != workers_.end() && worker->removed_ms != 0)
      return PermissionDenied("worker {} was removed on {}: this identity does not join again", name,
                              UtcTime(worker->removed_ms));
    if (!token->reusable && !token->used_by.empty() && token->used_by_uuid != uuid)
      return PermissionDenied("the token '{}' has let worker {} join, and lets one join", token->name,
                              token->used_by)
          .WithNote("make one for this worker: heddle admin token create NAME --role worker");
    const auto holder = by_hash_.find(hash);
    if (holder != by_hash_.end() && !holder->second.is_worker)
      return PermissionDenied("worker {}: its secret is that of a token", name);
    if (worker != workers_.end() && worker->name == name) return OkStatus();
    Change change(this);
    if (worker != workers_.end()) {
      worker->name = name;
    } else {
      if (workers_.size() >= kMostJoined)
        workers_.erase(workers_.begin());  // it joins again where its token lets it
      workers_.push_back({uuid, name, token->owner, hash, token->name, clock_.WallMs(), 0});
    }
    if (!token->reusable) {
      token->used_by = name;
      token->used_by_uuid = uuid;
    }
    return change.Keep();
  }

  Result<JoinedWorker> RemoveWorker(const std::string& node) override {
    const std::lock_guard lock(mutex_);
    std::vector<JoinedWorker*> found;
    for (JoinedWorker& worker : workers_)
      if ((worker.uuid == node || worker.name == node) && worker.removed_ms == 0) found.push_back(&worker);
    if (found.empty())
      return NotFound("no worker '{}' has joined", node).WithNote("'heddle admin nodes' lists the workers");
    if (found.size() > 1)
      return Usage("{} workers are called '{}'", found.size(), node)
          .WithNote("name one by its uuid: heddle admin nodes --json");
    Change change(this);
    found[0]->removed_ms = clock_.WallMs();
    const JoinedWorker removed = *found[0];
    HEDDLE_RETURN_IF_ERROR(change.Keep());
    return removed;
  }

  bool LetsJoin(const std::string& name) const override {
    const std::lock_guard lock(mutex_);
    const int64_t now_ms = clock_.WallMs();
    return std::any_of(tokens_.begin(), tokens_.end(), [&](const Token& token) {
      return token.name == name && token.reusable && StateOf(token, now_ms) == "valid";
    });
  }

 private:
  struct Place {
    bool is_worker = false;
    size_t index = 0;
  };

  // What is changed in memory is undone where it does not get to the disk.
  class Change {
   public:
    explicit Change(TokenStoreImpl* store)
        : store_(store), tokens_(store->tokens_), workers_(store->workers_) {}
    ~Change() {
      if (kept_) return;
      store_->tokens_ = std::move(tokens_);
      store_->workers_ = std::move(workers_);
      store_->Index();
    }
    Status Keep() {
      HEDDLE_RETURN_IF_ERROR(store_->Save());
      kept_ = true;
      return OkStatus();
    }

   private:
    TokenStoreImpl* store_;
    std::vector<Token> tokens_;
    std::vector<JoinedWorker> workers_;
    bool kept_ = false;
  };

  std::string Path() const { return folder_ + "/tokens.json"; }

  Status Load() {
    std::ifstream file(Path(), std::ios::binary);
    if (!file)
      return std::filesystem::exists(Path()) ? PermissionDenied("cannot read '{}'", Path()) : OkStatus();
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    try {
      const Json json = Json::parse(text);
      if (json.at("format").get<int>() > kFormat)
        return FailedPrecondition("'{}' was written by a newer version of Heddle", Path());
      for (const Json& token : json.at("tokens")) tokens_.push_back(TokenOf(token));
      for (const Json& worker : json.at("workers")) workers_.push_back(WorkerOf(worker));
    } catch (const Json::exception& error) {
      return DataLoss("'{}' is malformed: {}", Path(), error.what())
          .WithNote("without it the master makes its first tokens anew, and no other lets anybody in");
    }
    return OkStatus();
  }

  Status Save() {
    Json json = {{"format", kFormat}, {"tokens", Json::array()}, {"workers", Json::array()}};
    for (const Token& token : tokens_) json["tokens"].push_back(ToJson(token));
    for (const JoinedWorker& worker : workers_) json["workers"].push_back(ToJson(worker));
    Index();
    return WritePrivateFile(Path(), json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  void Index() {
    by_hash_.clear();
    for (size_t i = 0; i < workers_.size(); ++i) by_hash_[workers_[i].hash] = {true, i};
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (!tokens_[i].old_hash.empty()) by_hash_[tokens_[i].old_hash] = {false, i};
      by_hash_[tokens_[i].hash] = {false, i};
    }
  }

  Token& FindOrAdd(const std::string& name) {
    const auto found =
        std::find_if(tokens_.begin(), tokens_.end(), [&](const Token& token) { return token.name == name; });
    if (found != tokens_.end()) return *found;
    Token& token = tokens_.emplace_back();
    token.name = name;
    token.owner = OwnUserName();
    token.created_ms = clock_.WallMs();
    return token;
  }

  Status TakeGiven(std::string_view name, const std::string& file, Roles roles) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string secret, ReadToken(file));
    Token& token = FindOrAdd(std::string(name));
    token.roles = roles;
    token.reusable = roles.Has(Role::kWorker);
    token.hash = HashOf(secret);
    return OkStatus();
  }

  // Its file says what its secret is.
  Status MakeFirst(const FirstToken& first) {
    Token& token = FindOrAdd(std::string(first.name));
    if (token.revoked_ms != 0) return OkStatus();
    const std::string path = TokenFile(folder_, first.name);
    HEDDLE_RETURN_IF_ERROR(ReadOrMakeSecret(path).status());
    HEDDLE_ASSIGN_OR_RETURN(const std::string secret, ReadToken(path));
    token.roles = {first.role};
    token.reusable = first.role == Role::kWorker;
    token.hash = HashOf(secret);
    return OkStatus();
  }

  Result<Token*> FindByName(const std::string& name) {
    for (Token& token : tokens_)
      if (token.name == name && !(has_given_ && IsFirst(name))) return &token;
    return NotFound("there is no token '{}'", name).WithNote("'heddle admin token list' lists the tokens");
  }

  // It joins again where its token lets it.
  void ForgetOldest() {
    const auto oldest = std::find_if(workers_.begin(), workers_.end(),
                                     [](const JoinedWorker& worker) { return worker.removed_ms == 0; });
    workers_.erase(oldest == workers_.end() ? workers_.begin() : oldest);
  }

  void DropOld(int64_t now_ms) {
    std::erase_if(tokens_, [&](const Token& token) {
      const bool has_expired = token.expires_ms != 0 && now_ms > token.expires_ms + kKeptMs;
      const bool was_revoked = token.revoked_ms != 0 && now_ms > token.revoked_ms + kKeptMs;
      return (has_expired || was_revoked) && !IsFirst(token.name);
    });
  }

  const std::string folder_;
  Clock& clock_;
  bool has_given_ = false;  // tokens instead of its first ones
  mutable std::mutex mutex_;
  std::vector<Token> tokens_;
  std::vector<JoinedWorker> workers_;
  std::unordered_map<std::string, Place> by_hash_;
};

}  // namespace

std::string_view StateOf(const Token& token, int64_t now_ms) {
  if (token.revoked_ms != 0) return "revoked";
  if (token.expires_ms != 0 && now_ms >= token.expires_ms) return "expired";
  return token.used_by.empty() ? "valid" : "used";
}

std::string TokenFile(const std::string& folder, std::string_view name) {
  return fmt::format("{}/{}.token", folder, name);
}

std::string OwnUserName() {
  std::array<char, 16 << 10> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return entry.pw_name;
  return fmt::format("uid-{}", geteuid());
}

Result<std::unique_ptr<TokenStore>> TokenStore::Open(const std::string& folder, const GivenTokens& given,
                                                     Clock& clock) {
  auto store = std::make_unique<TokenStoreImpl>(folder, clock);
  HEDDLE_RETURN_IF_ERROR(store->Start(given));
  return std::unique_ptr<TokenStore>(std::move(store));
}

}  // namespace heddle::cluster
