#include "fabric/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/range.h"

namespace tutti {
namespace {

constexpr double kMostThreads = 1024;

void visit(Visitor& v, StragglerConfig& c) {
  using Kind = StragglerKind;
  choice(v, "kind", c.kind, "what slows the node down");
  v.field("node", c.node, {-1}, "which node; -1 for every worker");
  if (c.kind != Kind::kPause) v.field("factor", c.factor, {1}, "how many times slower");
  if (c.kind == Kind::kRandom) {
    v.field("probability", c.probability, kFraction, "share of the steps that are slow");
    choice(v, "distribution", c.distribution,
           "how the slowness of a slow step is drawn; its mean is `factor`");
  }
  if (c.kind == Kind::kPause || c.kind == Kind::kWave)
    v.quantity("at", c.at_s, Unit::kSeconds, "when the pause or the first wave begins");
  if (c.kind == Kind::kPause || c.kind == Kind::kDrift || c.kind == Kind::kWave)
    v.quantity("duration", c.duration_s, Unit::kSeconds,
               "length of the pause, the time over which a drift reaches `factor`, or from one "
               "wave to the next: in its first half a node slows down to `factor` and recovers, "
               "in the second it is as fast as ever");
}

void visit(Visitor& v, FaultConfig& c) {
  choice(v, "kind", c.kind, "what fails");
  v.quantity("at", c.at_s, Unit::kSeconds, "when it fails");
  v.field("nodes", c.nodes, kNotNegative, "who fails, or one side of the partition");
  if (c.kind == FaultKind::kCrash)
    v.quantity("restart", c.restart_s, Unit::kSeconds, "comes back after this long; 0: never");
  else
    v.quantity("duration", c.duration_s, Unit::kSeconds, "heals after this long; 0: never");
}

void visit(Visitor& v, HostKind& c) {
  v.field("name", c.name, "what to call them");
  v.field("hosts", c.hosts, kNotNegative, "which hosts, from 0");
  v.quantity("idle_power", c.idle_watts, Unit::kWatts,
             "of such a host when idle; 0: as `cluster.idle_power`");
  v.quantity("busy_power", c.busy_watts, Unit::kWatts,
             "with all its cores busy; 0: as `cluster.busy_power`");
  v.field("price", c.price, kNotNegative, "of one of them for an hour; 0: as `footprint.price`");
  v.field("spot_price", c.spot_price, kNotNegative,
          "the same where it may be taken away; 0: as `footprint.spot_price`");
}

void refuse_beyond(int64_t nodes, int64_t node, const std::string& key) {
  if (node >= nodes)
    throw ConfigError(
        key,
        fmt::format(
            "{} names node {}, but nodes are 0 to {}; name one of them, or raise cluster.workers",
            key, node, nodes - 1));
}

int64_t worker_hosts(const ClusterConfig& c) {
  return (c.workers + c.nodes_per_host - 1) / c.nodes_per_host;
}

// Each kind has hosts that there are, and no host is of two kinds or draws less when it is busy.
void validate_host_kinds(const ClusterConfig& c, int64_t nodes) {
  const int64_t hosts = c.host_kinds.empty() ? 0 : hosts_of(c, nodes);
  std::set<int64_t> seen;
  for (size_t i = 0; i < c.host_kinds.size(); ++i) {
    const HostKind& kind = c.host_kinds[i];
    const std::string key = fmt::format("cluster.host_kinds[{}].hosts", i);
    if (kind.hosts.empty())
      throw ConfigError(key, fmt::format("{} is empty: a kind needs hosts; add hosts = [0]", key));
    for (const int64_t host : kind.hosts) {
      if (host >= hosts)
        throw ConfigError(key, fmt::format("{} names host {}, but hosts are 0 to {}; name one of "
                                           "them, or raise cluster.workers",
                                           key, host, hosts - 1));
      if (!seen.insert(host).second)
        throw ConfigError(key, fmt::format("{} names host {}, which was named before; a host is of "
                                           "one kind",
                                           key, host));
      if (busy_watts_of(c, host) < idle_watts_of(c, host))
        throw ConfigError(key,
                          fmt::format("{} names host {}, which would draw {} W when idle and "
                                      "{} W when busy; raise busy_power or lower idle_power",
                                      key, host, idle_watts_of(c, host), busy_watts_of(c, host)));
    }
  }
}

}  // namespace

void visit(Visitor& v, ClusterConfig& c) {
  choice(v, "fabric", c.fabric, "what carries the bytes");
  v.field("workers", c.workers, {1, 65535}, "number of workers");
  v.quantity("timeout", c.timeout_s, Unit::kSeconds, "the longest that a node waits for a peer");
  v.field("threads", c.threads, {1, kMostThreads}, "threads of each worker");
  v.field("thread_counts", c.thread_counts, {1, kMostThreads},
          "per worker, in place of `threads`, where they differ");
  v.field(
      "racks", c.racks, kAtLeastOne,
      "groups of neighbouring nodes; on a virtual cluster more than 1 makes a two-level network");
  if (c.fabric == FabricKind::kProcess) {
    v.field("remote", c.remote, kNotNegative,
            "how many of the workers, the last ones, are not started here but by `tutti join`");
    v.field("remote_servers", c.remote_servers,
            "the nodes that a strategy has besides its workers join, too, after the workers");
    v.field("listen", c.listen,
            "host:port where the launcher waits for them; loopback unless told otherwise, port 0 "
            "is a free one");
    v.quantity("join_timeout", c.join_timeout_s, Unit::kSeconds, "how long it waits for them");
  }
  if (c.fabric != FabricKind::kVirtual) return;
  v.quantity("speed", c.speed_flops, Unit::kFlopsPerSecond, "speed of one core");
  v.field("speed_factors", c.speed_factors, kPositive, "per worker, relative to `speed`");
  v.quantity("step_overhead", c.step_overhead_s, Unit::kSeconds,
             "fixed cost of a pass over a batch, at a `speed` of 20 GFLOP/s; a slower core takes "
             "longer in proportion");
  v.quantity("layer_overhead", c.layer_overhead_s, Unit::kSeconds,
             "fixed cost of each layer of a pass, forward and backward, at the same speed");
  v.quantity("memory", c.memory_bytes, Unit::kBytes, "memory of a host");
  v.field("memory_factors", c.memory_factors, kPositive, "per worker, relative to `memory`");
  v.quantity("memory_bandwidth", c.memory_bandwidth, Unit::kBytesPerSecond,
             "memory traffic of a core, for sums and optimizer updates");
  v.quantity(
      "cache", c.cache_bytes, Unit::kBytes,
      "as much of the memory that such work ranges over moves at `cache_bandwidth`; 0: none");
  v.quantity("cache_bandwidth", c.cache_bandwidth, Unit::kBytesPerSecond,
             "traffic of a core with its caches");
  v.quantity("loop_overhead", c.loop_overhead_s, Unit::kSeconds,
             "fixed cost of a step besides its passes: dealing samples, keeping books; at the same "
             "speed as `step_overhead`");
  v.quantity("host_bandwidth", c.host_bandwidth, Unit::kBytesPerSecond,
             "of a message between nodes of one host; 0: `memory_bandwidth`");
  v.quantity("host_latency", c.host_latency_s, Unit::kSeconds,
             "of a message between nodes of one host");
  v.quantity("visibility", c.visibility_s, Unit::kSeconds,
             "until a node sees what another one of its host stores into a shared window");
  v.field("nodes_per_host", c.nodes_per_host, kAtLeastOne,
          "nodes that share a host, its memory and its link");
  v.field("shared_cores", c.shared_cores, {0, 65535},
          "cores that all nodes of the cluster compute on together, as where one machine plays all "
          "of them; 0: each node has its own");
  v.field("colocated", c.colocated,
          "nodes besides the workers run on the workers' hosts, in turn, and share their cores");
  v.quantity("bandwidth", c.bandwidth, Unit::kBytesPerSecond, "of a host's link, each way");
  v.quantity("latency", c.latency_s, Unit::kSeconds, "of a host's link, one way");
  v.quantity("rack_bandwidth", c.rack_bandwidth, Unit::kBytesPerSecond, "of a rack's uplink");
  v.quantity("rack_latency", c.rack_latency_s, Unit::kSeconds, "of a rack's uplink, one way");
  choice(v, "network_solver", c.network_solver,
         "who shares the links among messages that are under way at once: SimGrid; a solver of our "
         "own that looks again only at links whose messages change, for hundreds of nodes; or "
         "SimGrid solving all links at every event, which is slow, to check the others "
         "(docs/fabrics.md)");
  v.quantity("detect", c.detect_s, Unit::kSeconds, "a peer behind a dead link is lost after this");
  v.quantity("idle_power", c.idle_watts, Unit::kWatts, "of an idle host");
  v.quantity("busy_power", c.busy_watts, Unit::kWatts, "of a host with all its cores busy");
  v.tables(
      "host_kinds", c.host_kinds.size(),
      [&](Visitor& inner, size_t i) {
        if (i == c.host_kinds.size()) c.host_kinds.emplace_back();
        visit(inner, c.host_kinds[i]);
      },
      "hosts that draw another power or cost another price than the rest");
  v.quantity("link_idle_power", c.link_idle_watts, Unit::kWatts, "of a link with its two ports");
  v.quantity("link_busy_power", c.link_busy_watts, Unit::kWatts,
             "of a link that is full both ways");
  v.field("cost_only", c.cost_only, "skip the arithmetic: times and bytes without learning");
  v.tables(
      "stragglers", c.stragglers.size(),
      [&](Visitor& inner, size_t i) {
        if (i == c.stragglers.size()) c.stragglers.emplace_back();
        visit(inner, c.stragglers[i]);
      },
      "sources of slowness");
  v.tables(
      "faults", c.faults.size(),
      [&](Visitor& inner, size_t i) {
        if (i == c.faults.size()) c.faults.emplace_back();
        visit(inner, c.faults[i]);
      },
      "what fails, and when");
}

void validate_cluster(const ClusterConfig& c, int64_t nodes) {
  for (const auto& [key, entries] : {std::pair{"cluster.speed_factors", c.speed_factors.size()},
                                     {"cluster.memory_factors", c.memory_factors.size()},
                                     {"cluster.thread_counts", c.thread_counts.size()}})
    if (entries > 0 && static_cast<int64_t>(entries) != c.workers)
      throw ConfigError(key, fmt::format("{} has {} entries but there are {} workers; give one per "
                                         "worker, or none",
                                         key, entries, c.workers));
  const int64_t hosts = worker_hosts(c);
  if (c.racks > hosts)
    throw ConfigError("cluster.racks",
                      fmt::format("cluster.racks = {} is more than the {} hosts of the cluster; "
                                  "lower it, or raise cluster.workers",
                                  c.racks, hosts));
  for (const auto& [key, value] : {std::pair{"speed", c.speed_flops},
                                   {"bandwidth", c.bandwidth},
                                   {"rack_bandwidth", c.rack_bandwidth},
                                   {"memory_bandwidth", c.memory_bandwidth},
                                   {"cache_bandwidth", c.cache_bandwidth},
                                   {"timeout", c.timeout_s},
                                   {"join_timeout", c.join_timeout_s}})
    if (value <= 0)
      throw ConfigError(std::string("cluster.") + key,
                        fmt::format("cluster.{} must be more than 0", key));
  if (c.remote >= c.workers)
    throw ConfigError(
        "cluster.remote",
        fmt::format("cluster.remote = {} leaves none of cluster.workers = {} here, but "
                    "rank 0 keeps the record of the run and stays with the launcher; "
                    "lower cluster.remote or raise cluster.workers",
                    c.remote, c.workers));
  if ((c.remote > 0 || c.remote_servers) && c.listen.rfind(':') == std::string::npos)
    throw ConfigError("cluster.listen",
                      fmt::format("cluster.listen = \"{}\" is no address; write it as host:port, "
                                  "such as 127.0.0.1:4000",
                                  c.listen));
  for (size_t i = 0; i < c.stragglers.size(); ++i)
    refuse_beyond(nodes, c.stragglers[i].node, fmt::format("cluster.stragglers[{}].node", i));
  for (size_t i = 0; i < c.faults.size(); ++i) {
    const std::string key = fmt::format("cluster.faults[{}].nodes", i);
    if (c.faults[i].nodes.empty())
      throw ConfigError(key, fmt::format("{} is empty: a fault needs nodes that fail; add nodes = "
                                         "[0]",
                                         key));
    for (int64_t node : c.faults[i].nodes) refuse_beyond(nodes, node, key);
  }
  validate_host_kinds(c, nodes);
}

int64_t guests_of(const ClusterConfig& c, int64_t nodes) {
  return c.remote + (c.remote_servers ? nodes - c.workers : 0);
}

const HostKind* kind_of_host(const ClusterConfig& c, int64_t host) {
  for (const HostKind& kind : c.host_kinds)
    if (std::find(kind.hosts.begin(), kind.hosts.end(), host) != kind.hosts.end()) return &kind;
  return nullptr;
}

double idle_watts_of(const ClusterConfig& c, int64_t host) {
  const HostKind* kind = kind_of_host(c, host);
  return kind && kind->idle_watts > 0 ? kind->idle_watts : c.idle_watts;
}

double busy_watts_of(const ClusterConfig& c, int64_t host) {
  const HostKind* kind = kind_of_host(c, host);
  return kind && kind->busy_watts > 0 ? kind->busy_watts : c.busy_watts;
}

double speed_factor_of(const ClusterConfig& c, int64_t node) {
  const auto index = static_cast<size_t>(node);
  return index < c.speed_factors.size() ? c.speed_factors[index] : 1;
}

int64_t threads_of(const ClusterConfig& c, int64_t node) {
  const auto index = static_cast<size_t>(node);
  return index < c.thread_counts.size() ? c.thread_counts[index] : c.threads;
}

int64_t most_threads(const ClusterConfig& c) {
  int64_t most = c.thread_counts.empty() ? c.threads : 1;
  for (const int64_t count : c.thread_counts) most = std::max(most, count);
  return most;
}

double speed_of(const ClusterConfig& c, int64_t node) {
  return c.speed_flops * speed_factor_of(c, node) * static_cast<double>(threads_of(c, node));
}

double overhead_of(const ClusterConfig& c, int64_t node, double passes, double layers,
                   double steps) {
  const double here = kReferenceFlops / (c.speed_flops * speed_factor_of(c, node));
  return here *
         (passes * c.step_overhead_s + layers * c.layer_overhead_s + steps * c.loop_overhead_s);
}

double memory_of(const ClusterConfig& c, int64_t node) {
  const auto index = static_cast<size_t>(node);
  return c.memory_bytes * (index < c.memory_factors.size() ? c.memory_factors[index] : 1);
}

double memory_time_of(const ClusterConfig& c, double bytes, double range) {
  const double cached = range > c.cache_bytes ? c.cache_bytes / range : 1;
  if (c.cache_bytes <= 0) return bytes / c.memory_bandwidth;
  return bytes * (cached / c.cache_bandwidth + (1 - cached) / c.memory_bandwidth);
}

double host_bandwidth_of(const ClusterConfig& c) {
  return c.host_bandwidth > 0 ? c.host_bandwidth : c.memory_bandwidth;
}

void shrink_cluster(ClusterConfig& c, int64_t workers) {
  if (c.workers <= workers) return;
  c.workers = workers;
  c.racks = std::min(c.racks, (workers + c.nodes_per_host - 1) / c.nodes_per_host);
  for (std::vector<double>* factors : {&c.speed_factors, &c.memory_factors})
    if (!factors->empty()) factors->resize(static_cast<size_t>(workers));
  if (!c.thread_counts.empty()) c.thread_counts.resize(static_cast<size_t>(workers));
  std::erase_if(c.stragglers, [&](const StragglerConfig& s) { return s.node >= workers; });
  for (FaultConfig& fault : c.faults)
    std::erase_if(fault.nodes, [&](int64_t node) { return node >= workers; });
  std::erase_if(c.faults, [](const FaultConfig& fault) { return fault.nodes.empty(); });
  for (HostKind& kind : c.host_kinds)
    std::erase_if(kind.hosts, [&](int64_t host) { return host >= worker_hosts(c); });
  std::erase_if(c.host_kinds, [](const HostKind& kind) { return kind.hosts.empty(); });
}

void keep_nodes(ClusterConfig& c, const std::vector<int64_t>& nodes) {
  TUTTI_CHECK(c.nodes_per_host == 1 && c.racks == 1);
  const auto keep = [&](auto& values) {
    if (values.empty()) return;
    auto kept = values;
    kept.clear();
    for (const int64_t node : nodes) kept.push_back(values.at(static_cast<size_t>(node)));
    values = std::move(kept);
  };
  keep(c.speed_factors);
  keep(c.memory_factors);
  keep(c.thread_counts);
  const auto place_of = [&](int64_t node) {  // among those that are kept, or -1
    const auto found = std::find(nodes.begin(), nodes.end(), node);
    return found == nodes.end() ? -1 : found - nodes.begin();
  };
  std::erase_if(c.stragglers, [&](StragglerConfig& s) {
    if (s.node < 0) return false;  // every worker
    s.node = place_of(s.node);
    return s.node < 0;
  });
  for (FaultConfig& fault : c.faults) {
    for (int64_t& node : fault.nodes) node = place_of(node);
    std::erase_if(fault.nodes, [](int64_t node) { return node < 0; });
  }
  std::erase_if(c.faults, [](const FaultConfig& fault) { return fault.nodes.empty(); });
  c.workers = std::ssize(nodes);
}

void yield_machines(ClusterConfig& c, int64_t workers) {
  const std::vector<StragglerConfig> stragglers = c.stragglers;
  const std::vector<FaultConfig> faults = c.faults;
  const std::vector<HostKind> host_kinds = c.host_kinds;
  shrink_cluster(c, workers);
  if (c.nodes_per_host > 1) return;  // the ranks would name other machines
  c.stragglers = stragglers;
  c.faults = faults;
  c.host_kinds = host_kinds;
}

int64_t hosts_of(const ClusterConfig& c, int64_t nodes) {
  int64_t hosts = worker_hosts(c);
  for (int64_t node = c.workers; node < nodes; ++node)
    hosts = std::max(hosts, host_of(c, node) + 1);
  return hosts;
}

int64_t host_of(const ClusterConfig& c, int64_t node) {
  if (node < c.workers) return node / c.nodes_per_host;
  if (c.colocated) return (node - c.workers) % worker_hosts(c);
  return worker_hosts(c) + node - c.workers;
}

int64_t rack_of(const ClusterConfig& c, int64_t node) {
  if (node >= c.workers && !c.colocated) return (node - c.workers) % c.racks;
  return static_cast<int64_t>(part_with(static_cast<size_t>(worker_hosts(c)),
                                        static_cast<size_t>(c.racks),
                                        static_cast<size_t>(host_of(c, node))));
}

}  // namespace tutti
