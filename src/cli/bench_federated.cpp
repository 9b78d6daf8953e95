// `tutti bench federated`: rounds of 100 clients out of 10,000, each of which takes one local epoch
// of logistic regression on its few images: how many clients are served in a second.
#include <fmt/format.h>

#include <algorithm>

#include "cli/bench.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr int kRounds = 100, kClientsOfRound = 100;

struct FederatedCase {
  std::string name;
  std::vector<std::string> settings;
};

std::vector<std::string> settings_of(const FederatedCase& c) {
  std::vector<std::string> settings = {"name=bench",
                                       "task.data={kind=\"fashion-mnist\", validation=0.005}",
                                       "task.model=logistic",
                                       "task.epochs=1000",
                                       fmt::format("task.max_steps={}", kRounds),
                                       "task.eval_every=1000",
                                       "optimizer.kind=sgd",
                                       "optimizer.lr=0.05",
                                       "strategy.kind=federated_averaging",
                                       "strategy.clients=10000",
                                       "strategy.fraction=0.01",
                                       "strategy.local_epochs=1",
                                       "strategy.client_batch=10"};
  settings.insert(settings.end(), c.settings.begin(), c.settings.end());
  return settings;
}

}  // namespace

json bench_federated(const BenchOptions& options, const std::atomic<bool>& stop) {
  const std::vector<FederatedCase> cases = {
      {"fedavg, 2 processes", {"cluster.workers=2"}},
      {"fedavg, 1 process", {"cluster.workers=1"}},
      {"scaffold, 2 processes", {"cluster.workers=2", "strategy.algorithm=scaffold"}}};
  std::map<std::string, std::vector<double>> rates, bytes;
  for (int round = 0; round < options.rounds && !stop; ++round)
    for (const FederatedCase& c : cases) {
      say(options, fmt::format("federated: {}, round {} of {}", c.name, round + 1, options.rounds));
      const TemporaryFolder folder;
      const json record = record_in(output_of(train_command(folder, "run", settings_of(c)), stop));
      double seconds = 0;
      for (const json& node : record["nodes"])
        seconds = std::max(seconds, node["total_s"].get<double>());
      const double updates = record["counters"]["client_updates"];
      rates[c.name].push_back(updates / seconds);
      bytes[c.name].push_back(record["bytes_sent"].get<double>() / updates);
    }
  leave_if_stopped(stop);
  json result = json::array();
  if (!options.json)
    fmt::print("\n{:<28} {:>16} {:>14}\n", fmt::format("{} of 10,000 clients", kClientsOfRound),
               "client updates/s", "bytes/update");
  for (const FederatedCase& c : cases) {
    const double rate = median(rates[c.name]), each = median(bytes[c.name]);
    result.push_back({{"case", c.name},
                      {"client_updates_per_s", rate},
                      {"bytes_per_update", each},
                      {"rounds", rates[c.name].size()}});
    if (!options.json) fmt::print("{:<28} {:>16.0f} {:>14.0f}\n", c.name, rate, each);
  }
  return result;
}

}  // namespace tutti
