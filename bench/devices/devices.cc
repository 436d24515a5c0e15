// SPDX-License-Identifier: Apache-2.0
#include "bench/devices/devices.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/base/expression.h"
#include "bench/base/probe.h"
#include "bench/matrices/random_matrices.h"
#include "ops/cells/storage.h"
#include "ops/device/opencl/opencl_devices.h"

namespace heddle::bench {
namespace {

constexpr int kLeastRounds = 5;

// Of wide products.
constexpr int64_t kWideColumns = 64;

// Milliseconds of a call, and of all threads of the process meanwhile: on a machine with other work the
// latter tell more of two that run on the processor, as a device of POCL does.
struct Times {
  double wall = 1e300, processor = 1e300;
};
Times TimesOf(const std::function<void()>& work) {
  Times times;
  const std::clock_t begin = std::clock();
  times.wall = Time(work);
  times.processor = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return times;
}
void TakeLess(const Times& now, Times* best) {
  best->wall = std::min(best->wall, now.wall);
  best->processor = std::min(best->processor, now.processor);
}

bool HaveSameBytes(const Value& a, const Value& b) {
  if (a.IsScalar() != b.IsScalar()) return false;
  if (a.IsScalar()) return a.scalar().ToLiteral() == b.scalar().ToLiteral();
  const Result<Matrix> left = ToDense(a.matrix()), right = ToDense(b.matrix());
  return left.ok() && right.ok() && Matrix::SameCells(*left, *right);
}

class DeviceMeter {
 public:
  DeviceMeter(const BenchOptions& options, ops::Arena* arena, ops::ComputeDevice& device)
      : options_(options), arena_(arena), device_(device) {}

  ops::Arena* arena() const { return arena_; }
  bool all_agree() const { return all_agree_; }
  bool Wants(const std::string& name) const { return name.find(options_.only) != std::string::npos; }

  void Measure(const std::string& code, const std::string& shape,
               const std::map<std::string, Value>& inputs) {
    const std::string name = code + " " + shape;
    if (!Wants(name)) return;
    Result<Expression> host = Expression::Compile("", {code}, inputs, options_.plan, arena_);
    Result<Expression> there =
        Expression::Compile("", {code}, inputs, options_.plan, arena_, /*for_device=*/true);
    if (!host.ok() || !there.ok()) return Fail(name, host.ok() ? there.status() : host.status());
    if (const Status status = there->UseDevice(device_); !status.ok()) return Fail(name, status);
    Times of_host, of_device;
    for (int round = 0; round <= std::max(kLeastRounds, options_.rounds); ++round) {
      std::vector<Value> expected, actual;
      const Times host_now = TimesOf([&] { expected = host->Run(); });
      const Times device_now = TimesOf([&] { actual = there->Run(); });
      if (round == 0) {  // Makes room, compiles, and is compared.
        if (!HaveSameBytes(expected[0], actual[0])) Fail(name, Internal("other bytes on the device"));
        continue;
      }
      TakeLess(host_now, &of_host);
      TakeLess(device_now, &of_device);
    }
    std::printf(
        options_.json
            ? "{\"bench\":\"devices\",\"case\":\"%s\",\"host_ms\":%.3f,\"device_ms\":%.3f,\"ratio\":%.2f,"
              "\"host_processor_ms\":%.3f,\"device_processor_ms\":%.3f,\"processor_ratio\":%.2f,"
              "\"operators_on_host\":%d,\"threads\":%d,\"plan_text\":\"%s\"}\n"
            : "%-40s %9.3f ms host %9.3f ms device %6.2f   of all threads %9.3f ms %9.3f ms %6.2f  "
              "%d on the host (%d threads; %s)\n",
        name.c_str(), of_host.wall, of_device.wall, of_device.wall / of_host.wall, of_host.processor,
        of_device.processor, of_device.processor / of_host.processor, there->operators_on_host(),
        options_.threads, there->Plan().c_str());
    std::fflush(stdout);
  }

 private:
  void Fail(const std::string& name, const Status& status) {
    std::fprintf(stderr, "heddle-bench: %s: %s\n", name.c_str(), status.ToString().c_str());
    all_agree_ = false;
  }

  const BenchOptions options_;
  ops::Arena* const arena_;
  ops::ComputeDevice& device_;
  bool all_agree_ = true;
};

void RunShape(DeviceMeter& meter, int64_t m, int64_t n) {
  const Matrix x = RandomDense(m, n, 11, meter.arena()), y = RandomDense(m, n, 12, meter.arena()),
               v = RandomDense(n, 1, 13, meter.arena()), w = RandomDense(m, 1, 14, meter.arena());
  const std::string shape = fmt::format("{}x{}", m, n);
  for (const char* code :
       {"as.matrix(sum(X))", "X*2+Y", "rowSums(X)", "colSums(X)", "X%*%v", "as.matrix(sum(X*Y))",
        "rowSums(X*Y)", "colSums(X*Y)", "t(X)%*%w", "t(X)%*%(X%*%v)", "as.matrix(sum(1/(1+exp(-(2*X-1)))*Y))",
        "(X-rowMaxs(X))/rowSums(Y)", "rowVars(X)", "colVars(X)", "rowIndexMax(X)"}) {
    std::map<std::string, Value> inputs = {{"X", x}};
    const std::string text = code;
    if (text.find('Y') != std::string::npos) inputs.emplace("Y", y);
    if (text.find('v') != std::string::npos && text.find("%v") != std::string::npos) inputs.emplace("v", v);
    if (text.find('w') != std::string::npos && text.find("%w") != std::string::npos) inputs.emplace("w", w);
    meter.Measure(code, shape, inputs);
  }
  // Wide products alone, and with cells of their rows behind them.
  const Matrix b = RandomDense(n, kWideColumns, 15, meter.arena()),
               c = RandomDense(m, kWideColumns, 16, meter.arena());
  meter.Measure("X%*%B", shape, {{"X", x}, {"B", b}});
  meter.Measure("rowSums(abs(X%*%B))", shape, {{"X", x}, {"B", b}});
  meter.Measure("t(X)%*%C", shape, {{"X", x}, {"C", c}});
}

}  // namespace

int RunDevices(const BenchOptions& options) {
  ops::Arena arena(options.threads);
  const Result<ops::DeviceSet*> set = ops::OpenClDevices();
  if (!set.ok() || (*set)->devices().empty()) {
    std::fprintf(stderr, "heddle-bench: no device beside the processor\n");
    return 1;
  }
  ops::ComputeDevice& device = *(*set)->devices().front();
  if (!options.json)
    std::printf("%s (%s)\n", device.description().name.c_str(), device.description().driver.c_str());
  DeviceMeter meter(options, &arena, device);
  for (const int64_t n : {10, 100, 1000}) RunShape(meter, options.cells / n, n);
  return meter.all_agree() ? 0 : 1;
}

}  // namespace heddle::bench
