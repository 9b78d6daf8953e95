// The key-value store in a program of your own: three workers count what they see, two servers keep
// a row for each key, and the update function of the servers is written here.
//
//   key_value [process | virtual]
//
// A row is {count, largest}: counts are to be added, and of the largest values the larger one is to
// stay. Adding alone would not do, so the servers get a function that says what a push does.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "jobs/plugins.h"
#include "sparse/store.h"

namespace {

constexpr int kWorkers = 3;
constexpr int kServers = 2;

void serve(tutti::Node& node, const tutti::StoreLayout& layout) {
  tutti::StoreSettings settings;
  settings.update = [](uint64_t, std::span<float> row, std::span<float>,
                       std::span<const float> pushed) {
    row[0] += pushed[0];
    row[1] = std::max(row[1], pushed[1]);
  };
  tutti::StoreServer(node, layout, settings).run();
}

// Worker w has seen the keys 0, w + 1, 2 (w + 1), ... Keys may lie anywhere in 64 bits: here they
// are far apart, and only those that were pushed take memory.
std::string work(tutti::Node& node, const tutti::StoreLayout& layout) {
  constexpr uint64_t kFarApart = uint64_t{1} << 58;
  const auto worker = static_cast<uint64_t>(node.endpoint().rank());
  std::vector<uint64_t> keys;
  std::vector<float> rows;
  for (uint64_t number = 0; number < 12; number += worker + 1) {
    keys.push_back(number * kFarApart);
    rows.insert(rows.end(), {1.0F, static_cast<float>(worker)});
  }
  tutti::StoreClient store(node, layout);
  // What is pushed is seen by its own worker at once, and by the others from then on.
  std::vector<float> seen(rows.size());
  store.push_pull(keys, rows, seen);
  for (size_t i = 0; i < keys.size(); ++i)
    if (seen[2 * i] < 1) throw std::runtime_error("a worker does not see its own push");

  // Key 6 is in everybody's list: wait until all three have counted it.
  const std::vector<uint64_t> six = {6 * kFarApart};
  std::vector<float> row(2);
  do store.pull(six, row);
  while (row[0] < kWorkers);
  store.close();
  return fmt::format("count {} largest {}", row[0], row[1]);
}

}  // namespace

int main(int argc, char** argv) {
  tutti::ClusterConfig cluster;
  if (argc > 1) cluster.fabric = tutti::value_of(argv[1], cluster.fabric);
  cluster.workers = kWorkers;
  std::vector<std::string> roles(kWorkers, "worker");
  roles.insert(roles.end(), kServers, "server");
  const tutti::StoreLayout layout{.first_server = kWorkers, .servers = kServers, .width = 2};

  const auto fabric = tutti::make_fabric(cluster, roles, 1);
  const std::atomic<bool> never{false};
  const auto outcomes = fabric->run(
      [&](tutti::Node& node) -> std::string {
        if (node.endpoint().rank() < kWorkers) return work(node, layout);
        serve(node, layout);
        return "";
      },
      never);
  int result = EXIT_SUCCESS;
  for (int worker = 0; worker < kWorkers; ++worker) {
    const tutti::NodeOutcome& outcome = outcomes[static_cast<size_t>(worker)];
    std::cout << "worker " << worker << ": " << outcome.result << outcome.error << "\n";
    if (outcome.result != "count 3 largest 2") result = EXIT_FAILURE;
  }
  return result;
}
