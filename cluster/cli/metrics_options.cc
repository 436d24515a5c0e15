// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/metrics_options.h"

namespace heddle::cluster::cli {

Result<TlsFiles> ReadMetricsTls(const Arguments& arguments) {
  TlsFiles tls = {.certificate = arguments.Value("metrics-tls-certificate").value_or(""),
                  .key = arguments.Value("metrics-tls-key").value_or("")};
  if (tls.certificate.empty() != tls.key.empty())
    return Usage("--metrics-tls-certificate and --metrics-tls-key belong together");
  return tls;
}

std::string MetricsUrl(const std::string& address, const TlsFiles& tls) {
  return fmt::format("{}://{}/metrics", tls.certificate.empty() ? "http" : "https", address);
}

}  // namespace heddle::cluster::cli
