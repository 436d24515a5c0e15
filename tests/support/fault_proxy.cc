// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fault_proxy.h"

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#include <atomic>
#include <deque>
#include <future>
#include <list>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace heddle::testing_support {

using asio::ip::tcp;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr size_t kPieceBytes = size_t{64} << 10;
// What may be on its way in one direction of a connection; whoever sends more has to wait.
constexpr size_t kMostOnItsWay = size_t{4} << 20;

struct Piece {
  std::vector<char> bytes;  // None: the end.
  SteadyClock::time_point due;
};

}  // namespace

// All but the atomic counters belongs to the one thread that runs the context.
class FaultProxy::Impl {
 public:
  Impl(const std::string& target, uint64_t seed)
      : random_(seed),
        target_(asio::ip::address_v4::loopback(),
                static_cast<uint16_t>(std::stoi(target.substr(target.rfind(':') + 1)))) {
    Accept();
    thread_ = std::thread([this] { context_.run(); });
  }
  ~Impl() {
    Do([this] {
      asio::error_code ignored;
      acceptor_.close(ignored);
      CloseAll();
    });
    context_.stop();
    thread_.join();
  }

  // Returns when it is done.
  void Do(const std::function<void()>& change) {
    std::promise<void> done;
    asio::post(context_, [&] {
      change();
      done.set_value();
    });
    done.get_future().wait();
  }

  std::string endpoint() const { return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }
  void set_conditions(const Conditions& conditions) { conditions_ = conditions; }
  void Cut(Way way) {
    if (way != Way::kToCaller) is_cut_[0] = true;
    if (way != Way::kToTarget) is_cut_[1] = true;
  }
  void Forget() {
    forgets_ = true;
    for (const auto& pair : pairs_) pair->is_forgotten = true;
  }
  void Mend() {
    is_cut_[0] = is_cut_[1] = forgets_ = refuses_ = false;
    const auto pairs = pairs_;
    for (const auto& pair : pairs) MoveOn(pair);
  }
  void Refuse() {
    refuses_ = true;
    CloseAll();
  }
  void CloseAll() {
    while (!pairs_.empty()) Reset(pairs_.front());
  }

  std::atomic<int64_t> accepted{0};
  std::atomic<int64_t> broken{0};
  std::atomic<int64_t> flipped{0};

 private:
  // One direction of a connection: 0 to the target, 1 to the caller.
  struct Flow {
    explicit Flow(asio::io_context& context) : timer(context) {}
    asio::steady_timer timer;
    std::vector<char> block = std::vector<char>(kPieceBytes);
    std::deque<Piece> pieces;
    size_t on_its_way = 0;
    SteadyClock::time_point last_due;
    bool reads = false, writes = false, waits = false, has_ended = false;
  };
  struct Pair {
    explicit Pair(asio::io_context& context)
        : ends{tcp::socket(context), tcp::socket(context)}, flows{Flow(context), Flow(context)} {}
    tcp::socket ends[2];  // the caller's, the target's
    Flow flows[2];
    bool is_open = true, is_forgotten = false;
  };
  using PairPointer = std::shared_ptr<Pair>;

  void Accept() {
    auto pair = std::make_shared<Pair>(context_);
    acceptor_.async_accept(pair->ends[0], [this, pair](const asio::error_code& error) {
      if (error == asio::error::operation_aborted) return;
      if (!error) Begin(pair);
      Accept();
    });
  }

  void Begin(const PairPointer& pair) {
    ++accepted;
    pairs_.push_back(pair);
    pair->is_forgotten = forgets_;
    if (refuses_) return Reset(pair);
    if (forgets_) return MoveOn(pair);  // Nobody is asked.
    pair->ends[1].async_connect(target_, [this, pair](const asio::error_code& error) {
      if (error) return Reset(pair);
      for (tcp::socket& end : pair->ends) {
        asio::error_code ignored;
        end.set_option(tcp::no_delay(true), ignored);
      }
      MoveOn(pair);
    });
  }

  void MoveOn(const PairPointer& pair) {
    for (const int way : {0, 1}) {
      Read(pair, way);
      Write(pair, way);
    }
  }

  void Read(const PairPointer& pair, int way) {
    Flow& flow = pair->flows[way];
    tcp::socket& from = pair->ends[way];
    if (!pair->is_open || flow.reads || flow.has_ended || !from.is_open() || flow.on_its_way >= kMostOnItsWay)
      return;
    flow.reads = true;
    from.async_read_some(asio::buffer(flow.block),
                         [this, pair, way](const asio::error_code& error, size_t bytes) {
                           pair->flows[way].reads = false;
                           if (pair->is_open) Take(pair, way, error, bytes);
                         });
  }

  void Take(const PairPointer& pair, int way, const asio::error_code& error, size_t bytes) {
    Flow& flow = pair->flows[way];
    if (pair->is_forgotten) {  // Read and dropped.
      if (!error) return Read(pair, way);
      flow.has_ended = true;
      if (!pair->ends[1].is_open() || pair->flows[1 - way].has_ended) Reset(pair);
      return;
    }
    if (error && error != asio::error::eof) return Reset(pair);
    if (!error && conditions_.broken > 0 && std::bernoulli_distribution(conditions_.broken)(random_)) {
      ++broken;
      return Reset(pair);
    }
    flow.has_ended = static_cast<bool>(error);
    std::vector<char> copy(flow.block.begin(), flow.block.begin() + static_cast<std::ptrdiff_t>(bytes));
    if (bytes > 0 && conditions_.flipped > 0 && std::bernoulli_distribution(conditions_.flipped)(random_)) {
      ++flipped;
      copy[random_() % bytes] ^= static_cast<char>(1 << random_() % 8);
    }
    flow.on_its_way += bytes;
    flow.pieces.push_back({std::move(copy), DueOf(flow, bytes)});
    Write(pair, way);
    Read(pair, way);
  }

  SteadyClock::time_point DueOf(Flow& flow, size_t bytes) {
    const auto now = SteadyClock::now();
    auto due = now + conditions_.delay;
    if (conditions_.jitter.count() > 0)
      due += std::chrono::milliseconds(
          std::uniform_int_distribution<int64_t>(0, conditions_.jitter.count())(random_));
    if (conditions_.bytes_per_second > 0)
      due = std::max(due, std::max(flow.last_due, now) +
                              std::chrono::microseconds(static_cast<int64_t>(bytes) * 1'000'000 /
                                                        conditions_.bytes_per_second));
    return flow.last_due = std::max(flow.last_due, due);
  }

  void Write(const PairPointer& pair, int way) {
    Flow& flow = pair->flows[way];
    if (!pair->is_open || pair->is_forgotten || is_cut_[way] || flow.writes || flow.waits ||
        flow.pieces.empty() || !pair->ends[1 - way].is_open())
      return;
    if (flow.pieces.front().due > SteadyClock::now()) {
      flow.waits = true;
      flow.timer.expires_at(flow.pieces.front().due);
      flow.timer.async_wait([this, pair, way](const asio::error_code&) {
        pair->flows[way].waits = false;
        Write(pair, way);
      });
      return;
    }
    if (flow.pieces.front().bytes.empty()) {
      flow.pieces.pop_front();
      asio::error_code ignored;
      pair->ends[1 - way].shutdown(tcp::socket::shutdown_send, ignored);
      if (pair->flows[1 - way].has_ended && pair->flows[1 - way].pieces.empty()) Reset(pair);
      return;
    }
    flow.writes = true;
    asio::async_write(pair->ends[1 - way], asio::buffer(flow.pieces.front().bytes),
                      [this, pair, way](const asio::error_code& error, size_t) {
                        Flow& written = pair->flows[way];
                        written.writes = false;
                        if (!pair->is_open) return;
                        if (error) return Reset(pair);
                        written.on_its_way -= written.pieces.front().bytes.size();
                        written.pieces.pop_front();
                        Read(pair, way);
                        Write(pair, way);
                      });
  }

  // Both ends see a reset, not an orderly end.
  void Reset(const PairPointer& given) {
    const PairPointer pair = given;  // which may be that of the list
    pair->is_open = false;
    for (tcp::socket& end : pair->ends) {
      asio::error_code ignored;
      end.set_option(asio::socket_base::linger(true, 0), ignored);
      end.close(ignored);
    }
    for (Flow& flow : pair->flows) flow.timer.cancel();
    pairs_.remove(pair);
  }

  std::mt19937_64 random_;
  const tcp::endpoint target_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  Conditions conditions_;
  bool is_cut_[2] = {false, false};
  bool forgets_ = false, refuses_ = false;
  std::list<PairPointer> pairs_;
  std::thread thread_;
};

FaultProxy::FaultProxy(const std::string& target, uint64_t seed)
    : impl_(std::make_unique<Impl>(target, seed)) {
  endpoint_ = impl_->endpoint();
}

FaultProxy::~FaultProxy() = default;

void FaultProxy::Do(std::function<void(Impl&)> change) {
  impl_->Do([&] { change(*impl_); });
}

void FaultProxy::Set(const Conditions& conditions) {
  Do([&](Impl& impl) { impl.set_conditions(conditions); });
}
void FaultProxy::Cut(Way way) {
  Do([&](Impl& impl) { impl.Cut(way); });
}
void FaultProxy::Forget() {
  Do([](Impl& impl) { impl.Forget(); });
}
void FaultProxy::Mend() {
  Do([](Impl& impl) { impl.Mend(); });
}
void FaultProxy::Break() {
  Do([](Impl& impl) { impl.CloseAll(); });
}
void FaultProxy::Refuse() {
  Do([](Impl& impl) { impl.Refuse(); });
}
int64_t FaultProxy::accepted() const { return impl_->accepted; }
int64_t FaultProxy::broken() const { return impl_->broken; }
int64_t FaultProxy::flipped() const { return impl_->flipped; }

}  // namespace heddle::testing_support
