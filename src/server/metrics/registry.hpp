// metric_table() as a prometheus-cpp registry: every series made at the start, found by name and label values.
//
// Internal to the metrics: includes prometheus-cpp.
//
// Thread rule: immutable after construction but for the series, which are any thread's.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/metrics/metric_table.hpp"

namespace kvasir::server {

class MetricRegistry {
 public:
  // `constant` labels go on every series.
  MetricRegistry(const std::map<std::string, std::string>& constant, std::uint32_t max_model_len);

  struct HistogramSeries {
    prometheus::Histogram* histogram = nullptr;
    const std::vector<double>* bounds = nullptr;
  };

  // REQUIRES: a series of the table, of that kind.
  prometheus::Counter& counter(std::string_view name, const std::vector<std::string_view>& values) const;
  prometheus::Gauge& gauge(std::string_view name, const std::vector<std::string_view>& values) const;
  HistogramSeries histogram(std::string_view name, const std::vector<std::string_view>& values) const;

  prometheus::Registry& prometheus() { return registry_; }
  const prometheus::Registry& prometheus() const { return registry_; }

 private:
  void add(const MetricInfo& info, const std::map<std::string, std::string>& constant);

  prometheus::Registry registry_;
  std::map<std::string, prometheus::Counter*, std::less<>> counters_;   // by name and values, see metrics' key
  std::map<std::string, prometheus::Gauge*, std::less<>> gauges_;
  std::map<std::string, HistogramSeries, std::less<>> histograms_;
  std::map<Buckets, std::vector<double>> bounds_;
};

}  // namespace kvasir::server
