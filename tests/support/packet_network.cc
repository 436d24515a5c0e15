// SPDX-License-Identifier: Apache-2.0
#include "tests/support/packet_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <queue>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "core/environment/descriptor.h"

namespace heddle::testing_support {

using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr size_t kPacketBytes = 2'048;
constexpr size_t kDestination = 16;  // Of the address in the header of an IPv4 packet.
constexpr size_t kMostOnTheirWay = 100'000;

struct Host {
  Descriptor network;  // The namespace.
  Descriptor device;
};

std::string Failed(const char* what) { return std::string(what) + ": " + strerror(errno); }

bool SetAddress(int fd, unsigned long call, const std::string& name, const std::string& address) {
  ifreq request = {};
  strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  sockaddr_in value = {};
  value.sin_family = AF_INET;
  inet_pton(AF_INET, address.c_str(), &value.sin_addr);
  memcpy(&request.ifr_addr, &value, sizeof(value));
  return ioctl(fd, call, &request) == 0;
}

bool TurnOn(int fd, const std::string& name) {
  ifreq request = {};
  strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

// The calling thread moves to a namespace of its own. What went wrong, "" for nothing.
std::string MakeHost(size_t number, Host* host) {
  if (unshare(CLONE_NEWNET) != 0) return Failed("no network namespace");
  host->network = Descriptor(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  host->device = Descriptor(open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!host->device.ok()) return Failed("/dev/net/tun");
  ifreq request = {};
  strncpy(request.ifr_name, "net0", IFNAMSIZ - 1);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(host->device.get(), TUNSETIFF, &request) != 0) return Failed("no TUN device");
  const Descriptor control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!SetAddress(control.get(), SIOCSIFADDR, "net0", PacketNetwork::AddressOf(number)) ||
      !SetAddress(control.get(), SIOCSIFNETMASK, "net0", "255.255.255.0") || !TurnOn(control.get(), "net0") ||
      !TurnOn(control.get(), "lo"))
    return Failed("no address for a TUN device");
  return "";
}

struct Packet {
  SteadyClock::time_point due;
  uint64_t number = 0;
  size_t to = 0;
  std::vector<char> bytes;
  bool operator>(const Packet& other) const {
    return std::pair(due, number) > std::pair(other.due, other.number);
  }
};

}  // namespace

class PacketNetwork::Impl {
 public:
  Impl(std::vector<Host> hosts, uint64_t seed) : hosts_(std::move(hosts)), random_(seed) {
    thread_ = std::thread([this] { Run(); });
  }
  ~Impl() {
    ended_ = true;
    const uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof(one));
    thread_.join();
  }

  const std::vector<Host>& hosts() const { return hosts_; }
  void Set(const Conditions& conditions) {
    const std::lock_guard lock(mutex_);
    conditions_ = conditions;
  }
  void Cut(size_t from, size_t to) {
    const std::lock_guard lock(mutex_);
    cut_.emplace(from, to);
  }
  void Mend() {
    const std::lock_guard lock(mutex_);
    cut_.clear();
  }

  std::atomic<int64_t> passed{0};
  std::atomic<int64_t> lost{0};

 private:
  void Run() {
    while (!ended_) {
      std::vector<pollfd> pollers = {{wake_.get(), POLLIN, 0}};
      for (const Host& host : hosts_) pollers.push_back({host.device.get(), POLLIN, 0});
      timespec pause = {};
      if (!packets_.empty()) {
        const auto left = std::max(SteadyClock::duration::zero(), packets_.top().due - SteadyClock::now());
        pause.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
        pause.tv_nsec = (left - std::chrono::seconds(pause.tv_sec)).count();
      }
      ppoll(pollers.data(), pollers.size(), packets_.empty() ? nullptr : &pause, nullptr);
      for (size_t from = 0; from < hosts_.size(); ++from)
        if (pollers[from + 1].revents != 0) Take(from);
      for (const auto now = SteadyClock::now(); !packets_.empty() && packets_.top().due <= now;
           packets_.pop())
        HandOn(packets_.top());
    }
  }

  void Take(size_t from) {
    char bytes[kPacketBytes];
    for (;;) {
      const ssize_t got = read(hosts_[from].device.get(), bytes, sizeof(bytes));
      if (got < static_cast<ssize_t>(kDestination + 4)) return;
      const auto to = static_cast<size_t>(static_cast<unsigned char>(bytes[kDestination + 3])) - 1;
      if (bytes[0] >> 4 != 4 || to >= hosts_.size()) continue;  // not of this network
      const std::lock_guard lock(mutex_);
      ++passed;
      if (cut_.contains({from, to}) || packets_.size() >= kMostOnTheirWay ||
          std::bernoulli_distribution(conditions_.loss)(random_)) {
        ++lost;
        continue;
      }
      const std::chrono::microseconds more(
          std::uniform_int_distribution<int64_t>(0, 1'000 * conditions_.jitter.count())(random_));
      packets_.push({SteadyClock::now() + conditions_.delay + more, ++number_, to,
                     std::vector<char>(bytes, bytes + got)});
    }
  }

  void HandOn(const Packet& packet) {
    (void)!write(hosts_[packet.to].device.get(), packet.bytes.data(), packet.bytes.size());
  }

  const std::vector<Host> hosts_;
  const Descriptor wake_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  Conditions conditions_;
  std::set<std::pair<size_t, size_t>> cut_;  // From, to.
  std::mt19937_64 random_;
  uint64_t number_ = 0;
  std::priority_queue<Packet, std::vector<Packet>, std::greater<>> packets_;  // Of the thread.
  std::thread thread_;
};

std::unique_ptr<PacketNetwork> PacketNetwork::Make(size_t hosts, uint64_t seed, std::string* why_not) {
  std::vector<Host> made(hosts);
  if (access("/usr/bin/nsenter", X_OK) != 0) {
    *why_not = "/usr/bin/nsenter is not there";
    return nullptr;
  }
  for (size_t i = 0; i < hosts; ++i) {
    std::string fault;
    std::thread([&] { fault = MakeHost(i, &made[i]); }).join();
    if (fault.empty()) continue;
    *why_not = fault;
    return nullptr;
  }
  return std::unique_ptr<PacketNetwork>(new PacketNetwork(std::make_unique<Impl>(std::move(made), seed)));
}

PacketNetwork::PacketNetwork(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PacketNetwork::~PacketNetwork() = default;

std::vector<std::string> PacketNetwork::Within(size_t host) const {
  return {"/usr/bin/nsenter", "--net=/proc/" + std::to_string(getpid()) + "/fd/" +
                                  std::to_string(impl_->hosts()[host].network.get())};
}

void PacketNetwork::Set(const Conditions& conditions) { impl_->Set(conditions); }
void PacketNetwork::Cut(size_t from, size_t to) { impl_->Cut(from, to); }
void PacketNetwork::Mend() { impl_->Mend(); }
int64_t PacketNetwork::passed() const { return impl_->passed; }
int64_t PacketNetwork::lost() const { return impl_->lost; }

}  // namespace heddle::testing_support
