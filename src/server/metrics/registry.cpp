#include "server/metrics/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.hpp"

namespace kvasir::server {
namespace {

template <class Text>
std::string key_of(std::string_view name, const std::vector<Text>& values) {
  return fmt::format("{}{{{}}}", name, fmt::join(values, ","));
}

template <class Map>
const typename Map::mapped_type& find(const Map& map, std::string_view name, const std::vector<std::string_view>& values) {
  const std::string key = key_of(name, values);
  const auto it = map.find(key);
  KV_CHECK(it != map.end(), "metric " + key + " must be in metric_table() with that kind");
  return it->second;
}

}  // namespace

MetricRegistry::MetricRegistry(const std::map<std::string, std::string>& constant, std::uint32_t max_model_len) {
  for (const MetricInfo& info : metric_table()) {
    bounds_.try_emplace(info.buckets, bucket_bounds(info.buckets, max_model_len));
    add(info, constant);
  }
}

void MetricRegistry::add(const MetricInfo& info, const std::map<std::string, std::string>& constant) {
  auto* counters = info.kind == MetricKind::counter
                       ? &prometheus::BuildCounter().Name(info.name).Help(info.help).Register(registry_)
                       : nullptr;
  auto* gauges =
      info.kind == MetricKind::gauge ? &prometheus::BuildGauge().Name(info.name).Help(info.help).Register(registry_) : nullptr;
  auto* histograms = info.kind == MetricKind::histogram
                         ? &prometheus::BuildHistogram().Name(info.name).Help(info.help).Register(registry_)
                         : nullptr;
  for (const std::vector<std::string>& values : info.series) {
    KV_CHECK(values.size() == info.labels.size(), "a series has a value for each label of its row");
    prometheus::Labels labels(constant.begin(), constant.end());
    for (std::size_t i = 0; i < values.size(); ++i) labels.emplace(info.labels[i], values[i]);
    const std::string key = key_of(info.name, values);
    if (counters != nullptr) counters_.emplace(key, &counters->Add(labels));
    if (gauges != nullptr) gauges_.emplace(key, &gauges->Add(labels));
    if (histograms == nullptr) continue;
    const std::vector<double>& bounds = bounds_.at(info.buckets);
    histograms_.emplace(key, HistogramSeries{&histograms->Add(labels, bounds), &bounds});
  }
}

prometheus::Counter& MetricRegistry::counter(std::string_view name, const std::vector<std::string_view>& values) const {
  return *find(counters_, name, values);
}
prometheus::Gauge& MetricRegistry::gauge(std::string_view name, const std::vector<std::string_view>& values) const {
  return *find(gauges_, name, values);
}
MetricRegistry::HistogramSeries MetricRegistry::histogram(std::string_view name,
                                                          const std::vector<std::string_view>& values) const {
  return find(histograms_, name, values);
}

}  // namespace kvasir::server
