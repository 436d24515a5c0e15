// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/models/world.h"

namespace heddle::actor {

/// The model of a world in Promela: a process for each thread of each rank, one for each rank's runtime, one
/// for what goes wrong; every event is an option of its process. What an event does is the code of actors
/// itself, which is called, and the whole state is a variable of the model. With `with_progress` it has the
/// property p3 (every history comes to its end), to be checked under weak fairness.
std::string PromelaOf(const World& world, const std::string& name, bool with_progress);

/// The world that the functions which a model calls are about; nullptr: none.
void SetWorldOfModel(World* world);

}  // namespace heddle::actor
