#include "strategies/parameter_server/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "fabric/capabilities.h"
#include "strategies/gradient_sum.h"
#include "strategies/parameter_layout.h"
#include "strategies/parameter_server/costs.h"
#include "strategies/parameter_server/layout.h"

namespace tutti::parameter_server {
namespace {

constexpr int64_t kTriedOneByOne = 16;  // larger numbers of servers grow by a quarter
constexpr int64_t kMostServers = 4096;
constexpr double kMostLoad = 0.999;  // of a link, by others
constexpr double kAsFast = 1.01;

bool waits_for_all(const Config& c) {
  return c.consistency == ConsistencyKind::kBsp || c.consistency == ConsistencyKind::kBackup;
}

// Seconds per byte through a server's link and through the worker's own link.
struct Lanes {
  double server = 0, own = 0;
};

// A group of workers with equal speeds and costs.
struct Kind {
  double speed = 1, overhead_s = 0;  // flops per second; time of a layer, forward or backward
  double pass_s = 0;
  int64_t local = 0;  // parameters on its machine, in grains
  int64_t host = -1;  // a machine of this kind, if it holds parameters
  auto key() const { return std::tuple(speed, overhead_s, pass_s, local); }
  bool operator<(const Kind& other) const { return key() < other.key(); }
};

class Estimate {
 public:
  Estimate(const Config& config, const PlanInput& input)
      : config_(config), input_(input), cluster_(input.cluster) {
    element_ = static_cast<double>(sum_element_bytes(input.task));
    workers_ = static_cast<double>(cluster_.workers);
    pulls_ = 1.0 / static_cast<double>(config.pull_every);
    samples_ = std::ceil(static_cast<double>(input.task.global_batch) / workers_);
    find_layers();
    find_kinds();
  }

  double step_s() const { return waits_for_all(config_) ? in_lockstep() : by_themselves(); }

 private:
  struct LayerCost {
    Range parameters;
    double flops = 0;
  };

  // The rows of a sparse model that a batch touches count as one vector of their values.
  void find_layers() {
    const Architecture& all = input_.architecture;
    if (all.row_width > 0) {
      values_ = static_cast<size_t>(touched_rows(input_)) * static_cast<size_t>(all.row_width);
      layers_ = {{{0, values_}, all.forward_flops()}};
      for (size_t i = 0; i < static_cast<size_t>(config_.servers); ++i)
        shards_.push_back(part_of(values_, static_cast<size_t>(config_.servers), i));
      return;
    }
    values_ = all.parameter_count;
    for (const Layer& layer : all.layers) {
      LayerCost cost{{0, 0}, layer.flops};
      if (!layer.parameters.empty())
        cost.parameters = {all.parameters[layer.parameters.front()].range.begin,
                           all.parameters[layer.parameters.back()].range.end};
      layers_.push_back(cost);
    }
    // One large shard stands for the shards of a server, which have the same total size.
    Config whole = config_;
    whole.shards_per_server = 1;
    shards_ = make_shards(all, whole, input_.optimizer);
  }

  // Returns the expected factor by which computing takes longer. In lockstep one worker that is
  // slow by chance holds up all.
  double slowness_of(int64_t worker) const {
    double slower = 1;
    for (const StragglerConfig& each : cluster_.stragglers) {
      if (each.node >= 0 && each.node != worker) continue;
      if (each.kind == StragglerKind::kConstant) slower *= each.factor;
      if (each.kind != StragglerKind::kRandom) continue;
      const double chance = config_.consistency == ConsistencyKind::kBsp && each.node < 0
                                ? 1 - std::pow(1 - each.probability, workers_)
                                : each.probability;
      slower *= 1 + (each.factor - 1) * chance;
    }
    return slower;
  }

  void find_kinds() {
    hosts_ = hosts_of(cluster_, cluster_.workers);
    held_.assign(static_cast<size_t>(hosts_), 0);
    for (size_t j = 0; j < shards_.size() && cluster_.colocated; ++j)
      held_[j % held_.size()] += bytes_of(j);
    for (int64_t worker = 0; worker < cluster_.workers; ++worker) {
      constexpr double kGrain = 256;  // bytes; shards may differ by one value
      const double slower = slowness_of(worker);
      const int64_t host = host_of(cluster_, worker);
      const double held = held_[static_cast<size_t>(host)];
      ++kinds_[{.speed = speed_of(cluster_, worker) / slower,
                .overhead_s = slower * overhead_of(cluster_, worker, 0, 1),
                .pass_s = slower * overhead_of(cluster_, worker, 1, 0),
                .local = static_cast<int64_t>(std::ceil(held / kGrain)),
                .host = held > 0 ? host : -1}];
    }
  }

  double per_host() const {
    return std::min(workers_, static_cast<double>(cluster_.nodes_per_host));
  }
  double bytes_of(size_t shard) const {
    return static_cast<double>(shards_[shard].size() * sizeof(float));
  }
  double held_on(int64_t host) const { return host < 0 ? 0 : held_[static_cast<size_t>(host)]; }
  // Returns the most bytes of parameters that a machine with servers holds.
  double most_held() const {
    double most = 0;
    for (size_t j = 0; j < shards_.size(); ++j) most = std::max(most, bytes_of(j));
    for (const double held : held_) most = std::max(most, held);
    return most;
  }
  double all_bytes() const { return static_cast<double>(values_ * sizeof(float)); }
  // Counts the workers that reach a server over the network.
  double remote() const { return cluster_.colocated ? workers_ - per_host() : workers_; }
  double latency_s() const {
    return 2 * cluster_.latency_s + (cluster_.racks > 1 ? 2 * cluster_.rack_latency_s : 0);
  }

  // Returns the bytes of a push by all workers on the fullest uplink of a rack, out and in.
  std::pair<double, double> uplink_bytes() const {
    std::pair<double, double> most{0, 0};
    if (cluster_.racks < 2) return most;
    std::vector<double> workers(static_cast<size_t>(cluster_.racks), 0), held(workers);
    for (int64_t node = 0; node < cluster_.workers + config_.servers; ++node) {
      const auto rack = static_cast<size_t>(rack_of(cluster_, node));
      if (node < cluster_.workers)
        ++workers[rack];
      else
        held[rack] += bytes_of(static_cast<size_t>(node - cluster_.workers));
    }
    for (size_t rack = 0; rack < workers.size(); ++rack) {
      most.first = std::max(most.first, workers[rack] * (all_bytes() - held[rack]));
      most.second = std::max(most.second, (workers_ - workers[rack]) * held[rack]);
    }
    return most;
  }

  // Returns the time from asking for parameters until the last gradient has reached the servers.
  double gradient_s(const Kind& kind, const Lanes& lanes, double compute) const {
    const bool by_layers = pulls_layers(config_) && input_.architecture.row_width == 0;
    const bool pushes_layers = !input_.task.deterministic && config_.pull_every == 1;
    const double width = element_ / sizeof(float);
    const double away = (all_bytes() - held_on(kind.host)) / all_bytes();
    const auto each_part = [&](Range range, auto visit) {
      for (size_t j = 0; j < shards_.size(); ++j) {
        const Range part{std::max(range.begin, shards_[j].begin),
                         std::min(range.end, shards_[j].end)};
        const bool here = kind.host >= 0 && static_cast<int64_t>(j) % hosts_ == kind.host;
        if (part.begin < part.end && !here) visit(j, part);
      }
    };
    double now = latency_s() * pulls_ + compute * kind.pass_s;
    for (const LayerCost& layer : layers_) {
      each_part(layer.parameters, [&](size_t j, Range part) {
        // Servers send in parallel, and each sends its first layers first.
        const auto size = static_cast<double>(shards_[j].size());
        const double there = by_layers ? static_cast<double>(part.end - shards_[j].begin) : size;
        now = std::max(now, pulls_ * (latency_s() + there * sizeof(float) * lanes.server));
        now = std::max(now, pulls_ * (latency_s() + there / size * away * all_bytes() * lanes.own));
      });
      now += compute * (samples_ * layer.flops / kind.speed + kind.overhead_s);
    }
    std::vector<double> server_until(shards_.size(), 0);
    double own_until = 0, backward_s = 0;
    for (const LayerCost& layer : layers_)
      backward_s += compute * (2 * samples_ * layer.flops / kind.speed + kind.overhead_s);
    if (!pushes_layers) now += backward_s;
    for (size_t i = layers_.size(); i-- > 0;) {
      const LayerCost& layer = layers_[i];
      if (pushes_layers)
        now += compute * (2 * samples_ * layer.flops / kind.speed + kind.overhead_s);
      each_part(layer.parameters, [&](size_t j, Range part) {
        const double bytes = pulls_ * width * static_cast<double>(part.size() * sizeof(float));
        server_until[j] = std::max(server_until[j], now) + bytes * lanes.server;
        own_until = std::max(own_until, now) + bytes * lanes.own;
      });
    }
    for (const double until : server_until) own_until = std::max(own_until, until);
    return std::max(now, own_until) + latency_s() * pulls_;
  }

  // Returns the time in which one server sums and applies `gradients` gradients of a shard.
  double update_s(double gradients) const {
    size_t largest = 0;
    for (const Range shard : shards_) largest = std::max(largest, shard.size());
    const auto size = static_cast<double>(largest);
    const auto all = static_cast<double>(input_.architecture.parameter_count);
    const OptimizerCost cost =
        input_.architecture.row_width > 0
            ? OptimizerCost{}
            : optimizer_cost(input_.optimizer, layout_of(input_.architecture));
    const double values = size * (3 + 2 * cost.values / all);
    return pulls_ * (((gradients + 1) * size * element_ + values * sizeof(float)) /
                         cluster_.memory_bandwidth +
                     cost.flops * size / all / cluster_.speed_flops);
  }

  // In lockstep all workers push at once, then pull at once.
  Lanes lanes_together() const {
    if (remote() <= 0) return {};
    const auto uplink = uplink_bytes();
    const double beside =
        cluster_.colocated
            ? std::ceil(static_cast<double>(shards_.size()) / static_cast<double>(hosts_))
            : 1;  // servers of a machine
    return {.server = remote() * beside / cluster_.bandwidth,
            .own = std::max(per_host() / cluster_.bandwidth, std::max(uplink.first, uplink.second) /
                                                                 std::max(1.0, all_bytes()) /
                                                                 cluster_.rack_bandwidth)};
  }

  double in_lockstep() const {
    std::vector<double> seconds;
    for (const auto& [kind, count] : kinds_)
      seconds.insert(seconds.end(), static_cast<size_t>(count),
                     gradient_s(kind, lanes_together(), 1));
    std::sort(seconds.begin(), seconds.end(), std::greater<>());
    const bool spares = config_.consistency == ConsistencyKind::kBackup;
    const auto spared =
        spares ? std::min(static_cast<size_t>(config_.backup), seconds.size() - 1) : 0;
    const double step_s = seconds[spared] + update_s(workers_);
    // The samples of those that are left out are computed again, so a batch takes more than a step.
    const auto counted = static_cast<double>(seconds.size() - spared);
    return step_s * static_cast<double>(seconds.size()) / counted;
  }

  // Links are shared with the other workers, so a worker gets what their load leaves over. Equal
  // workers, however, wait for the same link and fall into step, and then all want it at once.
  double cycle_s(const Kind& kind, double period_s) const {
    const double largest = most_held();
    const auto left = [&](double bytes) {
      return 1 - std::min(kMostLoad, pulls_ * bytes / cluster_.bandwidth / period_s);
    };
    const double served = remote() * held_on(kind.host);
    const double beside =
        cluster_.colocated ? per_host() * (all_bytes() - largest) : 0;  // at the server's link
    const Lanes lanes{
        .server = 1 / cluster_.bandwidth / left((remote() - 1) * largest + beside),
        .own = 1 / cluster_.bandwidth / left((per_host() - 1) * all_bytes() + served)};
    const double stolen = kind.host < 0 ? 0 : workers_ * update_s(1) / period_s;
    const double slower = 1 / (1 - std::min(0.5, stolen));
    return std::max(gradient_s(kind, remote() > 0 ? lanes : Lanes{}, slower),
                    gradient_s(kind, lanes_together(), slower)) +
           update_s(1);
  }

  // The time between two pushes of a worker depends on the load of the links, which in turn depends
  // on that time. So it is found by bisection.
  double by_themselves() const {
    const bool bounded = config_.consistency == ConsistencyKind::kSsp;
    const auto cycle = [&](double period_s) {
      double rate = 0, slowest_s = 0;
      for (const auto& [kind, count] : kinds_) {
        const double own_s = cycle_s(kind, period_s);
        slowest_s = std::max(slowest_s, own_s);
        rate += static_cast<double>(count) / own_s;
      }
      return bounded ? slowest_s : workers_ / rate;
    };
    const auto uplink = uplink_bytes();
    double low = std::max(workers_ * update_s(1),
                          pulls_ * (uplink.first + uplink.second) / cluster_.rack_bandwidth);
    double high = low + 1e-9;
    while (cycle(high) > high) high *= 2;
    for (int i = 0; i < 30; ++i) {
      const double middle = (low + high) / 2;
      (cycle(middle) > middle ? low : high) = middle;
    }
    return high;
  }

  const Config& config_;
  const PlanInput& input_;
  const ClusterConfig& cluster_;
  double element_ = 4, workers_ = 1, pulls_ = 1, samples_ = 1;
  int64_t hosts_ = 1;  // of workers
  size_t values_ = 0;  // that a worker pulls
  std::vector<LayerCost> layers_;
  std::vector<Range> shards_;  // by server
  std::vector<double> held_;   // bytes of servers on each worker's machine
  std::map<Kind, int64_t> kinds_;
};

std::vector<int64_t> numbers_to_try(int64_t least, int64_t most) {
  std::vector<int64_t> numbers;
  for (int64_t n = least; n <= most; n += n < kTriedOneByOne ? 1 : n / 4) numbers.push_back(n);
  for (const int64_t n : {most / 2, most})
    if (n >= least && std::find(numbers.begin(), numbers.end(), n) == numbers.end())
      numbers.push_back(n);
  return numbers;
}

}  // namespace

double step_seconds(const Config& config, const PlanInput& input) {
  return Estimate(config, input).step_s();
}

std::vector<ServerPlan> server_plans(const Config& config, const PlanInput& input) {
  const int64_t least = config.replicas + 1;
  // Processes of one machine send through its memory, so more servers would only share its cores.
  if (!capabilities_of(input.cluster).declared_hosts)
    return {{.servers = least, .colocated = false, .workers = input.cluster.workers}};
  // The norm of a gradient needs the whole gradient in one place.
  const int64_t hosts = hosts_of(input.cluster, input.cluster.workers);
  const int64_t most =
      input.optimizer.clip_norm > 0 ? 1 : std::clamp(input.cluster.workers, least, kMostServers);
  std::vector<ServerPlan> plans;
  for (const bool colocated : {true, false})
    for (const int64_t servers : numbers_to_try(least, most)) {
      // Servers take no machines from workers when the job wants them colocated, or when it names
      // machines that fail: those are meant to be workers.
      if (!colocated && (input.cluster.colocated || !input.cluster.faults.empty())) continue;
      ServerPlan each{.servers = servers, .colocated = colocated, .workers = input.cluster.workers};
      if (!colocated) {
        each.workers = std::min(each.workers, (hosts - servers) * input.cluster.nodes_per_host);
        if (each.workers < 1) continue;
        if (config.consistency == ConsistencyKind::kBackup && config.backup >= each.workers)
          continue;
      }
      Config trial = config;
      ClusterConfig cluster = input.cluster;
      take_plan(each, trial, cluster);
      each.step_s = step_seconds(
          trial, {input.task, cluster, input.optimizer, input.architecture, input.data});
      plans.push_back(each);
    }
  std::stable_sort(plans.begin(), plans.end(), [](const ServerPlan& a, const ServerPlan& b) {
    return a.step_s != b.step_s ? a.step_s < b.step_s : a.servers < b.servers;
  });
  // The estimate cannot tell apart what is as fast within a hundredth: fewest servers come first.
  const auto as_fast = std::find_if(plans.begin(), plans.end(), [&](const ServerPlan& each) {
    return each.step_s > kAsFast * plans.front().step_s;
  });
  std::stable_sort(plans.begin(), as_fast,
                   [](const ServerPlan& a, const ServerPlan& b) { return a.servers < b.servers; });
  return plans;
}

void take_plan(const ServerPlan& chosen, Config& config, ClusterConfig& cluster) {
  config.servers = chosen.servers;
  config.automatic = false;
  if (!capabilities_of(cluster).declared_hosts) return;
  cluster.colocated = chosen.colocated;
  if (!chosen.colocated) yield_machines(cluster, chosen.workers);
}

std::string in_words(const Config& config, const ClusterConfig& cluster) {
  const std::string count =
      config.servers == 1 ? "1 server" : fmt::format("{} servers", config.servers);
  if (!capabilities_of(cluster).declared_hosts) return count + ", on this machine";
  return fmt::format("{}, on {}", count,
                     cluster.colocated
                         ? config.servers == 1 ? "a worker's machine" : "the workers' machines"
                     : config.servers == 1 ? "a machine of its own"
                                           : "machines of their own");
}

}  // namespace tutti::parameter_server
