// SPDX-License-Identifier: Apache-2.0
#include "tests/models/promela.h"

#include <cstdio>
#include <cstdlib>

namespace heddle::actor {
namespace {

World* world_of_model = nullptr;
bool prints = false;

}  // namespace

std::string PromelaOf(const World& world, const std::string& name, bool with_progress) {
  std::string text = fmt::format(
      "/* The protocol of actors, instance {0}: {1} events. Made by tests/models/promela.cc. */\n"
      "c_decl {{\n"
      "  extern unsigned char heddle_state[];\n"
      "  extern int HeddleCan(int event);\n"
      "  extern int HeddleDo(int event);\n"
      "  extern int HeddleIsOver(void);\n"
      "}};\n"
      "c_track \"heddle_state\" \"{2}\"\n"
      "bool broken = false;  /* Something has happened that must not: p2, p4, p5, p6. */\n"
      "bool over = false;    /* Every rank that lives has ended its last run. */\n\n",
      name, world.events().size(), world.most_bytes());
  for (size_t process = 0; process < world.processes().size(); ++process) {
    text += fmt::format("active proctype p{}() {{ /* {} */\n  do\n", process, world.processes()[process]);
    for (size_t event = 0; event < world.events().size(); ++event) {
      if (world.events()[event].process != static_cast<int>(process)) continue;
      text += fmt::format(
          "  :: d_step {{ c_expr {{ (HeddleCan({0}) > 0) }} -> "
          "c_code {{ now.broken = !HeddleDo({0}); now.over = "
          "HeddleIsOver(); }}; assert(!broken) }} /* {1} */\n",
          event, world.events()[event].text);
    }
    // p1: who waits at any other place when nothing can happen any more is an invalid end state.
    text += "  :: over -> break\n  od\n}\n\n";
  }
  if (with_progress) text += "ltl comes_to_its_end { <> over }\n";
  return text;
}

void SetWorldOfModel(World* world) {
  world_of_model = world;
  prints = std::getenv("HEDDLE_TRAIL") != nullptr;
}

}  // namespace heddle::actor

// What a model calls, from the code that SPIN makes of it.
extern "C" {

[[gnu::visibility("default")]] unsigned char heddle_state[1 << 16];

[[gnu::visibility("default")]] int HeddleCan(int event) {
  heddle::actor::world_of_model->Load(heddle_state);
  return heddle::actor::world_of_model->Can(static_cast<size_t>(event));
}

[[gnu::visibility("default")]] int HeddleDo(int event) {
  heddle::actor::World& world = *heddle::actor::world_of_model;
  world.Load(heddle_state);
  const bool is_right = world.Do(static_cast<size_t>(event));
  world.Save(heddle_state);
  if (heddle::actor::prints) std::printf("%s\n", world.events()[static_cast<size_t>(event)].text.c_str());
  if (!is_right) std::printf("broken: %s\n", world.why().c_str());
  if (heddle::actor::prints || !is_right) std::fflush(stdout);
  return is_right;
}

[[gnu::visibility("default")]] int HeddleIsOver() { return heddle::actor::world_of_model->IsOver(); }
}
