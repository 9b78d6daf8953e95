// `tutti bench ps`, the sparse half: how many keys a second workers push and pull through the
// key-value store on the process fabric, against the same table without any network, in this run.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/bench.h"
#include "core/error.h"
#include "core/random.h"
#include "fabric/process/process_fabric.h"
#include "sparse/store.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr int kWorkers = 2;
constexpr size_t kWidth = 8;
constexpr uint64_t kKeySpace = 1 << 20;
constexpr size_t kBatches = 8;  // lists of keys that take turns
constexpr double kMeasure_s = 0.5;

std::vector<uint64_t> random_keys(size_t count, uint32_t worker, uint32_t batch) {
  Random random(1, Stream::kTest, worker, batch);
  std::vector<uint64_t> keys(count);
  for (uint64_t& key : keys) key = random.below(kKeySpace);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

struct Load {
  std::vector<std::vector<uint64_t>> keys;
  std::vector<float> rows;
  Load(size_t count, uint32_t worker) : rows(count * kWidth, 1.0F) {
    for (uint32_t i = 0; i < kBatches; ++i) keys.push_back(random_keys(count, worker, i));
  }
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Calls step(keys) in turn: first for every list, to make the rows, then until time is up. Keys
// per second.
template <class Step>
double rate_of(const Load& load, const Step& step) {
  for (const auto& keys : load.keys) step(keys);
  size_t done = 0;
  const double start = seconds();
  double now = start;
  for (size_t i = 0; now - start < kMeasure_s; ++i, now = seconds()) {
    const auto& keys = load.keys[i % load.keys.size()];
    step(keys);
    done += keys.size();
  }
  return static_cast<double>(done) / (now - start);
}

// What one thread does on a table of its own: the update and the reading, no message.
double table_rate(size_t count) {
  Load load(count, 0);
  RowTable table(kWidth, 0);
  std::vector<float> pulled(count * kWidth);
  return rate_of(load, [&](const std::vector<uint64_t>& keys) {
    table.update(keys, [&](size_t i, uint32_t row) {
      float* const values = table.values(row).data();
      for (size_t c = 0; c < kWidth; ++c)
        pulled[i * kWidth + c] = values[c] += load.rows[i * kWidth + c];
    });
  });
}

double store_rate(int servers, size_t count, const std::atomic<bool>& stop) {
  std::vector<std::string> roles(kWorkers, "worker");
  roles.insert(roles.end(), static_cast<size_t>(servers), "server");
  const StoreLayout layout{.first_server = kWorkers, .servers = servers, .width = kWidth};
  const auto fabric = make_process_fabric(roles, {});
  const auto outcomes = fabric->run(
      [&](Node& node) -> std::string {
        if (node.endpoint().rank() >= kWorkers) {
          StoreServer(node, layout, {}).run();
          return "";
        }
        Load load(count, static_cast<uint32_t>(node.endpoint().rank()));
        std::vector<float> pulled(count * kWidth);
        StoreClient store(node, layout);
        const double rate = rate_of(load, [&](const std::vector<uint64_t>& keys) {
          const size_t values = keys.size() * kWidth;
          store.push_pull(keys, std::span(load.rows).first(values),
                          std::span(pulled).first(values));
        });
        store.close();
        return fmt::format("{}", rate);
      },
      stop);
  require_all_done(outcomes, "ps", stop);
  double sum = 0;
  for (const NodeOutcome& outcome : outcomes) {
    if (!outcome.result.empty()) sum += std::stod(outcome.result);
  }
  return sum;
}

}  // namespace

json bench_ps_sparse(const BenchOptions& options, const std::atomic<bool>& stop) {
  json result = json::array();
  if (!options.json)
    fmt::print(
        "\n{} workers, {} keys, rows of {} floats; a key counts when pushed and pulled\n"
        "{:>14} {:>8} {:>14} {:>18} {:>18} {:>8}\n",
        kWorkers, kKeySpace, kWidth, "keys a message", "servers", "Mkeys/s in all",
        "Mkeys/s per server", "table alone Mkeys/s", "share");
  for (const size_t count : {size_t{256}, size_t{4096}, size_t{65536}}) {
    for (const int servers : {1, 2}) {
      std::vector<double> rates, bounds;
      for (int round = 0; round < options.rounds && !stop; ++round) {
        say(options,
            fmt::format("ps sparse: {} keys, {} servers, round {}", count, servers, round + 1));
        bounds.push_back(table_rate(count));
        rates.push_back(store_rate(servers, count, stop));
      }
      leave_if_stopped(stop);
      const double rate = median(rates), bound = median(bounds);
      const double per_server = rate / servers;
      result.push_back({{"keys_per_message", count},
                        {"servers", servers},
                        {"workers", kWorkers},
                        {"row_width", kWidth},
                        {"keys_per_s", rate},
                        {"keys_per_s_per_server", per_server},
                        {"table_keys_per_s", bound},
                        {"share_of_table", per_server / bound}});
      if (!options.json)
        fmt::print("{:>14} {:>8} {:>14.2f} {:>18.2f} {:>18.2f} {:>7.0f} %\n", count, servers,
                   rate / 1e6, per_server / 1e6, bound / 1e6, 100 * per_server / bound);
    }
  }
  return result;
}

}  // namespace tutti
