// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "core/environment/clock.h"

namespace heddle::cluster {

/// Who may see the metrics of a worker: whoever shows a token of the master's with a role that sees those of
/// the master, as the master says at that moment, or the token that this worker was given. The thread that
/// asks the master answers nobody else meanwhile; so that strangers cannot keep all threads waiting, their
/// tokens are asked about one at a time and a few in a second, a refusal holds for a while, and a master that
/// does not answer is left alone for a while. Thread-safe.
class MetricsAdmission {
 public:
  /// What the master says of a token: OK, UNAUTHENTICATED, PERMISSION_DENIED, or UNAVAILABLE when it does not
  /// answer within seconds. Called on any thread, without a lock.
  using Ask = std::function<grpc::Status(const std::string& token)>;

  static constexpr int64_t kRefusedNs = 10'000'000'000;  ///< For so long a refusal holds.
  static constexpr int64_t kAbsentNs = 5'000'000'000;    ///< And what is known of a master that is not there.
  static constexpr int kMostAsked = 10;  ///< Tokens of strangers in a second; lines of the log, too.

  /// `own_token`: "" for none. The clock outlives it.
  MetricsAdmission(Ask ask, std::string own_token, Clock& clock)
      : ask_(std::move(ask)), own_token_(std::move(own_token)), clock_(clock) {}

  /// `authorization`: the value of that header. The codes of Ask; RESOURCE_EXHAUSTED where too many tokens
  /// are shown that were never let in. Refusals are logged.
  grpc::Status MaySeeMetrics(std::string_view authorization, const std::string& peer);

 private:
  struct Refusal {
    grpc::Status why;
    int64_t until_ns = 0;
  };
  grpc::Status Decide(std::string_view authorization);
  /// Whether the master may be asked about a token that was never let in; takes the right to.
  bool MayAsk();
  void BeginSecond(int64_t now_ns);
  void Learn(const std::string& token, const grpc::Status& answer, bool is_known);

  const Ask ask_;
  const std::string own_token_;
  Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, int64_t> admitted_;  // Tokens that were let in, with the moment of the last time.
  std::map<std::string, Refusal> refused_;   // By token.
  bool is_asking_ = false;                   // About a token that was never let in.
  int64_t second_began_ns_ = 0;
  int asked_ = 0;   // In that second.
  int logged_ = 0;  // The same.
  Refusal absent_;  // Of the master.
};

}  // namespace heddle::cluster
