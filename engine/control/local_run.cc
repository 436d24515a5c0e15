// SPDX-License-Identifier: Apache-2.0
#include "engine/control/local_run.h"

#include <optional>

#include "core/environment/clock.h"
#include "core/environment/random.h"
#include "core/environment/recorder.h"
#include "core/memory/memory_budget.h"
#include "ops/io/files/files.h"

namespace heddle::engine {

ops::FileRoots RootsOfRun() {
  ops::FileRoots roots;
  roots.own_folders = ops::FileRoots::OwnFolders::kClosedToOther;
  return roots;
}

RunOutcome RunLocally(const Program& program, SessionOptions options, const RunSurroundings& surroundings) {
  options.rank = 0;
  options.ranks = 1;
  if (options.seed == -1) options.seed = static_cast<int64_t>(SystemRandom().Next() >> 11);
  if (options.memory_bytes > 0) MemoryBudget::Process().SetLimit(options.memory_bytes);

  const std::unique_ptr<ops::Files> files = ops::MakeFiles(surroundings.directory, nullptr, RootsOfRun());
  SessionEnvironment environment;
  environment.files = files.get();
  environment.clock = &SystemClock();
  environment.print = surroundings.print;
  environment.variables = surroundings.variables;
  if (surroundings.show_plan)
    environment.observe_plan = [&](const Plan& plan) { surroundings.show_plan(plan.ToText()); };
  std::optional<Recorder> recorder;
  if (options.recorded_events > 0) {
    recorder.emplace(*environment.clock, options.recorded_events);
    options.times_operators = true;
    environment.recorder = &*recorder;
  }
  environment.progress = surroundings.progress;
  const std::unique_ptr<Session> session = Session::Create(options, program, environment);
  if (surroundings.cancellation != nullptr)
    surroundings.cancellation->Listen([&](const Status& why) { session->Cancel(why); });
  RunOutcome outcome;
  outcome.status = session->Run();
  if (surroundings.cancellation != nullptr) surroundings.cancellation->Listen(nullptr);
  outcome.statistics.push_back(session->statistics());
  if (recorder) outcome.records.push_back(session->record());
  return outcome;
}

}  // namespace heddle::engine
