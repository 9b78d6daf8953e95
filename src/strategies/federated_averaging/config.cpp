#include "strategies/federated_averaging/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "optimizers/momentum.h"
#include "optimizers/sgd.h"

namespace tutti::federated_averaging {
namespace {

constexpr Bounds kShare{1e-9, 1};

// What a kind has where a job says nothing. Plain SGD with lr = 1 is the average itself. The
// adaptive rules divide by the root of the squares, so that lr is about how far each parameter
// moves in a round: 1 would leave nothing of what was learnt. With eps = 0.001, Reddi et al. find
// rates from 0.003 to 0.1 best, and have no momentum with adagrad.
ServerOptimizerConfig usual(ServerKind kind) {
  ServerOptimizerConfig config;
  config.kind = kind;
  if (config.adapts()) config.lr = 0.03;
  if (kind == ServerKind::kAdagrad) config.beta1 = 0;
  return config;
}

// `before` is the kind that was chosen before: what was never set suits the kind.
void visit_server(Visitor& v, ServerOptimizerConfig& c, ServerKind before) {
  const ServerOptimizerConfig old = usual(before), own = usual(c.kind);
  if (c.lr == old.lr) c.lr = own.lr;
  if (c.beta1 == old.beta1) c.beta1 = own.beta1;
  v.field("lr", c.lr, kPositive,
          "rate of the server's optimizer; by default 1 (sgd, momentum), 0.03 (the adaptive ones)");
  if (c.kind == ServerKind::kMomentum)
    v.field("momentum", c.momentum, kBelowOne, "share of its velocity kept");
  if (c.adapts()) {
    v.field("beta1", c.beta1, kBelowOne,
            "share of the mean of differences kept; by default 0 (adagrad), 0.9 (adam, yogi)");
    if (c.kind != ServerKind::kAdagrad)
      v.field("beta2", c.beta2, kBelowOne, "share of the mean of their squares that is kept");
    v.field("eps", c.eps, kPositive, "degree of adaptivity, added to the root of the squares");
    choice(v, "second_moments", c.second_moments,
           "where the means of squares start: at eps^2 as in the paper, or at 0 as in Flower");
  }
}

void visit_availability(Visitor& v, AvailabilityConfig& c) {
  if (c.kind == AvailabilityKind::kAlways) return;
  v.field("share", c.share, kShare, "of the rounds in which a client is online");
  if (c.kind == AvailabilityKind::kDiurnal)
    v.field("period", c.period, kAtLeastOne, "rounds in a day; clients live in all time zones");
}

}  // namespace

void visit(Visitor& v, Config& c) {
  v.field("clients", c.clients, {0, 1e7}, "holders of data; 0: one per worker");
  v.field("fraction", c.fraction, kShare, "of the clients that take part in a round");
  v.field("over_select", c.over_select, {1, 100},
          "times as many are asked, and the first to answer are taken");
  choice(v, "algorithm", c.algorithm,
         "what clients correct and how the server weighs: nothing and by samples, control "
         "variates, or by local steps too");
  if (has_controls(c))
    choice(v, "weigh_by", c.weigh_by,
           "all clients count alike, as in the paper, or by their samples; models and control "
           "variates by the same rule");
  v.field("local_steps", c.local_steps, kNotNegative,
          "steps that a client takes in a round; 0: local_epochs");
  if (c.local_steps == 0)
    v.field("local_epochs", c.local_epochs, kAtLeastOne,
            "passes of a client over its own samples in a round");
  v.field("client_batch", c.client_batch, kNotNegative,
          "samples of a local step; 0: task.global_batch divided by the clients of a round");
  v.field("proximal", c.proximal, kNotNegative,
          "FedProx: this times the distance from the server's parameters is added to gradients");
  const ServerKind before = c.server.kind;
  component(
      v, "server", c.server.kind, [&](Visitor& inner) { visit_server(inner, c.server, before); },
      "what takes the averaged difference for a gradient; sgd with lr = 1 is the plain average");
  component(
      v, "split", c.split.kind, [&](Visitor& inner) { visit(inner, c.split); },
      "which client holds which samples");
  component(
      v, "availability", c.availability.kind,
      [&](Visitor& inner) { visit_availability(inner, c.availability); },
      "when clients are online");
  v.field("dropout", c.dropout, kBelowOne, "share of the clients that begin and do not answer");
  v.quantity("deadline", c.deadline_s, Unit::kSeconds,
             "a round closes after this long, if it has its quorum; 0: when all have answered");
  v.field("quorum", c.quorum, kAtLeastOne, "answers without which a round changes nothing");
}

int64_t wanted_clients(const Config& config, int64_t clients) {
  // 0.01 * 10,000 must not become 101 for a rounding.
  const double exact = config.fraction * static_cast<double>(clients);
  return std::clamp<int64_t>(std::llround(std::ceil(exact - 1e-9 * exact)), 1, clients);
}

int64_t asked_clients(const Config& config, int64_t clients) {
  const double exact = config.over_select * static_cast<double>(wanted_clients(config, clients));
  return std::llround(std::ceil(exact - 1e-9 * exact));
}

int64_t batch_of_client(const Config& config, const TaskConfig& task, int64_t clients) {
  if (config.client_batch > 0) return config.client_batch;
  return std::max<int64_t>(1, task.global_batch / wanted_clients(config, clients));
}

void validate(const Config& c, const TaskConfig& task, const ClusterConfig& cluster) {
  const int64_t clients = client_count(c, cluster), wanted = wanted_clients(c, clients);
  if (asked_clients(c, clients) > clients)
    throw ConfigError("strategy.over_select",
                      fmt::format("strategy.over_select = {} asks {} clients in a round, but "
                                  "strategy.clients = {}; lower it, or strategy.fraction",
                                  c.over_select, asked_clients(c, clients), clients));
  if (c.quorum > wanted)
    throw ConfigError("strategy.quorum",
                      fmt::format("strategy.quorum = {} is more than the {} clients of a round; "
                                  "lower it, or raise strategy.fraction",
                                  c.quorum, wanted));
  if (splits_by_label(c.split) && predicts_numbers(task.data))
    throw ConfigError("strategy.split",
                      fmt::format("strategy.split = \"{}\" deals by labels, but task.data is a "
                                  "regression; use iid or quantity",
                                  word_of(c.split.kind)));
  if (c.algorithm != Algorithm::kFedavg && c.proximal > 0)
    throw ConfigError("strategy.proximal",
                      fmt::format("strategy.proximal = {} changes the gradients that "
                                  "strategy.algorithm = \"{}\" counts with; leave one of them out",
                                  c.proximal, word_of(c.algorithm)));
  if (task.deterministic && closes_early(c))
    throw ConfigError("strategy.deadline",
                      "task.deterministic = true needs rounds that wait for every client: leave "
                      "out strategy.deadline and strategy.over_select");
}

void validate(const Config& c, const OptimizerConfig& optimizer) {
  if (optimizer.schedule.kind == ScheduleKind::kGrowBatch || optimizer.schedule.base_batch > 0)
    throw ConfigError("optimizer.schedule",
                      "clients have batches of their own, strategy.client_batch: "
                      "optimizer.schedule = \"grow_batch\" and optimizer.base_batch, which follow "
                      "task.global_batch, are not for strategy.kind = \"federated_averaging\"");
  const bool plain = optimizer.weight_decay == 0 && optimizer.clip_norm == 0;
  if (has_controls(c) && (!optimizer.rule.find<SgdRule>() || !plain))
    throw ConfigError("optimizer.kind",
                      "strategy.algorithm = \"scaffold\" takes what a client did for a sum of its "
                      "gradients, which needs optimizer.kind = \"sgd\" without weight_decay and "
                      "clip_norm");
  if (c.algorithm == Algorithm::kFednova && !optimizer.rule.find<SgdRule>() &&
      !optimizer.rule.find<MomentumRule>())
    throw ConfigError(
        "optimizer.kind",
        fmt::format("strategy.algorithm = \"fednova\" needs to know how far the steps "
                    "of a client reach: optimizer.kind = \"sgd\" or \"momentum\", "
                    "not \"{}\"",
                    optimizer.kind()));
}

double samples_in_round(const Config& config, const TaskConfig& task, const ClusterConfig& cluster,
                        size_t samples) {
  const int64_t clients = client_count(config, cluster);
  const auto wanted = static_cast<double>(wanted_clients(config, clients));
  if (config.local_steps == 0)
    return wanted / static_cast<double>(clients) * static_cast<double>(samples) *
           static_cast<double>(config.local_epochs);
  return wanted * static_cast<double>(config.local_steps) *
         static_cast<double>(batch_of_client(config, task, clients));
}

}  // namespace tutti::federated_averaging
