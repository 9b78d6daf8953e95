// `tutti bench model_parallel`: a transformer on two processes of this machine, its layers in two
// stages or split into two shards, against one process with two threads and against two workers
// that sum gradients.
#include <fmt/format.h>

#include "cli/bench.h"
#include "core/random.h"
#include "core/units.h"
#include "jobs/run_folder.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr size_t kCharacters = 120'000;
constexpr size_t kAlphabet = 64;

// A step takes about a tenth of a second on one core, so that what is sent is not all that counts.
std::vector<std::string> task(const std::string& text) {
  return {"name=bench",
          "task.data.kind=tokens",
          "task.data.path=" + text,
          "task.data.context=64",
          "task.data.validation=0.01",
          "task.data.test=0.01",
          "task.model.kind=transformer",
          "task.model.width=128",
          "task.model.depth=3",
          "task.model.heads=4",
          "task.global_batch=32",
          "task.epochs=1",
          "task.max_steps=30",
          "task.eval_every=1000",
          "optimizer.kind=adam",
          "optimizer.lr=0.001"};
}

struct Way {
  std::string name;
  std::vector<std::string> settings;
};
const std::vector<Way> kWays = {
    {"solo, 2 threads", {"strategy.kind=solo", "cluster.workers=1", "cluster.threads=2"}},
    {"solo, 1 thread", {"strategy.kind=solo", "cluster.workers=1"}},
    {"all-reduce direct, 2 workers",
     {"strategy.kind=allreduce", "strategy.topology=direct", "cluster.workers=2"}},
    {"all-reduce ring, 2 workers",
     {"strategy.kind=allreduce", "strategy.topology=ring", "cluster.workers=2"}},
    {"pipeline 1f1b, 2 stages",
     {"strategy.kind=pipeline", "strategy.schedule=1f1b", "cluster.workers=2"}},
    {"pipeline asynchronous, 2 stages",
     {"strategy.kind=pipeline", "strategy.schedule=asynchronous", "cluster.workers=2"}},
    {"tensor, 2 shards", {"strategy.kind=tensor", "cluster.workers=2"}},
};

struct Measured {
  std::vector<double> rates;  // samples/s
  double bytes = 0;           // sent by all nodes in a step
};

void measure(const TemporaryFolder& folder, const Way& way, int round, Measured& measured,
             const std::atomic<bool>& stop) {
  std::vector<std::string> sets = task(folder.path() + "/text");
  sets.insert(sets.end(), way.settings.begin(), way.settings.end());
  const json record = record_in(output_of(
      train_command(folder, fmt::format("run-{}-{}", round, way.settings.front()), sets), stop));
  measured.rates.push_back(record["samples_per_s"]);
  measured.bytes = record["bytes_sent"].get<double>() / record["steps"].get<double>();
}

}  // namespace

json bench_model_parallel(const BenchOptions& options, const std::atomic<bool>& stop) {
  const TemporaryFolder folder;
  std::string text;
  Random random(1, Stream::kTest);
  for (size_t i = 0; i < kCharacters; ++i) text += static_cast<char>(' ' + random.below(kAlphabet));
  write_file(folder.path() + "/text", text);
  std::vector<Measured> measured(kWays.size());
  for (int round = 0; round < options.rounds && !stop; ++round) {
    say(options, fmt::format("model_parallel: round {} of {}", round + 1, options.rounds));
    for (size_t i = 0; i < kWays.size() && !stop; ++i)
      measure(folder, kWays[i], round * static_cast<int>(kWays.size()) + static_cast<int>(i),
              measured[i], stop);
  }
  leave_if_stopped(stop);
  const double base = median(measured[0].rates);
  json result = json::array();
  if (!options.json)
    fmt::print("\n{:<34} {:>10} {:>12} {:>14}\n", "", "samples/s", "to solo", "sent a step");
  for (size_t i = 0; i < kWays.size(); ++i) {
    const double rate = median(measured[i].rates);
    const double ratio = base > 0 ? rate / base : 0;
    result.push_back({{"impl", kWays[i].name},
                      {"samples_per_s", rate},
                      {"rounds", measured[i].rates.size()},
                      {"ratio", ratio},
                      {"bytes_per_step", measured[i].bytes}});
    if (!options.json)
      fmt::print("{:<34} {:>10.0f} {:>11.2f}x {:>14}\n", kWays[i].name, rate, ratio,
                 human_quantity(measured[i].bytes, Unit::kBytes));
  }
  return result;
}

}  // namespace tutti
