// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actor/link.h"
#include "core/programs/plan.h"
#include "core/programs/program.h"
#include "core/status.h"
#include "engine/session/rank_record.h"
#include "engine/session/statistics.h"
#include "engine/variables/random_seeds.h"
#include "engine/variables/session_options.h"
#include "engine/variables/variables.h"
#include "ops/base/kernel.h"
#include "ops/panels/panel_store.h"

namespace heddle {
class ProgressBoard;
}

namespace heddle::engine {

class ControlChannel;
class CheckpointStore;
class StateTaker;

/// What a program begins with that goes on with the variables of others (Program::given), and what it leaves.
struct SessionVariables {
  VariableTable frame;
  std::optional<RandomSeeds::Scope> seeds;  ///< Where the draws of the programs before have come to.
};

/// What a session needs of the process it lives in. All outlive the session.
struct SessionEnvironment {
  ops::Files* files = nullptr;
  Clock* clock = nullptr;
  std::function<void(std::string_view text)> print;  ///< Standard output of the script; rank 0 only.
  const ops::KernelSource* kernels = nullptr;        ///< nullptr: the catalog's.
  actor::Link* link = nullptr;                       ///< nullptr with one rank.
  ControlChannel* control = nullptr;                 ///< nullptr with one rank.
  std::function<void(const Plan& plan)>
      observe_plan;              ///< Called for every plan this rank makes or receives; may be empty.
  StateTaker* states = nullptr;  ///< Takes its states between two steps; nullptr: nobody does.
  /// Where its panels are; it outlives the variables of the session. nullptr: the session has a store of its
  /// own, and leaves no panels in `variables`.
  ops::PanelStore* panels = nullptr;
  Recorder* recorder = nullptr;       ///< Of all that runs; nullptr: nothing is recorded.
  ProgressBoard* progress = nullptr;  ///< Told what the session is at; nullptr: nobody looks.
  /// Run() begins with them, and puts what it leaves there if it ends well. nullptr: it begins with none.
  SessionVariables* variables = nullptr;
};

/// One rank's run of a program: replicated control program, variables, plan cache (runtime reference 4.3).
/// Every rank of a job runs a session of the same program and options; they meet in plans and decisions only.
class Session {
 public:
  virtual ~Session() = default;
  /// Cheap: threads start with the first plan (with one rank).
  static std::unique_ptr<Session> Create(const SessionOptions& options, Program program,
                                         const SessionEnvironment& environment);

  /// How fast the ranks reach each other, the same on every rank. Before Run; plans go by what the options
  /// say without it.
  virtual void SetLinks(const ops::LinkRates& links) = 0;
  /// Runs the main program to its end; once. Errors carry the place in the script.
  virtual Status Run() = 0;
  /// The same from a checkpoint of a session of the same program, on `ranks_before` ranks, instead of from
  /// the beginning: what that one has done is not done again. Every rank resumes the same one. Beside the
  /// errors of Run: kDataLoss and those of the store where it cannot be read, kAborted where a file that its
  /// variables come from has changed since, kFailedPrecondition where it is of another program.
  virtual Status Resume(const std::string& checkpoint, int ranks_before, CheckpointStore& store) = 0;
  /// After Resume(): the checkpoint was there and of use.
  virtual bool has_resumed() const = 0;
  /// Ends Run() with `why` soon. Any thread, returns at once.
  virtual void Cancel(Status why) = 0;
  /// Where the link delivers what other ranks send.
  virtual actor::LinkHandler* handler() = 0;
  /// True when Run() failed for a reason that began on this rank, not because another rank or the launcher
  /// said so.
  virtual bool own_cause() const = 0;
  /// After Run().
  virtual const SessionStatistics& statistics() const = 0;
  /// The same, with a recorder.
  virtual RankRecord record() const = 0;
};

}  // namespace heddle::engine
