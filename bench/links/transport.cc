// SPDX-License-Identifier: Apache-2.0
#include "bench/links/transport.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/base/probe.h"
#include "bench/links/all_reduce.h"
#include "bench/links/peer_process.h"
#include "cluster/executor/line_channel.h"
#include "cluster/link/grpc_link.h"
#include "cluster/network/loopback.h"
#include "cluster/security/token.h"
#include "core/environment/clock.h"
#include "core/environment/descriptor.h"

namespace heddle::bench {
namespace {

constexpr int64_t kSizes[] = {64, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20};
constexpr int64_t kWindow = 4;                        // Pulls under way, and values that are kept.
constexpr int64_t kSourceBytes = int64_t{128} << 20;  // More than caches hold, in values of one size.
constexpr int64_t kMostSources = 256;
constexpr int64_t kRoundBytes = int64_t{512} << 20;
constexpr int64_t kMostPulls = 2'000;  // Of a round.
constexpr int kMessages = 1'000;
constexpr int kMeasurer = 0;  // Ranks, and the processors that they are pinned to.
constexpr int kPeer = 1;

int64_t SourcesOf(int64_t bytes) { return std::clamp(kSourceBytes / bytes, int64_t{2}, kMostSources); }
int64_t PullsOf(int64_t bytes) { return std::clamp(kRoundBytes / bytes, int64_t{8}, kMostPulls); }

Matrix Filled(int64_t bytes) {
  Result<Matrix> matrix = Matrix::Dense(bytes / 8, 1);
  if (!matrix.ok()) Stop(matrix.status().ToString());
  std::fill_n(matrix->mutable_data(), bytes / 8, 1.0);
  return *std::move(matrix);
}

double ProcessorSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Both ends' part in a link: values to pull, and messages that are sent back.
class Handler : public actor::LinkHandler {
 public:
  void OnMessage(const actor::Message& message) override {
    if (answers_through_ != nullptr) {
      actor::Message answer = message;
      std::swap(answer.source, answer.destination);
      return answers_through_->Send(kMeasurer, {&answer, 1});
    }
    const std::lock_guard lock(mutex_);
    ++messages_;
    changed_.notify_all();
  }
  void OnError(uint32_t, uint32_t, NodeId, const Status& status) override { Stop(status.ToString()); }
  Result<Value> Published(uint32_t, RegisterId register_id, uint8_t) override {
    const std::lock_guard lock(mutex_);
    return Value(values_[static_cast<size_t>(register_id)]);
  }

  void SetValues(std::vector<Matrix> values) {
    const std::lock_guard lock(mutex_);
    values_ = std::move(values);
  }
  void AnswerThrough(actor::Link* link) { answers_through_ = link; }
  void WaitForMessages(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return messages_ >= count; });
    messages_ = 0;
  }

 private:
  actor::Link* answers_through_ = nullptr;  // set before the link has peers
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Matrix> values_;
  int messages_ = 0;
};

// One end of a link of two executors.
struct End {
  End(int rank, bool shares_memory, std::string token, Handler* handler) {
    cluster::GrpcLinkOptions options;
    options.job = "bench";
    options.rank = rank;
    options.ranks = 2;
    options.token = std::move(token);
    options.listen = "127.0.0.1:0";  // TCP, as the raw sockets beside it.
    options.shares_memory = shares_memory;
    Result<std::unique_ptr<cluster::GrpcLink>> listening = cluster::GrpcLink::Listen(options);
    if (!listening.ok()) Stop(listening.status().ToString());
    link = *std::move(listening);
    if (rank == kPeer) handler->AnswerThrough(link.get());
    link->Serve(handler, [](const Status& why) { Stop(why.ToString()); });
  }
  void Connect(int rank, const std::string& peer) const {
    std::vector<cluster::LinkPeer> peers(2);
    peers[static_cast<size_t>(1 - rank)].endpoint = peer;
    const Status status = link->Connect(peers);
    if (!status.ok()) Stop(status.ToString());
  }
  std::unique_ptr<cluster::GrpcLink> link;
};

// --- raw TCP: eight bytes name a value, its bytes come back ---

bool ReadAll(int fd, void* to, int64_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = recv(fd, at, static_cast<size_t>(bytes), 0);
    if (got <= 0) return false;
    at += got;
    bytes -= got;
  }
  return true;
}

bool WriteAll(int fd, const void* from, int64_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = send(fd, at, static_cast<size_t>(bytes), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent;
    bytes -= sent;
  }
  return true;
}

void SetNoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

class TcpServer {
 public:
  explicit TcpServer(Handler& handler) : listener_(cluster::ListenOnLoopback(&port_)) {
    if (!listener_.ok()) Stop("no TCP socket");
    thread_ = std::thread([this, &handler] { Serve(handler); });
  }
  ~TcpServer() { thread_.join(); }
  int port() const { return port_; }

 private:
  void Serve(Handler& handler) const {
    const Descriptor caller(accept(listener_.get(), nullptr, nullptr));
    SetNoDelay(caller.get());
    int64_t number = 0;
    while (ReadAll(caller.get(), &number, sizeof(number))) {
      const Value value = *handler.Published(0, static_cast<RegisterId>(number), 0);
      if (!WriteAll(caller.get(), value.matrix().data(), value.bytes())) return;
    }
  }

  int port_ = 0;
  Descriptor listener_;
  std::thread thread_;
};

// --- the measuring process ---

struct Figure {
  double best_ms = 1e300;
  double processor_s = 0;  // Of both processes, in all rounds.
  int64_t bytes = 0;

  double Rate(int64_t round_bytes) const { return static_cast<double>(round_bytes) / best_ms / 1e6; }
  double SecondsPerGb() const { return processor_s / (static_cast<double>(bytes) / 1e9); }
};

class Peer {
 public:
  explicit Peer(int rounds) : rounds_(rounds) {
    Pin(kMeasurer);
    const std::string token = cluster::MakeToken();
    for (const bool shares_memory : {true, false}) {
      ends_.push_back(std::make_unique<End>(kMeasurer, shares_memory, token, &handler_));
      const std::string peer = process_.Ask(
          fmt::format("link {} {} {}", shares_memory ? 1 : 0, token, ends_.back()->link->endpoint()));
      ends_.back()->Connect(kMeasurer, peer);
    }
    tcp_ = cluster::ConnectToLoopback(std::atoi(process_.Ask("tcp").c_str()));
    if (!tcp_.ok()) Stop("no TCP connection");
    SetNoDelay(tcp_.get());
  }
  bool SharesMemory() const { return ends_[0]->link->SharesMemoryWith(kPeer); }

  void MeasureSize(int64_t bytes, bool json) {
    process_.Ask(fmt::format("values {}", bytes));
    std::vector<Matrix> own;
    for (int64_t i = 0; i < SourcesOf(bytes); ++i) own.push_back(Filled(bytes));
    const int64_t pulls = PullsOf(bytes);
    std::array<Figure, 4> figures;
    for (int round = 0; round <= rounds_; ++round) {  // the first to warm up
      const auto measure = [&](Figure& figure, const std::function<void()>& work) {
        const double before_s = BothProcessors();
        const double ms = Time(work);
        if (round == 0) return;
        figure.best_ms = std::min(figure.best_ms, ms);
        figure.processor_s += BothProcessors() - before_s;
        figure.bytes += bytes * pulls;
      };
      measure(figures[0], [&] { CopyAll(own, bytes, pulls); });
      measure(figures[1], [&] { PullAll(*ends_[0]->link, bytes, pulls); });
      measure(figures[2], [&] { PullAll(*ends_[1]->link, bytes, pulls); });
      measure(figures[3], [&] { ReceiveAll(bytes, pulls); });
    }
    const auto& [memory, shared, grpc, tcp] = figures;
    const int64_t round_bytes = bytes * pulls;
    const auto ratio = [&](const Figure& a, const Figure& b) { return b.best_ms / a.best_ms; };
    std::printf(
        json ? "{\"bench\":\"transport\",\"bytes\":%lld,\"memcpy_gb_s\":%.3f,\"shared_gb_s\":%.3f,"
               "\"grpc_gb_s\":%.3f,\"tcp_gb_s\":%.3f,\"shared_to_memcpy\":%.3f,\"shared_to_tcp\":%.3f,"
               "\"grpc_to_tcp\":%.3f,\"shared_us\":%.1f,\"grpc_us\":%.1f,\"tcp_us\":%.1f,"
               "\"memcpy_cpu_s_per_gb\":%.3f,\"shared_cpu_s_per_gb\":%.3f,\"grpc_cpu_s_per_gb\":%.3f,"
               "\"tcp_cpu_s_per_gb\":%.3f}\n"
             : "%9lld bytes: GB/s memcpy %.2f, shared %.2f, gRPC %.2f, TCP %.2f; shared/memcpy %.2f, "
               "shared/TCP %.2f, gRPC/TCP %.2f; us each: shared %.1f, gRPC %.1f, TCP %.1f; "
               "processor s/GB memcpy %.3f, shared %.3f, gRPC %.3f, TCP %.3f\n",
        static_cast<long long>(bytes), memory.Rate(round_bytes), shared.Rate(round_bytes),
        grpc.Rate(round_bytes), tcp.Rate(round_bytes), ratio(shared, memory), ratio(shared, tcp),
        ratio(grpc, tcp), shared.best_ms * 1e3 / static_cast<double>(pulls),
        grpc.best_ms * 1e3 / static_cast<double>(pulls), tcp.best_ms * 1e3 / static_cast<double>(pulls),
        memory.SecondsPerGb(), shared.SecondsPerGb(), grpc.SecondsPerGb(), tcp.SecondsPerGb());
    std::fflush(stdout);
  }

  // Messages and answers while nothing else happens, and while values come by either way.
  void MeasureMessages(bool json) {
    constexpr int64_t kBulkBytes = int64_t{64} << 20;
    process_.Ask(fmt::format("values {}", kBulkBytes));
    const char* const names[] = {"idle", "shared memory", "gRPC"};
    for (int bulk = 0; bulk < 3; ++bulk) {
      std::atomic<bool> ended{false};
      std::thread puller;
      if (bulk > 0)
        puller = std::thread([&, bulk] {
          while (!ended.load()) PullAll(*ends_[static_cast<size_t>(bulk - 1)]->link, kBulkBytes, kWindow);
        });
      std::vector<double> times;
      for (int i = 0; i < kMessages; ++i) {
        times.push_back(Time([&] {
          actor::Message message;
          message.source = TaskId::Make(kMeasurer, 0, 0);
          message.destination = TaskId::Make(kPeer, 0, 0);
          message.type = actor::MessageType::kAck;
          ends_[1]->link->Send(kPeer, {&message, 1});
          handler_.WaitForMessages(1);
        }));
      }
      ended.store(true);
      if (puller.joinable()) puller.join();
      std::ranges::sort(times);
      const double middle_us = times[times.size() / 2] * 1e3;
      const double late_us = times[times.size() * 99 / 100] * 1e3;
      std::printf(
          json ? "{\"bench\":\"transport\",\"messages_beside\":\"%s\",\"p50_us\":%.1f,\"p99_us\":%.1f}\n"
               : "messages and answers beside %s: half of them in %.1f us, 99 %% in %.1f us\n",
          names[bulk], middle_us, late_us);
      std::fflush(stdout);
    }
  }

 private:
  double BothProcessors() { return ProcessorSeconds() + std::atof(process_.Ask("processor").c_str()); }

  // What a consumer does: the last values stay.
  static void Keep(Matrix value, std::deque<Matrix>* kept) {
    kept->push_back(std::move(value));
    if (static_cast<int64_t>(kept->size()) > kWindow) kept->pop_front();
  }

  static void CopyAll(const std::vector<Matrix>& sources, int64_t bytes, int64_t count) {
    std::deque<Matrix> kept;
    for (int64_t i = 0; i < count; ++i) {
      Matrix value = *Matrix::Dense(bytes / 8, 1);
      std::memcpy(value.mutable_data(), sources[static_cast<size_t>(i % SourcesOf(bytes))].data(),
                  static_cast<size_t>(bytes));
      Keep(std::move(value), &kept);
    }
  }

  static void PullAll(actor::Link& link, int64_t bytes, int64_t count) {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Matrix> kept;
    int64_t arrived = 0;
    for (int64_t i = 0; i < count; ++i) {
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return i - arrived < kWindow; });
      }
      link.Pull(kPeer, 1, static_cast<RegisterId>(i % SourcesOf(bytes)), 0, [&](Result<Value> value) {
        if (!value.ok()) Stop(value.status().ToString());
        const std::lock_guard lock(mutex);
        Keep(value->matrix(), &kept);
        ++arrived;
        changed.notify_all();
      });
    }
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return arrived == count; });
  }

  void ReceiveAll(int64_t bytes, int64_t count) const {
    std::deque<Matrix> kept;
    for (int64_t i = 0; i < count + kWindow - 1; ++i) {
      const int64_t number = i % SourcesOf(bytes);
      if (i < count && !WriteAll(tcp_.get(), &number, sizeof(number))) Stop("the TCP connection broke");
      if (i < kWindow - 1) continue;
      Matrix value = *Matrix::Dense(bytes / 8, 1);
      if (!ReadAll(tcp_.get(), value.mutable_data(), bytes)) Stop("the TCP connection broke");
      Keep(std::move(value), &kept);
    }
  }

  const int rounds_;
  PeerProcess process_{"transport-peer"};
  Handler handler_;
  std::vector<std::unique_ptr<End>> ends_;  // with shared memory, and without
  Descriptor tcp_;
};

}  // namespace

int RunTransport(const BenchOptions& options) {
  if (options.only == "all-reduce") return RunAllReduce(options);
  Peer peer(options.rounds);
  if (!peer.SharesMemory()) Stop("no shared memory on this machine");
  for (const int64_t bytes : kSizes)
    if (options.only.empty() || fmt::format("{}", bytes).find(options.only) != std::string::npos)
      peer.MeasureSize(bytes, options.json);
  if (options.only.empty() || options.only == "messages") peer.MeasureMessages(options.json);
  return options.only.empty() ? RunAllReduce(options) : 0;
}

int RunTransportPeer(int fd) {
  Pin(kPeer);
  cluster::LineChannel channel(fd);
  std::array<Handler, 2> handlers;  // of either link
  std::vector<std::unique_ptr<End>> ends;
  std::unique_ptr<TcpServer> tcp;
  std::string line;
  while (channel.ReadLine(&line) == cluster::LineChannel::Outcome::kLine && line != "end") {
    char token[64];
    char endpoint[200];
    int shares_memory = 0;
    long long bytes = 0;
    if (std::sscanf(line.c_str(), "link %d %63s %199s", &shares_memory, token, endpoint) == 3) {
      ends.push_back(std::make_unique<End>(kPeer, shares_memory != 0, token, &handlers[ends.size()]));
      channel.WriteLine(ends.back()->link->endpoint());
      ends.back()->Connect(kPeer, endpoint);
    } else if (std::sscanf(line.c_str(), "values %lld", &bytes) == 1) {
      std::vector<Matrix> values;
      for (Handler& handler : handlers) handler.SetValues({});
      for (int64_t i = 0; i < SourcesOf(bytes); ++i) values.push_back(Filled(bytes));
      for (Handler& handler : handlers) handler.SetValues(values);
      channel.WriteLine("ok");
    } else if (line == "tcp") {
      tcp = std::make_unique<TcpServer>(handlers[0]);
      channel.WriteLine(fmt::format("{}", tcp->port()));
    } else {
      channel.WriteLine(fmt::format("{:.6f}", ProcessorSeconds()));
    }
  }
  ends.clear();
  return 0;
}

}  // namespace heddle::bench
