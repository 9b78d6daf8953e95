#include "strategies/parameter_server/config.h"

#include <fmt/format.h>

#include "core/error.h"
#include "optimizers/sgd.h"
#include "strategies/parameter_server/messages.h"

namespace tutti::parameter_server {

int64_t shards_of(const Config& c) {
  const int64_t unset = c.replicas > 0 ? 2 : 1;
  return c.servers * (c.shards_per_server > 0 ? c.shards_per_server : unset);
}

void visit(Visitor& v, Config& c) {
  Division servers{.parts = c.servers, .places = {}, .automatic = c.automatic};
  v.division("servers", servers,
             "nodes that hold the parameters, besides the workers; the last ranks; auto: as many "
             "as are fastest on the machines of the cluster, on the workers' or in their place");
  if (!servers.automatic && (!servers.places.empty() || servers.parts < 1 || servers.parts > 4096))
    throw ConfigError("strategy.servers",
                      "strategy.servers is a number from 1 to 4096 or \"auto\"");
  c.servers = servers.automatic ? 1 : servers.parts;
  c.automatic = servers.automatic;
  choice(v, "consistency", c.consistency,
         "how far workers may be apart: a barrier, not bounded, bounded, bounded for each by how "
         "busy its processor is, bounded for all by who waits, or a barrier that does not wait "
         "for the last");
  v.field(
      "staleness", c.staleness, {0, static_cast<double>(kMostBound)},
      "ssp: steps that the fastest worker may be ahead; adaptive, waiting: where the bound starts");
  v.field("executions", c.executions, kAtLeastOne,
          "adaptive, waiting: least steps of the slowest worker between two synchronisations");
  v.field("backup", c.backup, kNotNegative, "backup: late workers that a step does without");
  v.field("pull_every", c.pull_every, {1, 1e6},
          "steps between two pulls; in between a worker updates a copy of its own");
  choice(v, "pull", c.pull,
         "what the forward pass of a layer waits for: the parameters of this layer and of those "
         "before, or all; always all with replicas");
  v.field("prefetch", c.prefetch,
          "ask for the next parameters while this step's gradient is computed");
  choice(v, "rate", c.rate,
         "how the learning rate follows delays: not (ConSGD), divided by the staleness of each "
         "gradient, divided by how far its worker is behind the fastest, or such that the updates "
         "of a clock count as their mean (DynSGD)");
  v.field("update_weight", c.update_weight, kNotNegative,
          "rate = constant: what a worker's own update is multiplied by before it is added; 0: "
          "1 / workers");
  choice(v, "shards", c.shards,
         "how servers share the parameters: evenly, or at borders of layers, which auto does for "
         "optimizers that need whole tensors");
  v.field("replicas", c.replicas, {0, kMostMembers - 2},
          "copies of each shard on other servers: as many servers may be lost at once");
  v.field("shards_per_server", c.shards_per_server, {0, 64},
          "parts of a server's parameters, which go to different servers when it is lost; needs "
          "replicas; 0: 2 with replicas, 1 without");
  v.field("snapshot_every", c.snapshot_every, kNotNegative,
          "updates between two snapshots of every server in the folder of the run; 0: none");
  v.field("resume", c.resume,
          "folder of a run whose last snapshot to go on from; \"\": begin anew");
}

namespace {

bool is_asynchronous(const Config& c) {
  return c.consistency == ConsistencyKind::kAsp || c.consistency == ConsistencyKind::kSsp ||
         follows_reports(c);
}

void validate_deterministic(const Config& c) {
  if (c.consistency != ConsistencyKind::kBsp)
    throw ConfigError("strategy.consistency",
                      fmt::format("task.deterministic = true needs strategy.consistency = \"bsp\": "
                                  "with \"{}\" the result depends on who is how fast",
                                  word_of(c.consistency)));
  if (c.pull_every > 1)
    throw ConfigError("strategy.pull_every",
                      fmt::format("task.deterministic = true needs strategy.pull_every = 1, not "
                                  "{}: local steps depend on the number of workers",
                                  c.pull_every));
}

void validate_prefetch(const Config& c) {
  if (!is_asynchronous(c))
    throw ConfigError("strategy.prefetch",
                      fmt::format("strategy.prefetch = true has nothing to fetch with "
                                  "strategy.consistency = \"{}\": the next parameters do not exist "
                                  "before every gradient is there; use ssp, asp or adaptive",
                                  word_of(c.consistency)));
  if (c.consistency != ConsistencyKind::kAsp && c.staleness < 1 && asks_ahead_of_push(c))
    throw ConfigError("strategy.staleness",
                      "strategy.prefetch = true reads parameters that lack the worker's own last "
                      "step, which strategy.staleness = 0 forbids; set it to 1 or more, or "
                      "strategy.pull_every above 1, where a push is under way long before");
}

// The sums of a clock are kept until the last worker has pushed to it, and are revised linearly.
void validate_dynamic(const Config& c, const TaskConfig& task) {
  const std::string rule = "strategy.rate = \"dynamic\" revises the updates of a clock";
  if (c.consistency == ConsistencyKind::kAsp)
    throw ConfigError("strategy.consistency",
                      rule +
                          " until the slowest worker has made its own, and without a bound any "
                          "number of clocks would have to be kept; use ssp, adaptive or waiting");
  if (is_sparse(task.model))
    throw ConfigError("strategy.rate",
                      fmt::format("{}, which would need a copy of every row of task.model = "
                                  "\"{}\" for each of them; use constant, staleness or worker",
                                  rule, task.model.kind()));
}

// Rows are pulled when it is known which, and one step at a time.
void validate_sparse(const Config& c, const TaskConfig& task) {
  const std::string model = fmt::format(
      "task.model = \"{}\" moves the rows of each batch by "
      "themselves",
      task.model.kind());
  if (c.pull_every > 1)
    throw ConfigError("strategy.pull_every",
                      fmt::format("{}, but strategy.pull_every = {} goes on without pulling; set "
                                  "it to 1",
                                  model, c.pull_every));
  if (c.prefetch)
    throw ConfigError("strategy.prefetch",
                      model +
                          ", and which the next one needs is not known ahead; leave "
                          "strategy.prefetch out");
  if (c.shards != ShardKind::kAuto)
    throw ConfigError("strategy.shards",
                      fmt::format("{}, spread by their keys; strategy.shards = \"{}\" does not "
                                  "apply, leave it out",
                                  model, word_of(c.shards)));
}

}  // namespace

void validate(const Config& c, const TaskConfig& task, const ClusterConfig& cluster) {
  if (c.replicas >= c.servers && !c.automatic)
    throw ConfigError("strategy.replicas",
                      fmt::format("strategy.replicas = {} needs at least {} servers to be copied "
                                  "to, but strategy.servers = {}; lower it, or add servers",
                                  c.replicas, c.replicas + 1, c.servers));
  if (c.replicas == 0 && c.shards_per_server > 1)
    throw ConfigError("strategy.shards_per_server",
                      fmt::format("strategy.shards_per_server = {} is for moving shards to other "
                                  "servers, but with strategy.replicas = 0 nobody has a copy; set "
                                  "strategy.replicas, or leave it out",
                                  c.shards_per_server));
  if (c.consistency == ConsistencyKind::kBackup && c.backup >= cluster.workers)
    throw ConfigError("strategy.backup",
                      fmt::format("strategy.backup = {} leaves no worker to wait for, as "
                                  "cluster.workers = {}; lower it, or add workers",
                                  c.backup, cluster.workers));
  if (c.consistency == ConsistencyKind::kBackup && task.partition != Partition::kGlobal)
    throw ConfigError("strategy.consistency",
                      fmt::format("strategy.consistency = \"backup\" gives the samples of late "
                                  "gradients to whoever is free, which needs task.partition = "
                                  "\"global\", not \"{}\"",
                                  word_of(task.partition)));
  if (c.consistency == ConsistencyKind::kBackup && c.pull_every > 1)
    throw ConfigError("strategy.pull_every",
                      "strategy.consistency = \"backup\" takes late gradients back one by one, but "
                      "strategy.pull_every is more than 1; leave one of them out");
  if (c.rate != RateKind::kConstant && !is_asynchronous(c))
    throw ConfigError(
        "strategy.rate",
        fmt::format("strategy.rate = \"{}\" has no effect with strategy.consistency = "
                    "\"{}\", where no gradient is stale",
                    word_of(c.rate), word_of(c.consistency)));
  if (c.update_weight > 0 && (c.rate != RateKind::kConstant || !is_asynchronous(c)))
    throw ConfigError("strategy.update_weight",
                      fmt::format("strategy.update_weight = {} needs strategy.rate = \"constant\" "
                                  "and a consistency that applies each gradient by itself, not "
                                  "\"{}\" with \"{}\"",
                                  c.update_weight, word_of(c.rate),
                                  word_of(c.consistency)));
  if (c.snapshot_every > 0 && cluster.remote_servers)
    throw ConfigError("strategy.snapshot_every",
                      "strategy.snapshot_every writes snapshots where the launcher is, but with "
                      "cluster.remote_servers = true the servers are on other hosts; set it to 0, "
                      "or cluster.remote_servers = false");
  if (c.rate == RateKind::kDynamic) validate_dynamic(c, task);
  if (task.deterministic) validate_deterministic(c);
  if (is_sparse(task.model)) validate_sparse(c, task);
  if (c.prefetch) validate_prefetch(c);
}

void validate(const Config& c, const OptimizerConfig& optimizer) {
  if (c.rate == RateKind::kDynamic && (!optimizer.rule.find<SgdRule>() || optimizer.clip_norm > 0))
    throw ConfigError(
        "strategy.rate",
        fmt::format("strategy.rate = \"dynamic\" takes back a part of earlier "
                    "updates, which optimizer.kind = \"{}\"{} cannot; use sgd",
                    optimizer.kind(), optimizer.clip_norm > 0 ? " with clip_norm" : ""));
  if (optimizer.clip_norm > 0 && c.servers > 1)
    throw ConfigError("optimizer.clip_norm",
                      fmt::format("optimizer.clip_norm = {} needs the norm of the whole gradient, "
                                  "but strategy.servers = {} hold a part each; use one server, or "
                                  "leave it out",
                                  optimizer.clip_norm, c.servers));
  if (optimizer.clip_norm > 0 && c.replicas > 0)
    throw ConfigError("optimizer.clip_norm",
                      fmt::format("optimizer.clip_norm = {} needs one server, which has the whole "
                                  "gradient, but strategy.replicas = {} needs {}; leave one of the "
                                  "two out",
                                  optimizer.clip_norm, c.replicas, c.replicas + 1));
  if (c.shards == ShardKind::kBytes && needs_tensors(optimizer))
    throw ConfigError("strategy.shards",
                      fmt::format("strategy.shards = \"bytes\" cuts through tensors, which "
                                  "optimizer.kind = \"{}\" needs as a whole; use layers or auto",
                                  optimizer.kind()));
}

}  // namespace tutti::parameter_server
