// SPDX-License-Identifier: Apache-2.0
#include "cluster/metrics/rpc_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>
#include <utility>

#include "core/environment/clock.h"

namespace heddle::cluster {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

constexpr double kNsOfSecond = 1e9;

// As Prometheus names them, and gRPC in its documentation.
std::string_view Name(grpc::StatusCode code) {
  constexpr std::string_view kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto number = static_cast<size_t>(code);
  return number < std::size(kNames) ? kNames[number] : "UNKNOWN";
}

struct Families {
  prometheus::Family<prometheus::Counter>* calls;
  prometheus::Family<prometheus::Histogram>* seconds;

  void Count(const std::string& method, grpc::StatusCode code) const {
    calls->Add({{"method", method}, {"code", std::string(Name(code))}}).Increment();
  }
};

class CallCounter : public Interceptor {
 public:
  CallCounter(const Families& families, ServerRpcInfo* call)
      : families_(families),
        method_(call->method()),
        is_stream_(call->type() != ServerRpcInfo::Type::UNARY),
        began_ns_(SystemClock().MonotonicNs()) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      families_.Count(method_, methods->GetSendStatus().error_code());
      if (!is_stream_) {
        static const prometheus::Histogram::BucketBoundaries kSeconds = {0.001, 0.005, 0.02, 0.1, 0.2,
                                                                         0.5,   2,     10,   60};
        families_.seconds->Add({{"method", method_}}, kSeconds)
            .Observe(static_cast<double>(SystemClock().MonotonicNs() - began_ns_) / kNsOfSecond);
      }
    }
    methods->Proceed();
  }

 private:
  const Families families_;
  const std::string method_;
  const bool is_stream_;
  const int64_t began_ns_;
};

class CallCounters : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // The registry owns the families, and lives as long as the server.
  CallCounters(std::shared_ptr<prometheus::Registry> registry, const Families& families)
      : registry_(std::move(registry)), families_(families) {}
  Interceptor* CreateServerInterceptor(ServerRpcInfo* call) override {
    return new CallCounter(families_, call);
  }

 private:
  const std::shared_ptr<prometheus::Registry> registry_;
  const Families families_;
};

Families FamiliesOf(prometheus::Registry& registry) {
  return {&prometheus::BuildCounter()
               .Name("heddle_rpc_total")
               .Help("Calls that have ended, by method and code; refused ones have another code than OK.")
               .Register(registry),
          &prometheus::BuildHistogram()
               .Name("heddle_rpc_seconds")
               .Help("How long calls took that are no streams.")
               .Register(registry)};
}

}  // namespace

RpcMetrics::RpcMetrics()
    : registry_(std::make_shared<prometheus::Registry>(prometheus::Registry::InsertBehavior::Merge)) {}

std::shared_ptr<prometheus::Collectable> RpcMetrics::collectable() const { return registry_; }

void RpcMetrics::CountRefused(const std::string& method, grpc::StatusCode code) const {
  FamiliesOf(*registry_).Count(method, code);
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> RpcMetrics::MakeCounter() const {
  return std::make_unique<CallCounters>(registry_, FamiliesOf(*registry_));
}

}  // namespace heddle::cluster
