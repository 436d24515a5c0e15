// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/plan_cache.h"

#include "engine/session/control_channel.h"
#include "engine/wire/value_wire.h"

namespace heddle::engine {
namespace {

// A decision of rank 0 as text: one line of fixed fields, the trace, then the body.
struct Decision {
  // 'p' plan, 'f' the plan cannot be made (body: status), 's' a shared text, 'c' compare only
  char kind = 'c';
  uint64_t key = 0;
  uint64_t hash = 0;
  int64_t steps = 0;
  std::string trace;
  std::string body;
};

std::string Encode(const Decision& decision) {
  return fmt::format("{} {:x} {:x} {} {}\n{}\n{}", decision.kind, decision.key, decision.hash, decision.steps,
                     decision.trace.size(), decision.trace, decision.body);
}

Result<Decision> Decode(const std::string& text) {
  Decision decision;
  unsigned long long key = 0;
  unsigned long long hash = 0;
  long long steps = 0;
  unsigned long long trace = 0;
  const size_t line = text.find('\n');
  if (line == std::string::npos ||
      std::sscanf(text.c_str(), "%c %llx %llx %lld %llu", &decision.kind, &key, &hash, &steps, &trace) != 5 ||
      trace > text.size() || line + 2 + trace > text.size())
    return Internal("a decision of rank 0 arrived malformed");
  decision.key = key;
  decision.hash = hash;
  decision.steps = steps;
  decision.trace = text.substr(line + 1, trace);
  decision.body = text.substr(line + 2 + trace);
  return decision;
}

Decision Describe(char kind, uint64_t key, const DivergenceGuard& guard) {
  return {kind, key, guard.hash(), guard.steps(), guard.Trace(), ""};
}

Status CheckAgreement(int rank, const Decision& theirs, char kind, uint64_t key,
                      const DivergenceGuard& guard) {
  const bool same_kind = theirs.kind == kind || (kind == 'p' && theirs.kind == 'f');
  if (same_kind && theirs.key == key && theirs.hash == guard.hash() && theirs.steps == guard.steps())
    return OkStatus();
  return Internal("ranks disagree about the course of the script")
      .WithNote(fmt::format("rank 0, step {}, next plan {:x}: {}", theirs.steps, theirs.key, theirs.trace))
      .WithNote(fmt::format("rank {}, step {}, next plan {:x}: {}", rank, guard.steps(), key, guard.Trace()));
}

}  // namespace

Status PlanCache::AddText(const std::string& text) {
  HEDDLE_ASSIGN_OR_RETURN(Plan plan, Plan::Parse(text));
  const std::lock_guard lock(mutex_);
  if (plan.ranks != ranks_)
    return Internal("a plan for {} ranks was delivered to a job of {}", plan.ranks, ranks_);
  Insert(std::make_shared<const Plan>(std::move(plan)), /*is_precompiled=*/true);
  return OkStatus();
}

void PlanCache::Insert(std::shared_ptr<const Plan> plan, bool is_precompiled) {
  const uint64_t key = plan->key;
  const int64_t columns = ColumnsOfFrames(*plan);
  if (plans_.Find(key) == nullptr) plans_.Add(key, {std::move(plan), is_precompiled}, columns);
}

Result<std::shared_ptr<const Plan>> PlanCache::Obtain(uint64_t key, const DivergenceGuard& guard,
                                                      const std::function<Result<Plan>()>& make,
                                                      bool* is_new) {
  const std::lock_guard lock(mutex_);
  if (is_new != nullptr) *is_new = false;
  if (Entry* const found = plans_.Find(key)) {
    ++hits_;
    if (std::exchange(found->is_unused_precompiled, false)) ++precompiled_;
    return found->plan;
  }
  ++misses_;
  if (is_new != nullptr) *is_new = true;
  Result<Plan> made = rank_ == 0 ? MakeAndSend(key, guard, make) : ReceivePlan(key, guard);
  HEDDLE_RETURN_IF_ERROR(made.status());
  auto plan = std::make_shared<const Plan>(*std::move(made));
  Insert(plan, /*is_precompiled=*/false);
  return plan;
}

Result<Plan> PlanCache::MakeAndSend(uint64_t key, const DivergenceGuard& guard,
                                    const std::function<Result<Plan>()>& make) {
  Result<Plan> plan = make();
  if (plan.ok()) {
    plan->key = key;
  } else {
    plan = plan.status().OnEveryRank();  // They are told.
  }
  if (ranks_ > 1) {
    Decision decision = Describe(plan.ok() ? 'p' : 'f', key, guard);
    decision.body = plan.ok() ? plan->ToText() : EncodeStatus(plan.status());
    control_->Broadcast(Encode(decision));
  }
  return plan;
}

Result<Plan> PlanCache::ReceivePlan(uint64_t key, const DivergenceGuard& guard) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, control_->Receive());
  HEDDLE_ASSIGN_OR_RETURN(const Decision decision, Decode(text));
  HEDDLE_RETURN_IF_ERROR(CheckAgreement(rank_, decision, 'p', key, guard));
  if (decision.kind == 'f') {
    Status failure;
    HEDDLE_RETURN_IF_ERROR(DecodeStatus(decision.body, &failure));
    return failure.ok() ? Internal("rank 0 could not make a plan and did not say why")
                        : failure.OnEveryRank();
  }
  return Plan::Parse(decision.body);
}

Result<std::string> PlanCache::Share(uint64_t key, const DivergenceGuard& guard,
                                     const std::function<std::string()>& make) {
  const std::lock_guard lock(mutex_);
  if (rank_ != 0) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, control_->Receive());
    HEDDLE_ASSIGN_OR_RETURN(Decision decision, Decode(text));
    HEDDLE_RETURN_IF_ERROR(CheckAgreement(rank_, decision, 's', key, guard));
    return std::move(decision.body);
  }
  std::string body = make();
  if (ranks_ > 1) {
    Decision decision = Describe('s', key, guard);
    decision.body = body;
    control_->Broadcast(Encode(decision));
  }
  return body;
}

Status PlanCache::Compare(const DivergenceGuard& guard) {
  if (ranks_ == 1) return OkStatus();
  const std::lock_guard lock(mutex_);
  if (rank_ == 0) {
    control_->Broadcast(Encode(Describe('c', 0, guard)));
    return OkStatus();
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::string text, control_->Receive());
  HEDDLE_ASSIGN_OR_RETURN(const Decision decision, Decode(text));
  return CheckAgreement(rank_, decision, 'c', 0, guard);
}

}  // namespace heddle::engine
