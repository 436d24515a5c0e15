// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cluster/cli/arguments.h"
#include "cluster/network/tls_files.h"

// Metrics and health, of master and worker alike (docs/daemons.md).
namespace heddle::cluster::cli {

inline constexpr Option kMetricsOptions[] = {
    {"metrics-listen", Option::Kind::kValue, "HOST:PORT",
     "answer there with metrics for Prometheus, /healthz and /readyz; where other machines reach it, metrics "
     "take a token of role viewer, operator or admin (default: nowhere)"},
    {"metrics-tls-certificate", Option::Kind::kValue, "FILE",
     "certificate of that port, which then speaks HTTPS"},
    {"metrics-tls-key", Option::Kind::kValue, "FILE", "its key"}};

/// Certificate and key of that port; empty for plain HTTP. kUsage for one without the other.
Result<TlsFiles> ReadMetricsTls(const Arguments& arguments);
/// Where the metrics of who listens at an address are.
std::string MetricsUrl(const std::string& address, const TlsFiles& tls);

}  // namespace heddle::cluster::cli
