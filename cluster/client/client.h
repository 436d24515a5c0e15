// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "engine/session/cancellation.h"
#include "engine/session/session.h"

namespace heddle {
class AboutReply;
class ConfigReply;
class GarbageReply;
class GarbageRequest;
class JobDescription;
class JobRecord;
class ListReply;
class ListRequest;
class NodeDescription;
class NodesReply;
class CreateTokenRequest;
class RemoveReply;
class TokenDescription;
class TokenSecret;
}  // namespace heddle

namespace heddle::cluster {

/// Where a master is and what it asks for.
struct MasterAddress {
  std::string address;  ///< unix:/path or host:port
  std::string token;
  std::string tls_authority;  ///< Files; "" for plain text, only to this machine.
  std::string tls_certificate;
  std::string tls_key;
};

/// A script on its way to the master.
struct JobSubmission {
  std::string request_id;
  std::string script_name;
  std::string script_text;
  std::map<std::string, std::string> files;  ///< What it sources and calls of the library.
  std::vector<std::string> libraries;        ///< Folders of which `files` has what is called, as searched.
  std::map<std::string, std::string> parameters;
  std::string directory;
  std::vector<std::string> data_roots;   ///< Folders that the script may use beside `directory`; absolute.
  std::vector<std::string> named_paths;  ///< Paths among the arguments; absolute (ops::FileRoots).
  int workers = 0;
  int64_t retry_for_ms = 0;   ///< JobSpecification::retry_for_ms
  int64_t checkpoint_ms = 0;  ///< JobSpecification::checkpoint_ms
  int priority = 0;
  int64_t deadline_ms = 0;  ///< 0: none.
  bool explain = false;
  engine::SessionOptions options;  ///< threads 0: what each worker has.
  /// Called on another thread with a line for the user, now and then while the master has not answered; may
  /// be empty.
  std::function<void(const std::string& line)> tell;
};

/// What the master says of a script that it took.
struct SubmittedJob {
  std::string id;
  std::string warnings;     ///< Of the compiler.
  std::string explanation;  ///< If asked for: the program, then the plans that travel with the job.
};

/// The texts of all files that the compiler looks at, found as it finds them from `directory`: those that a
/// script sources, directly or not, those of the library functions that it calls, and the metadata of scalars
/// that it reads. `arguments` are the script's; `closed` are files that it may not name.
std::map<std::string, std::string> CollectSources(const std::string& name, const std::string& text,
                                                  const std::map<std::string, std::string>& arguments,
                                                  const std::string& directory,
                                                  const std::vector<std::string>& libraries,
                                                  const std::vector<std::string>& closed = {});

/// Calls of a user to the master. Errors: kUnavailable when it cannot be reached, kPermissionDenied for a
/// token that does not let its holder do that, kNotFound for an unknown job.
class Client {
 public:
  static Result<std::unique_ptr<Client>> Connect(const MasterAddress& address);
  virtual ~Client() = default;

  /// Queues a job. The errors of the script are the status. `cancellation` (may be nullptr) gives up waiting
  /// for the answer.
  virtual Result<SubmittedJob> Submit(const JobSubmission& submission,
                                      engine::Cancellation* cancellation) = 0;
  virtual Status List(const ListRequest& request, ListReply* jobs) = 0;
  /// `cancellation` (may be nullptr) gives up waiting for the answer.
  virtual Status Get(const std::string& job, JobDescription* description,
                     engine::Cancellation* cancellation = nullptr) = 0;
  virtual Status Cancel(const std::string& job, JobDescription* description) = 0;
  /// A finished job once more, as another one. kFailedPrecondition for one that is not finished.
  virtual Result<SubmittedJob> Retry(const std::string& job, const std::string& request_id) = 0;
  /// Forgets a finished job; what it was goes to `description`. kFailedPrecondition as above.
  virtual Status Delete(const std::string& job, JobDescription* description) = 0;
  /// What a report of a finished job is made of. kFailedPrecondition for one that was not recorded.
  virtual Status Record(const std::string& job, JobRecord* record) = 0;
  virtual Status Nodes(NodesReply* nodes) = 0;
  /// Gives a worker (by name or uuid) no more jobs, or jobs again. kNotFound for an unknown one.
  virtual Status Drain(const std::string& node, bool drained, NodeDescription* description) = 0;
  virtual Status About(AboutReply* about) = 0;
  virtual Status Config(ConfigReply* settings) = 0;
  /// The bytes of a copy of the master's folder go to `sink`, whose errors end it.
  virtual Status Backup(const std::function<Status(std::string_view bytes)>& sink) = 0;
  virtual Status CollectGarbage(const GarbageRequest& request, GarbageReply* reply) = 0;
  /// Lets a worker (by name or uuid) in no more. kNotFound for an unknown one.
  virtual Status Remove(const std::string& node, RemoveReply* removed) = 0;

  virtual Status CreateToken(const CreateTokenRequest& request, TokenSecret* secret) = 0;
  virtual Status ListTokens(std::vector<TokenDescription>* tokens) = 0;
  /// kNotFound for a token that there is not, as for the next.
  virtual Status RevokeToken(const std::string& name, TokenDescription* revoked) = 0;
  /// A new secret; the old one lets in for `overlap_ms` more.
  virtual Status RotateToken(const std::string& name, int64_t overlap_ms, TokenSecret* secret) = 0;

  struct WatchEvents {
    std::function<void(std::string_view text)> output;
    std::function<void(const JobDescription& job)> state;   ///< May be empty.
    std::function<void(const std::string& json)> progress;  ///< What it is at; may be empty.
    /// `output` is told what the executor of this rank said on its standard error.
    std::optional<int> log_rank;
    int log_attempt = 0;  ///< In this attempt; 0: the last one there is.
  };
  /// Output and states of a job; until it is finished (`follow`) or all there is was told. The last
  /// description goes to `last`. A master that goes away is waited for (kUnavailable after `patience_ms`);
  /// what was told is not told again. `cancellation` ends it with its own status.
  virtual Status Watch(const std::string& job, bool follow, const WatchEvents& events,
                       engine::Cancellation* cancellation, JobDescription* last, int64_t patience_ms) = 0;

  /// Set after a call when the master is of another version: a text for the user.
  virtual std::string version_warning() const = 0;
};

/// The outcome that a finished job's description carries; kUnavailable when it is not finished.
Status OutcomeOf(const JobDescription& job);

}  // namespace heddle::cluster
