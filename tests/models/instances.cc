// SPDX-License-Identifier: Apache-2.0
#include "tests/models/instances.h"

#include <utility>

#include "core/status.h"
#include "tests/simulation/plan_writer.h"

namespace heddle::actor {
namespace {

std::shared_ptr<const Plan> Made(const PlanWriter& writer, std::vector<int64_t> peak_bytes = {}) {
  Plan plan = writer.Finish();
  plan.peak_bytes = std::move(peak_bytes);
  return std::make_shared<const Plan>(std::move(plan));
}

// A source of `pieces`, two tasks and a sink, each with a thread of its own as far as there are threads.
std::shared_ptr<const Plan> Chain(int32_t slots, uint32_t threads, int64_t pieces) {
  PlanWriter writer(1);
  RegisterId made = writer.Output(writer.Add(TaskKind::kSource, 0, 0, {}, 1, pieces), slots);
  for (uint32_t task = 1; task < 3; ++task)
    made = writer.Output(writer.Add(TaskKind::kCompute, 0, task % threads, {made}), slots);
  writer.Add(TaskKind::kSink, 0, 3 % threads, {made});
  return Made(writer);
}

// One source, two ways, one sink.
std::shared_ptr<const Plan> Diamond(uint32_t threads, int64_t pieces) {
  PlanWriter writer(1);
  const RegisterId top = writer.Output(writer.Add(TaskKind::kSource, 0, 0, {}, 1, pieces));
  const RegisterId left = writer.Output(writer.Add(TaskKind::kCompute, 0, 0, {top}));
  const RegisterId right = writer.Output(writer.Add(TaskKind::kCompute, 0, 1 % threads, {top}));
  writer.Add(TaskKind::kSink, 0, 2 % threads, {left, right});
  return Made(writer);
}

// Two diamonds, of which the second uses the memory of the first: its source waits for the first sink. The
// guard edge lets the first source make the next piece only when the second sink is through with this one.
std::shared_ptr<const Plan> SharedDiamonds(bool is_ordered, bool is_guarded) {
  PlanWriter writer(1);
  size_t source[2], sink[2];
  for (size_t i = 0; i < 2; ++i) {
    const auto thread = static_cast<uint32_t>(i);
    source[i] = writer.Add(TaskKind::kSource, 0, thread, {}, 1, 2);
    const RegisterId top = writer.Output(source[i]);
    const RegisterId left = writer.Output(writer.Add(TaskKind::kCompute, 0, 0, {top}));
    const RegisterId right = writer.Output(writer.Add(TaskKind::kCompute, 0, 1, {top}));
    sink[i] = writer.Add(TaskKind::kSink, 0, thread, {left, right});
    for (const RegisterId id : {top, left, right}) writer.reg(id).bytes = 8;
  }
  if (is_ordered) {
    const RegisterId through = writer.ControlOutput(sink[0]);
    // A source with an edge acts at its rate all the same.
    writer.Control(through, source[1]);
  }
  if (is_guarded) writer.Control(writer.ControlOutput(source[0]), sink[1]);
  return Made(writer, {3 * 8});
}

// A -> accumulate -> repeat -> B and A -> B (runtime reference 2.11, T3).
std::shared_ptr<const Plan> Reconvergence(int32_t slots, TaskKind fewer, TaskKind more, int64_t pieces) {
  PlanWriter writer(1);
  const RegisterId direct = writer.Output(writer.Add(TaskKind::kSource, 0, 0, {}, 1, pieces), slots);
  const RegisterId few = writer.Output(writer.Add(fewer, 0, 1, {direct}, 2));
  const RegisterId again = writer.Output(writer.Add(more, 0, 1, {few}, 2));
  writer.Add(TaskKind::kSink, 0, 0, {again, direct});
  return Made(writer);
}

// One task of a rate behind the other.
std::shared_ptr<const Plan> Rates(TaskKind first, TaskKind second, int64_t pieces, bool with_other_reader) {
  PlanWriter writer(1);
  const RegisterId made = writer.Output(writer.Add(TaskKind::kSource, 0, 0, {}, 1, pieces));
  const RegisterId once = writer.Output(writer.Add(first, 0, 1, {made}, 2), 2);
  const RegisterId twice = writer.Output(writer.Add(second, 0, 0, {once}, 2));
  writer.Add(TaskKind::kSink, 0, 1, {twice});
  if (with_other_reader) writer.Add(TaskKind::kSink, 0, 0, {once});
  return Made(writer);
}

// A source on rank 0 whose value goes to rank 1 and back; all joined again on rank 0.
std::shared_ptr<const Plan> ThereAndBack(int64_t pieces, uint32_t network, uint32_t host) {
  PlanWriter writer(2);
  const RegisterId made = writer.Output(writer.Add(TaskKind::kSource, 0, 0, {}, 1, pieces), 2);
  const RegisterId there = writer.Output(writer.Add(TaskKind::kCopy, 1, network, {made}));
  const RegisterId half = writer.Output(writer.Add(TaskKind::kCompute, 1, 0, {there}));
  const RegisterId back = writer.Output(writer.Add(TaskKind::kCopy, 0, network, {half}));
  writer.Add(TaskKind::kSink, 0, host, {back, made});
  return Made(writer);
}

// One hop: a source on rank 0, a sink on rank 1.
std::shared_ptr<const Plan> OneHop(int64_t pieces, uint32_t network) {
  PlanWriter writer(2);
  const RegisterId made = writer.Output(writer.Add(TaskKind::kSource, 0, 0, {}, 1, pieces));
  writer.Add(TaskKind::kSink, 1, 0, {writer.Output(writer.Add(TaskKind::kCopy, 1, network, {made}))});
  return Made(writer);
}

// Every rank adds its own value to what it has got and hands that on, ranks - 1 times: a ring all-reduce.
std::shared_ptr<const Plan> Ring(uint32_t ranks, int64_t pieces, int32_t slots, uint32_t network) {
  PlanWriter writer(static_cast<int32_t>(ranks));
  std::vector<RegisterId> own, so_far(ranks), copied(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    own.push_back(writer.Output(writer.Add(TaskKind::kSource, rank, 0, {}, 1, pieces), slots));
  so_far = own;
  for (uint32_t step = 1; step < ranks; ++step) {
    for (uint32_t rank = 0; rank < ranks; ++rank)
      copied[rank] = writer.Output(
          writer.Add(TaskKind::kCopy, rank, network, {so_far[(rank + ranks - 1) % ranks]}), slots);
    for (uint32_t rank = 0; rank < ranks; ++rank)
      so_far[rank] = writer.Output(writer.Add(TaskKind::kCompute, rank, 0, {copied[rank], own[rank]}), slots);
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) writer.Add(TaskKind::kSink, rank, 0, {so_far[rank]});
  return Made(writer);
}

// Each of two ranks sends the other one value and then another that follows from what it has got; the first
// has another reader, so that its end comes late (tests/simulation, ExchangesTest).
std::shared_ptr<const Plan> Exchange(int other_readers, uint32_t network) {
  constexpr uint32_t kRanks = 2;
  PlanWriter writer(kRanks);
  const auto compute = [&](uint32_t rank, RegisterId input) {
    return writer.Output(writer.Add(TaskKind::kCompute, rank, 0, {input}));
  };
  const auto copy = [&](uint32_t rank, RegisterId input) {
    return writer.Output(writer.Add(TaskKind::kCopy, rank, network, {input}));
  };
  RegisterId first[kRanks], second[kRanks];
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const RegisterId source = writer.Output(writer.Add(TaskKind::kSource, rank, 0, {}));
    first[rank] = compute(rank, source);
    for (int reader = 0; reader < other_readers; ++reader) writer.Add(TaskKind::kSink, rank, 0, {source});
  }
  for (uint32_t rank = 0; rank < kRanks; ++rank) second[rank] = compute(rank, copy(rank, first[1 - rank]));
  for (uint32_t rank = 0; rank < kRanks; ++rank)
    writer.Add(TaskKind::kSink, rank, 0, {copy(rank, second[1 - rank])});
  return Made(writer);
}

// Tasks that make several of one and have no readers, beside one that has.
std::shared_ptr<const Plan> SpreadForNobody(int64_t pieces) {
  PlanWriter writer(1);
  const RegisterId made = writer.Output(writer.Add(TaskKind::kSource, 0, 0, {}, 1, pieces), 2);
  writer.Output(writer.Add(TaskKind::kRepeat, 0, 1, {made}, 2));
  writer.Output(writer.Add(TaskKind::kUnpack, 0, 0, {made}, 3));
  writer.Add(TaskKind::kSink, 0, 1, {made});
  return Made(writer);
}

// A pass of two panels that ends in a reduction, and another one over the same rows that reads its result
// (docs/streaming.md): what is unpacked on the thread of the disk has two slots, and the panels of both
// passes are in the same memory. The guard edge goes from what collects in the first to what spreads in the
// second.
std::shared_ptr<const Plan> TwoPasses(bool is_guarded) {
  constexpr uint32_t kComputes = 0, kReads = 1;
  constexpr int64_t kPanels = 2;
  PlanWriter writer(1);
  const RegisterId rows = writer.Output(writer.Add(TaskKind::kSource, 0, kComputes, {}));
  RegisterId spread[2];
  const auto unpack = [&](int pass) {
    const size_t task = writer.Add(TaskKind::kUnpack, 0, kReads, {rows}, kPanels);
    spread[pass] = writer.Output(task, 2);
    writer.reg(spread[pass]).bytes = 8;
    return task;
  };
  unpack(0);
  const RegisterId lists = writer.Output(writer.Add(TaskKind::kCompute, 0, kComputes, {spread[0]}));
  const size_t collects = writer.Add(TaskKind::kPack, 0, kComputes, {lists}, kPanels);
  const RegisterId sum =
      writer.Output(writer.Add(TaskKind::kCompute, 0, kComputes, {writer.Output(collects)}));
  const size_t spreads = unpack(1);
  const RegisterId sums = writer.Output(writer.Add(TaskKind::kRepeat, 0, kComputes, {sum}, kPanels));
  const RegisterId panels = writer.Output(writer.Add(TaskKind::kCompute, 0, kComputes, {spread[1], sums}));
  const size_t keeps = writer.Add(TaskKind::kAccumulate, 0, kReads, {panels}, kPanels);
  writer.Add(TaskKind::kSink, 0, kComputes, {writer.Output(keeps)});
  if (is_guarded) writer.Control(writer.ControlOutput(collects), spreads);
  return Made(writer, {2 * 8});
}

// Each rank reduces its panels, gets the list of the next rank and finishes both.
std::shared_ptr<const Plan> PassOfRanks(uint32_t ranks, int64_t panels, uint32_t network) {
  PlanWriter writer(static_cast<int32_t>(ranks));
  std::vector<RegisterId> lists;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const RegisterId rows = writer.Output(writer.Add(TaskKind::kSource, rank, 0, {}));
    const RegisterId panel = writer.Output(writer.Add(TaskKind::kUnpack, rank, 0, {rows}, panels), 2);
    lists.push_back(writer.Output(writer.Add(TaskKind::kPack, rank, 0, {panel}, panels)));
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const RegisterId other =
        writer.Output(writer.Add(TaskKind::kCopy, rank, network, {lists[(rank + 1) % ranks]}));
    writer.Add(TaskKind::kSink, rank, 0, {lists[rank], other});
  }
  return Made(writer);
}

// Two sources of different counts, or a period that is not filled: what the actors must call an error.
std::shared_ptr<const Plan> Unequal(bool within_period) {
  PlanWriter writer(1);
  const RegisterId two = writer.Output(writer.Add(TaskKind::kSource, 0, 0, {}, 1, within_period ? 3 : 2), 3);
  if (within_period) {
    writer.Add(TaskKind::kSink, 0, 0, {writer.Output(writer.Add(TaskKind::kAccumulate, 0, 1, {two}, 2))});
  } else {
    const RegisterId three = writer.Output(writer.Add(TaskKind::kSource, 0, 1, {}, 1, 3), 3);
    writer.Add(TaskKind::kSink, 0, 0, {two, three});
  }
  return Made(writer);
}

}  // namespace

std::vector<ModelInstance> ModelInstances() {
  constexpr TaskKind kAccumulate = TaskKind::kAccumulate, kRepeat = TaskKind::kRepeat,
                     kPack = TaskKind::kPack, kUnpack = TaskKind::kUnpack;
  return {
      {.name = "chain", .plans = {Chain(1, 2, 3)}, .launches = true},
      {.name = "chain_two_slots", .plans = {Chain(2, 2, 3)}, .launches = true},
      {.name = "chain_four_threads", .plans = {Chain(2, 4, 3)}, .launches = true},
      {.name = "diamond", .plans = {Diamond(2, 2)}, .launches = true},
      {.name = "diamond_three_threads", .plans = {Diamond(3, 3)}, .launches = true},
      {.name = "shared_diamonds", .plans = {SharedDiamonds(true, true)}, .launches = true},
      {.name = "shared_diamonds_without_order", .plans = {SharedDiamonds(false, true)}, .breaks_by = "I8"},
      {.name = "shared_diamonds_without_guard", .plans = {SharedDiamonds(true, false)}, .breaks_by = "I8"},
      {.name = "reconvergence_one_slot",
       .plans = {Reconvergence(1, kAccumulate, kRepeat, 4)},
       .must_stall = true},
      {.name = "reconvergence", .plans = {Reconvergence(2, kAccumulate, kRepeat, 4)}, .launches = true},
      {.name = "reconvergence_of_packs", .plans = {Reconvergence(2, kPack, kUnpack, 4)}, .launches = true},
      {.name = "repeat_into_accumulate", .plans = {Rates(kRepeat, kAccumulate, 2, true)}, .launches = true},
      {.name = "pack_and_unpack", .plans = {Rates(kPack, kUnpack, 4, true)}, .launches = true},
      {.name = "unpack_and_pack", .plans = {Rates(kUnpack, kPack, 2, false)}, .launches = true},
      {.name = "spread_for_nobody", .plans = {SpreadForNobody(2)}, .launches = true},
      {.name = "two_passes", .plans = {TwoPasses(true)}},
      {.name = "two_passes_without_guard", .plans = {TwoPasses(false)}, .breaks_by = "I8"},
      {.name = "two_passes_on_the_device", .plans = {TwoPasses(true)}, .launches = true},
      {.name = "two_passes_cancelled", .plans = {TwoPasses(true)}, .trouble = Trouble::kCancel},
      {.name = "two_passes_failing",
       .plans = {TwoPasses(true)},
       .launches = true,
       .trouble = Trouble::kFailingKernel},
      {.name = "pass_of_two_ranks", .plans = {PassOfRanks(2, 2, 0)}},
      {.name = "pass_of_three_ranks", .plans = {PassOfRanks(3, 2, 0)}, .is_quick = false},
      {.name = "pass_of_two_ranks_cancelled",
       .plans = {PassOfRanks(2, 2, 0)},
       .trouble = Trouble::kCancel,
       .is_quick = false},
      {.name = "unequal_counts", .plans = {Unequal(false)}, .breaks_by = "has input left"},
      {.name = "unequal_period", .plans = {Unequal(true)}, .breaks_by = "ended after 3 acts"},
      {.name = "there_and_back", .plans = {ThereAndBack(2, 1, 0)}},
      {.name = "ring", .plans = {Ring(2, 2, 2, 0)}},
      {.name = "ring_of_three_one_slot", .plans = {Ring(3, 1, 1, 0)}, .is_quick = false},
      {.name = "ring_of_three", .plans = {Ring(3, 1, 2, 0)}, .is_quick = false},
      {.name = "two_runs", .plans = {OneHop(1, 0)}, .runs = 2},
      {.name = "two_plans", .plans = {OneHop(1, 1), OneHop(2, 1)}},
      {.name = "two_plans_on_one_thread", .plans = {Chain(1, 2, 1), Diamond(2, 1)}},
      {.name = "exchange", .plans = {Exchange(1, 0)}, .acks_wait = true},
      {.name = "exchange_with_more_readers", .plans = {Exchange(3, 0)}, .acks_wait = true, .is_quick = false},
      {.name = "exchange_on_two_threads", .plans = {Exchange(5, 1)}, .acks_wait = true, .is_quick = false},
      {.name = "cancel", .plans = {OneHop(2, 0)}, .runs = 2, .launches = true, .trouble = Trouble::kCancel},
      {.name = "cancel_on_two_threads", .plans = {OneHop(2, 1)}, .trouble = Trouble::kCancel},
      {.name = "failing_kernel",
       .plans = {Diamond(2, 2)},
       .launches = true,
       .trouble = Trouble::kFailingKernel},
      {.name = "failing_kernel_of_two_ranks",
       .plans = {OneHop(2, 0)},
       .runs = 2,
       .launches = true,
       .trouble = Trouble::kFailingKernel},
      {.name = "cancel_there_and_back",
       .plans = {ThereAndBack(1, 0, 0)},
       .launches = true,
       .trouble = Trouble::kCancel,
       .is_quick = false},
      {.name = "said_twice", .plans = {Chain(2, 2, 2)}, .launches = true, .trouble = Trouble::kTwice},
      {.name = "said_twice_by_a_rank", .plans = {OneHop(2, 0)}, .trouble = Trouble::kTwice},
      {.name = "lost_rank", .plans = {ThereAndBack(1, 0, 0)}, .trouble = Trouble::kLostRank},
      {.name = "lost_rank_of_three",
       .plans = {Ring(3, 1, 1, 0)},
       .trouble = Trouble::kLostRank,
       .is_quick = false},
  };
}

}  // namespace heddle::actor
