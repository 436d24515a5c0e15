// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace heddle::cluster {

/// Makes families of metrics of numbers that are kept elsewhere.
class MetricFamilies {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  void Gauge(const std::string& name, const std::string& help, double value, const Labels& labels = {}) {
    Add(name, help, prometheus::MetricType::Gauge, labels).gauge.value = value;
  }
  void Counter(const std::string& name, const std::string& help, double value, const Labels& labels = {}) {
    Add(name, help, prometheus::MetricType::Counter, labels).counter.value = value;
  }
  /// `counts` of observations up to each bound and, last, of those above all; not cumulative.
  void Histogram(const std::string& name, const std::string& help, const std::vector<double>& bounds,
                 const std::vector<int64_t>& counts, double sum) {
    prometheus::ClientMetric& metric = Add(name, help, prometheus::MetricType::Histogram, {});
    uint64_t all = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      all += static_cast<uint64_t>(counts[i]);
      if (i < bounds.size()) metric.histogram.bucket.push_back({all, bounds[i]});
    }
    metric.histogram.sample_count = all;
    metric.histogram.sample_sum = sum;
  }
  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  // Metrics of one name stand together.
  prometheus::ClientMetric& Add(const std::string& name, const std::string& help, prometheus::MetricType type,
                                const Labels& labels) {
    if (families_.empty() || families_.back().name != name) families_.push_back({name, help, type, {}});
    prometheus::ClientMetric& metric = families_.back().metric.emplace_back();
    for (const auto& [label, value] : labels) metric.label.push_back({label, value});
    return metric;
  }

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace heddle::cluster
