// SPDX-License-Identifier: Apache-2.0
#include "engine/control/local_run.h"

#include <memory>
#include <optional>

#include "core/environment/clock.h"
#include "core/environment/random.h"
#include "core/environment/recorder.h"
#include "core/memory/memory_budget.h"
#include "engine/session/limit_of_run.h"
#include "ops/io/files/files.h"

namespace heddle::engine {
namespace {

// What a run consists of. Rows of a variable that it leaves may still be made by it when it has ended.
struct Home {
  std::unique_ptr<ops::Files> files;
  std::optional<Recorder> recorder;
  std::unique_ptr<Session> session;
};

}  // namespace

ops::FileRoots RootsOfRun() {
  ops::FileRoots roots;
  roots.own_folders = ops::FileRoots::OwnFolders::kClosedToOther;
  return roots;
}

RunOutcome RunLocally(const Program& program, SessionOptions options, const RunSurroundings& surroundings) {
  options.rank = 0;
  options.ranks = 1;
  if (options.seed == -1) options.seed = static_cast<int64_t>(SystemRandom().Next() >> 11);
  const LimitOfRun limit(options.memory_bytes);
  if (options.memory_bytes == 0) options.available_bytes = MemoryBudget::Process().limit();

  const auto home = std::make_shared<Home>();
  home->files = ops::MakeFiles(surroundings.directory, nullptr, RootsOfRun());
  SessionEnvironment environment;
  environment.files = home->files.get();
  environment.clock = &SystemClock();
  environment.print = surroundings.print;
  environment.variables = surroundings.variables;
  environment.panels = surroundings.panels;
  if (surroundings.show_plan)
    environment.observe_plan = [&](const Plan& plan) { surroundings.show_plan(plan.ToText()); };
  if (options.recorded_events > 0) {
    home->recorder.emplace(*environment.clock, options.recorded_events);
    options.times_operators = true;
    environment.recorder = &*home->recorder;
  }
  environment.progress = surroundings.progress;
  home->session = Session::Create(options, program, environment);
  Session* const session = home->session.get();
  if (surroundings.panels != nullptr) surroundings.panels->SetHome(home);
  if (surroundings.cancellation != nullptr)
    surroundings.cancellation->Listen([&](const Status& why) { session->Cancel(why); });
  RunOutcome outcome;
  outcome.status = session->Run();
  if (surroundings.panels != nullptr) surroundings.panels->SetHome(nullptr);
  if (surroundings.cancellation != nullptr) surroundings.cancellation->Listen(nullptr);
  outcome.statistics.push_back(session->statistics());
  if (home->recorder) outcome.records.push_back(session->record());
  return outcome;
}

}  // namespace heddle::engine
