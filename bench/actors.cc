// SPDX-License-Identifier: Apache-2.0
#include "bench/actors.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "actor/in_process_link.h"
#include "actor/mailbox.h"
#include "actor/runtime.h"
#include "bench/base/probe.h"
#include "core/memory/counted_heap.h"

namespace heddle::bench {
namespace {

constexpr int64_t kPieces = 10'000;  // That a source makes in a run.
constexpr int kChain = 8;            // Tasks with an empty kernel behind it.
constexpr int kRuns = 2'000;
constexpr int kHandOffs = 4'000;
constexpr int kRoundsEach = 10;  // Short ones, for some of them to be quiet.
constexpr int64_t kForeverNs = 60'000'000'000;

class EmptyKernels : public ops::KernelSource {
 public:
  Status Run(const ops::KernelCall& call, std::span<Value> results) const override {
    results[0] = *call.inputs[0];
    return OkStatus();
  }
};

// x -> "pass" -> ... -> y, one slot a register. Task i runs on the stream `stream_of(i)`.
template <typename StreamOf>
std::shared_ptr<const Plan> Chain(const ValueInfo& info, int length, int64_t pieces,
                                  const StreamOf& stream_of) {
  auto plan = std::make_shared<Plan>();
  plan->key = 1;
  std::vector<uint32_t> next_index(plan->streams.size(), 0);
  for (int i = 0; i < length + 2; ++i) {
    const bool is_last = i == length + 1;
    Node node;
    node.op = i == 0 ? "variable" : is_last ? "assign" : "pass";
    if (i == 0 || is_last) node.SetAttribute("name", Scalar(std::string(i == 0 ? "x" : "y")));
    if (i > 0) node.inputs = {plan->graph.size() - 1};
    node.info = info;
    const StreamKind stream = stream_of(i);
    Task task;
    task.id = TaskId::Make(0, static_cast<uint32_t>(stream), next_index[static_cast<size_t>(stream)]++);
    task.kind = i == 0                           ? TaskKind::kSource
                : is_last                        ? TaskKind::kSink
                : stream == StreamKind::kNetwork ? TaskKind::kCopy
                                                 : TaskKind::kCompute;
    task.node = plan->graph.Add(std::move(node));
    task.count = i == 0 ? pieces : 1;
    if (i > 0) {
      task.consumed = {i - 1};
      plan->registers[static_cast<size_t>(i - 1)].consumers = {task.id};
    }
    if (!is_last) {
      Register output;
      output.id = i;
      output.producer = task.id;
      output.info = info;
      task.produced = {i};
      plan->registers.push_back(std::move(output));
    }
    plan->tasks.push_back(std::move(task));
  }
  return plan;
}

std::shared_ptr<const Plan> ChainOnOneThread(const ValueInfo& info, int length, int64_t pieces) {
  return Chain(info, length, pieces, [](int) { return StreamKind::kCompute; });
}

[[noreturn]] void Stop(const Status& status) {
  std::fprintf(stderr, "heddle-bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

// A runtime of one rank and the runs that it has made.
class Runs {
 public:
  explicit Runs(actor::Link* link = nullptr)
      : runtime_(actor::Runtime::Create({.threads = 1}, kernels_, context_, link)) {}

  void Run(const std::shared_ptr<const Plan>& plan, const Value& x) {
    const Result<actor::RunResult> result = runtime_->Run(plan, ++runs_, {{"x", x}});
    if (!result.ok()) Stop(result.status());
  }

 private:
  EmptyKernels kernels_;
  ops::KernelContext context_;
  std::unique_ptr<actor::Runtime> runtime_;
  uint32_t runs_ = 0;
};

// READY and ACK of one act, through nothing but a ring of messages, with an empty kernel.
void PassThroughRing(int64_t acts) {
  const EmptyKernels kernels;
  const ops::KernelSource& source = kernels;
  ops::KernelContext context;
  Node node;
  const Value value(1.0);
  const Value* const inputs[] = {&value};
  Value result;
  std::vector<actor::Message> ring(64);
  size_t head = 0, tail = 0;
  for (int64_t act = 0; act < acts; ++act) {
    for (const actor::MessageType type : {actor::MessageType::kReady, actor::MessageType::kAck}) {
      ring[tail++ & 63] = {.sequence = static_cast<uint32_t>(act), .type = type};
      const actor::Message message = ring[head++ & 63];
      if (message.type != actor::MessageType::kReady) continue;
      const Status status = source.Run(
          {.node = node, .phase = Phase::kWhole, .inputs = inputs, .input_infos = {}, .context = context},
          {&result, 1});
      if (!status.ok()) Stop(status);
    }
  }
}

// There and back `count` times; `wait(there)` returns when the other side has called `wake(there)`.
template <typename Wake, typename Wait>
void PlayPingPong(int count, const Wake& wake, const Wait& wait) {
  std::thread other([&] {
    for (int i = 0; i < count; ++i) {
      wait(false);
      wake(true);
    }
  });
  for (int i = 0; i < count; ++i) {
    wake(false);
    wait(true);
  }
  other.join();
}

void HandOverByFutex(int count) {
  std::atomic<uint32_t> words[2] = {0, 0};
  const auto address = [&](bool back) { return reinterpret_cast<uint32_t*>(&words[back]); };
  PlayPingPong(
      count,
      [&](bool back) {
        words[back].store(1);
        syscall(SYS_futex, address(back), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
      },
      [&](bool back) {
        while (words[back].exchange(0) == 0)
          syscall(SYS_futex, address(back), FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
      });
}

void HandOverByMailbox(int count) {
  actor::Mailbox boxes[2];
  std::vector<actor::Message> taken[2];
  PlayPingPong(
      count, [&](bool back) { boxes[back].Post({.type = actor::MessageType::kReady}); },
      [&](bool back) {
        taken[back].clear();
        while (!boxes[back].Take(&taken[back])) boxes[back].Wait(actor::HandOverNs(), kForeverNs);
      });
}

// What one thread does is measured in its processor time: neighbours do not count.
double ThreadTime(const std::function<void()>& work) {
  const auto now_ns = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
  };
  const double begin_ns = now_ns();
  work();
  return (now_ns() - begin_ns) / 1e6;
}

class Report {
 public:
  explicit Report(const BenchOptions& options) : options_(options) {}

  // `own` takes turns with `other`, each of `count` steps; `time` gives the milliseconds of either.
  void Compare(const char* name, int64_t count, double (*time)(const std::function<void()>&),
               const std::function<void()>& own, const char* other_name,
               const std::function<void()>& other) const {
    if (std::string(name).find(options_.only) == std::string::npos) return;
    double own_ms = std::numeric_limits<double>::infinity(), other_ms = own_ms;
    int64_t allocations = 0;
    own();  // What is made once is made.
    for (int round = 0; round < kRoundsEach * options_.rounds; ++round) {
      const int64_t before = HeapAllocations();
      own_ms = std::min(own_ms, time(own));
      allocations = HeapAllocations() - before;
      other_ms = std::min(other_ms, time(other));
    }
    const double steps = static_cast<double>(count), own_ns = own_ms * 1e6 / steps,
                 other_ns = other_ms * 1e6 / steps;
    std::printf(
        options_.json
            ? "{\"bench\":\"actors\",\"case\":\"%s\",\"ns\":%.1f,\"allocations\":%.4f,\"beside\":\"%s\","
              "\"beside_ns\":%.1f,\"ratio\":%.2f}\n"
            : "%-34s %9.1f ns  %8.4f allocations  beside %-34s %9.1f ns  ratio %6.2f\n",
        name, own_ns, static_cast<double>(allocations) / steps, other_name, other_ns, own_ns / other_ns);
    std::fflush(stdout);
  }

 private:
  const BenchOptions& options_;
};

}  // namespace

int RunActors(const BenchOptions& options) {
  const Report report(options);
  const ValueInfo scalar = ValueInfo::OfScalar(ValueType::kDouble);
  const ValueInfo matrix = ValueInfo::OfMatrix({10, 10});
  const Value number(1.0);
  Result<Matrix> cells = Matrix::Dense(10, 10);
  if (!cells.ok()) Stop(cells.status());
  const Value matrix_value(*std::move(cells));
  const int64_t acts = kPieces * (kChain + 2);
  Runs runs;
  const auto ring = [acts] { PassThroughRing(acts); };
  const auto numbers = ChainOnOneThread(scalar, kChain, kPieces);
  report.Compare(
      "act", acts, ThreadTime, [&] { runs.Run(numbers, number); }, "two messages through a ring", ring);
  const auto matrices = ChainOnOneThread(matrix, kChain, kPieces);
  Runs matrix_runs;
  report.Compare(
      "act on a matrix", acts, ThreadTime, [&] { matrix_runs.Run(matrices, matrix_value); },
      "two messages through a ring", ring);
  const auto brief = ChainOnOneThread(scalar, 1, 1);
  Runs brief_runs;
  report.Compare(
      "run of three tasks", kRuns, ThreadTime,
      [&] {
        for (int i = 0; i < kRuns; ++i) brief_runs.Run(brief, number);
      },
      "six messages through a ring", [] { PassThroughRing(int64_t{3} * kRuns); });
  const auto futex = [] { HandOverByFutex(kHandOffs / 2); };
  report.Compare(
      "hand-off by a mailbox", kHandOffs, Time, [] { HandOverByMailbox(kHandOffs / 2); }, "a futex", futex);
  // The thread of the run and that of the network stream in turns: one READY and one ACK a piece.
  actor::InProcessNetwork network(1);
  Runs crossing(&network.LinkOf(0));
  const auto across = Chain(scalar, 1, kHandOffs / 2,
                            [](int task) { return task == 1 ? StreamKind::kNetwork : StreamKind::kCompute; });
  report.Compare(
      "hand-off between streams", kHandOffs, Time, [&] { crossing.Run(across, number); }, "a futex", futex);
  return 0;
}

}  // namespace heddle::bench
