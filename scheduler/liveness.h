// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/programs/plan.h"

namespace heddle::scheduler {

/// Plays the token game on the plan (runtime reference 2.11, T1-T3): every task acts as often as its rates
/// say, each act needing a filled slot on every consumed register and a free slot on every produced one. The
/// net is a marked graph with rates, so one order of acts decides for all interleavings: if this one
/// finishes, every one does.
///
/// kInternal, naming tasks and registers, when rates contradict each other, when the graph has a cycle, or
/// when some register has too few slots. O(acts * registers of a task).
Status CheckLive(const Plan& plan);

/// Raises Register::slots from 1 until CheckLive holds, adding a slot where the game is blocked for want of
/// one. kInternal when no number of slots helps (rates contradict, cycle).
Status AssignSlots(Plan* plan);

}  // namespace heddle::scheduler
