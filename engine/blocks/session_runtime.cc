// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/session_runtime.h"

namespace heddle::engine {

SessionRuntime::SessionRuntime(const Program& program, const SessionOptions& options,
                               const SessionEnvironment& environment, ops::KernelContext& context)
    : options_(options),
      environment_(environment),
      context_(context),
      kernels_(program, options,
               environment.kernels != nullptr ? *environment.kernels : ops::CatalogKernels()),
      plans_(options.rank, options.ranks, environment.control),
      sources_(environment.states == nullptr ? nullptr
                                             : std::make_unique<Sources>(program, environment.files)),
      plan_records_(options.rank) {}

actor::Runtime& SessionRuntime::runtime() {
  std::lock_guard lock(mutex_);
  if (runtime_ == nullptr) {
    actor::RuntimeOptions options;
    options.rank = static_cast<uint32_t>(options_.rank);
    options.threads = options_.threads;
    options.times_acts = options_.times_operators;
    options.recorder = environment_.recorder;
    options.progress = environment_.progress;
    runtime_ = actor::Runtime::Create(options, kernels_, context_, environment_.link);
    if (!cancelled_.ok()) runtime_->Cancel(cancelled_);
  }
  return *runtime_;
}

void SessionRuntime::Show(const Plan& plan) {
  if (!environment_.observe_plan) return;
  std::lock_guard lock(mutex_);
  environment_.observe_plan(plan);
}

void SessionRuntime::Cancel(const Status& why) {
  std::lock_guard lock(mutex_);
  if (cancelled_.ok()) cancelled_ = why;
  if (runtime_ != nullptr) runtime_->Cancel(why);
}

}  // namespace heddle::engine
