// The cluster that a job runs on: plain settings, the same for every fabric. A real fabric refuses
// what it cannot do (a straggler, a bandwidth) rather than ignore it; see validate_cluster().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/schema.h"

namespace tutti {

enum class StragglerKind { kConstant, kRandom, kPause, kDrift, kWave };
constexpr auto words(StragglerKind) {
  return WordList<5>{"constant", "random", "pause", "drift", "wave"};
}

// How the slowness of a slow step is drawn.
enum class Slowness { kFixed, kUniform, kExponential, kLognormal };
constexpr auto words(Slowness) {
  return WordList<4>{"fixed", "uniform", "exponential", "lognormal"};
}

// One source of slowness. Which fields count depends on `kind`.
struct StragglerConfig {
  StragglerKind kind = StragglerKind::kConstant;
  int64_t node = -1;                         // -1: every worker
  double factor = 2;                         // how many times slower
  double probability = 0.1;                  // random: share of the steps that are slow
  Slowness distribution = Slowness::kFixed;  // random
  double at_s = 0;                           // pause, wave: when it begins
  double duration_s = 1;  // pause: how long; drift: until the factor is reached; wave: period
};

enum class FaultKind { kCrash, kLinkDown, kPartition };
constexpr auto words(FaultKind) { return WordList<3>{"crash", "link_down", "partition"}; }

struct FaultConfig {
  FaultKind kind = FaultKind::kCrash;
  double at_s = 0;
  std::vector<int64_t> nodes;  // who crashes, whose link fails, or one side of the partition
  double restart_s = 0;        // crash: comes back after this long; 0: never
  double duration_s = 0;       // link_down, partition: heals after this long; 0: never
};

// Hosts that draw another power or cost another price than the rest. 0 stands for what the cluster,
// or for a price [footprint], says of all hosts.
struct HostKind {
  std::string name;
  std::vector<int64_t> hosts;
  double idle_watts = 0;
  double busy_watts = 0;
  double price = 0;       // for an hour
  double spot_price = 0;  // the same where it may be taken away
};

// Overheads are declared for a core that runs the reference kernel (jobs/reference_kernel.h) at
// this speed, and normalised times are those of such cores.
inline constexpr double kReferenceFlops = 20e9;

enum class FabricKind { kProcess, kVirtual };
constexpr auto words(FabricKind) { return WordList<2>{"process", "virtual"}; }

// Decides how messages that are under way at once share the links of a virtual cluster.
enum class NetworkSolver { kSimgrid, kIncremental, kSimgridFull };
constexpr auto words(NetworkSolver) {
  return WordList<3>{"simgrid", "incremental", "simgrid_full"};
}

struct ClusterConfig {
  FabricKind fabric = FabricKind::kProcess;
  int64_t workers = 2;
  double timeout_s = 120;              // a wait without another deadline fails after this
  int64_t threads = 1;                 // of each worker
  std::vector<int64_t> thread_counts;  // where workers differ: of each; empty: `threads` of all
  int64_t racks = 1;  // groups of neighbours; on a virtual cluster a second network level

  // Of a process cluster: the last `remote` workers are not forked here, they join.
  int64_t remote = 0;
  bool remote_servers = false;         // nodes besides the workers join, too, after them
  std::string listen = "127.0.0.1:0";  // where the launcher waits for them
  double join_timeout_s = 60;

  // The rest describes a virtual cluster.
  double speed_flops = 20e9;          // of one core
  std::vector<double> speed_factors;  // per node, relative to `speed`; empty: all 1
  // The fixed time of a pass over a batch, and of each layer in it, forward or backward. It is
  // spent on calls and small allocations and counts for one thread at the reference speed. The
  // defaults are what `tutti bench overhead` found (docs/definitions.md).
  double step_overhead_s = 7e-6;
  double layer_overhead_s = 4e-6;
  double memory_bytes = 8e9;
  std::vector<double> memory_factors;  // per node, relative to `memory`; empty: all 1
  double memory_bandwidth = 10e9;      // bytes per second, for sums and optimizer updates
  // A cache of this size speeds up such work by the part of its memory that fits. 0: there is none.
  double cache_bytes = 0;
  double cache_bandwidth = 100e9;
  // A step also deals samples, keeps books and so on. Counted like `step_overhead`.
  double loop_overhead_s = 0;
  // Between nodes of one host: messages, and what one stores into a window until another sees it.
  double host_bandwidth = 0;  // 0: that of the memory
  double host_latency_s = 500e-9;
  double visibility_s = 200e-9;
  int64_t nodes_per_host = 1;      // more than 1: they share memory and the host's link
  int64_t shared_cores = 0;        // that all nodes compute on; 0: each has cores of its own
  bool colocated = false;          // nodes besides the workers run on the workers' hosts, in turn
  double bandwidth = 125e6;        // bytes per second of a host's link
  double latency_s = 50e-6;        // of a host's link, one way
  double rack_bandwidth = 1.25e9;  // of a rack's uplink
  double rack_latency_s = 50e-6;
  NetworkSolver network_solver = NetworkSolver::kSimgrid;
  double detect_s = 1;  // a peer behind a dead link is lost after this long
  double idle_watts = 50;
  double busy_watts = 100;
  std::vector<HostKind> host_kinds;
  double link_idle_watts = 1;  // of a link: its two ports
  double link_busy_watts = 2;  // both ways full
  bool cost_only = false;
  std::vector<StragglerConfig> stragglers;
  std::vector<FaultConfig> faults;
};

void visit(Visitor& visitor, ClusterConfig& config);

// Throws ConfigError naming the two settings that contradict each other. `nodes` counts the workers
// and the nodes that a strategy has besides them.
void validate_cluster(const ClusterConfig& config, int64_t nodes);

// Leaves the first `workers` nodes of a larger cluster, with what concerns them.
void shrink_cluster(ClusterConfig& config, int64_t workers);

// Leaves these nodes of a larger cluster, in this order, with what concerns them. Only where each
// has a machine of its own in one rack is it plain where they are.
void keep_nodes(ClusterConfig& config, const std::vector<int64_t>& nodes);

// Keeps the first `workers` nodes as workers. The machines of the others go to the nodes that a
// strategy has besides its workers, so with one node per machine stragglers and faults stay.
void yield_machines(ClusterConfig& config, int64_t workers);

// What a node has of `speed` and of `memory`. Nodes besides the workers have all of it.
double speed_factor_of(const ClusterConfig& config, int64_t node);
int64_t threads_of(const ClusterConfig& config, int64_t node);
int64_t most_threads(const ClusterConfig& config);           // of any worker
double speed_of(const ClusterConfig& config, int64_t node);  // flops per second, all its threads
// Returns the seconds that beginning so many passes over a batch, calling so many layers and taking
// so many steps costs whatever the batch. A core that is half as fast takes twice as long. More
// threads do not help.
double overhead_of(const ClusterConfig& config, int64_t node, double passes, double layers,
                   double steps = 0);
double memory_of(const ClusterConfig& config, int64_t node);  // bytes
// Returns the seconds that moving so many bytes takes, for work that ranges over `range` bytes of
// memory: the part of them that the cache holds moves faster.
double memory_time_of(const ClusterConfig& config, double bytes, double range);
double host_bandwidth_of(const ClusterConfig& config);  // of a message between nodes of one host

// Nodes besides the workers have ranks from `workers` on, and a host and a link each unless they
// are colocated.
int64_t host_of(const ClusterConfig& config, int64_t node);
int64_t hosts_of(const ClusterConfig& config, int64_t nodes);  // machines of all of them

// How many of `nodes` are not started by the launcher: they join.
int64_t guests_of(const ClusterConfig& config, int64_t nodes);

// The power that a host draws, and its kind: null where it has none of its own.
double idle_watts_of(const ClusterConfig& config, int64_t host);
double busy_watts_of(const ClusterConfig& config, int64_t host);
const HostKind* kind_of_host(const ClusterConfig& config, int64_t host);

// The rack of a node: workers are dealt to racks in contiguous, nearly equal groups of hosts, and
// nodes besides them to all racks in turn.
int64_t rack_of(const ClusterConfig& config, int64_t node);

}  // namespace tutti
