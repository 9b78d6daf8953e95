#include "strategies/federated_averaging/split_record.h"

#include <algorithm>
#include <cmath>

namespace tutti::federated_averaging {
namespace {

// Half the sum of the differences between two distributions: 0 alike, 1 nothing in common.
double total_variation(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  double size_a = 0, size_b = 0, sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    size_a += static_cast<double>(a[i]);
    size_b += static_cast<double>(b[i]);
  }
  for (size_t i = 0; i < a.size(); ++i)
    sum += std::abs(static_cast<double>(a[i]) / size_a - static_cast<double>(b[i]) / size_b);
  return sum / 2;
}

}  // namespace

void record_split(Context& context, const ClientSplit& split) {
  const std::vector<int64_t> all = label_counts(context.data, context.data.splits.train);
  const size_t clients = split.clients();
  Extra::Table table{.columns = {"client", "samples"}, .rows = {}};
  for (const std::string& name : context.data.dataset->class_names()) table.columns.push_back(name);
  size_t least = split.of(0).size(), most = least, listed = 0;
  double labels = 0, skew = 0;
  for (size_t client = 0; client < clients; ++client) {
    const auto samples = split.of(client);
    least = std::min(least, samples.size());
    most = std::max(most, samples.size());
    const std::vector<int64_t> counts = label_counts(context.data, samples);
    labels += static_cast<double>(
        std::count_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; }));
    if (!counts.empty()) skew += total_variation(counts, all);
    if (client < listed * clients / kMostListed) continue;
    ++listed;
    std::vector<double> row{static_cast<double>(client), static_cast<double>(samples.size())};
    row.insert(row.end(), counts.begin(), counts.end());
    table.rows.push_back(std::move(row));
  }
  const auto count = static_cast<double>(clients);
  Recorder& recorder = context.recorder;
  recorder.figure("clients", count);
  recorder.figure("client_samples_least", static_cast<double>(least));
  recorder.figure("client_samples_most", static_cast<double>(most));
  if (!all.empty()) {
    recorder.figure("client_labels_mean", labels / count);
    recorder.figure("label_skew", skew / count);
  }
  recorder.table("labels_of_clients", std::move(table));
}

}  // namespace tutti::federated_averaging
