// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/programs/plan.h"

namespace heddle::scheduler {

/// Gives a plan in panels, in which each operator on `device` copies within its acts what it reads and makes,
/// tasks that do so on the streams of copies, and registers in the memory of the device:
///
///   what the host makes             is copied there once an act, for all operators of a pass that read it
///   a whole value that a pass       is copied there once, and repeated there
///     reads at each of its acts
///   what an operator of the         stays there for others; where the host reads it, it is copied back once
///     device makes                  an act
///
/// Registers of a pass have two slots there, so that one panel is copied in while another is computed with
/// and a third copied back.
///
/// Needs: a plan as InPanels makes it, all of whose registers are in the memory of the host. Keeps: order and
/// passes. Slots beyond these, memory and liveness come afterwards.
void CopyPanels(Plan* plan, Device device);

}  // namespace heddle::scheduler
