// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/metrics_admission.h"

#include <algorithm>
#include <utility>

#include "cluster/security/grpc_hello.h"
#include "core/environment/log.h"

namespace heddle::cluster {
namespace {

constexpr std::string_view kScheme = "Bearer ";
constexpr size_t kMostTokenBytes = 4096;
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr size_t kMostAdmitted = 64;

// What may travel in a header.
bool IsToken(std::string_view text) {
  return !text.empty() && text.size() <= kMostTokenBytes &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

grpc::Status MetricsAdmission::MaySeeMetrics(std::string_view authorization, const std::string& peer) {
  grpc::Status status = Decide(authorization);
  if (status.ok()) return status;
  bool is_logged = false;
  {
    const std::lock_guard lock(mutex_);
    BeginSecond(clock_.MonotonicNs());
    is_logged = logged_++ < kMostAsked;
  }
  if (is_logged) HEDDLE_LOG(kWarning, "metrics refused", {"peer", peer}, {"why", status.error_message()});
  return status;
}

grpc::Status MetricsAdmission::Decide(std::string_view authorization) {
  const grpc::Status unknown(grpc::StatusCode::UNAUTHENTICATED, "metrics take a token that the master knows");
  if (!authorization.starts_with(kScheme)) return unknown;
  const std::string token(authorization.substr(kScheme.size()));
  if (!own_token_.empty() && EqualInConstantTime(token, own_token_)) return grpc::Status::OK;
  if (!IsToken(token)) return unknown;
  bool is_known = false;
  {
    const std::lock_guard lock(mutex_);
    const int64_t now_ns = clock_.MonotonicNs();
    if (absent_.until_ns > now_ns) return absent_.why;
    std::erase_if(refused_, [&](const auto& refusal) { return refusal.second.until_ns <= now_ns; });
    if (const auto found = refused_.find(token); found != refused_.end()) return found->second.why;
    is_known = admitted_.contains(token);
    BeginSecond(now_ns);
    if (!is_known && !MayAsk())
      return {grpc::StatusCode::RESOURCE_EXHAUSTED,
              "too many tokens that were never let in are shown; try again"};
  }
  const grpc::Status answer = ask_(token);
  Learn(token, answer, is_known);
  return answer;
}

void MetricsAdmission::BeginSecond(int64_t now_ns) {
  if (now_ns - second_began_ns_ < kSecondNs) return;
  second_began_ns_ = now_ns;
  asked_ = logged_ = 0;
}

bool MetricsAdmission::MayAsk() {
  if (is_asking_ || asked_ >= kMostAsked) return false;
  ++asked_;
  return is_asking_ = true;
}

void MetricsAdmission::Learn(const std::string& token, const grpc::Status& answer, bool is_known) {
  const std::lock_guard lock(mutex_);
  const int64_t now_ns = clock_.MonotonicNs();
  if (!is_known) is_asking_ = false;
  if (answer.error_code() == grpc::StatusCode::UNAVAILABLE) {
    absent_ = {answer, now_ns + kAbsentNs};
    return;
  }
  if (!answer.ok()) {
    admitted_.erase(token);
    refused_[token] = {answer, now_ns + kRefusedNs};
    return;
  }
  admitted_[token] = now_ns;
  if (admitted_.size() > kMostAdmitted)
    admitted_.erase(std::ranges::min_element(admitted_, {}, [](const auto& known) { return known.second; }));
}

}  // namespace heddle::cluster
