// [strategy] kind = "federated_averaging": what can be set.
#pragma once

#include <cstdint>
#include <string>

#include "core/schema.h"
#include "data/client_split.h"
#include "fabric/cluster.h"
#include "optimizers/optimizer.h"
#include "strategies/task.h"

namespace tutti::federated_averaging {

// When clients can be asked, in rounds: the same on every fabric and at every speed.
enum class AvailabilityKind { kAlways, kDiurnal, kRandom };
constexpr auto words(AvailabilityKind) { return WordList<3>{"always", "diurnal", "random"}; }

struct AvailabilityConfig {
  AvailabilityKind kind = AvailabilityKind::kAlways;
  double share = 0.5;  // diurnal, random: of the time that a client is online
  double period = 24;  // diurnal: rounds in a day
};

enum class ServerKind { kSgd, kMomentum, kAdagrad, kAdam, kYogi };
constexpr auto words(ServerKind) {
  return WordList<5>{"sgd", "momentum", "adagrad", "adam", "yogi"};
}
enum class SecondMoments { kPaper, kZero };  // start at eps^2 as in the paper, or at zero
constexpr auto words(SecondMoments) { return WordList<2>{"paper", "zero"}; }

// What takes the averaged difference for a gradient. Its adaptive rules are not those of
// [optimizer] (server_optimizer.h).
struct ServerOptimizerConfig {
  ServerKind kind = ServerKind::kSgd;
  double lr = 1;
  double momentum = 0.9;  // momentum
  double beta1 = 0.9;     // the adaptive ones, as what follows; of adagrad 0
  double beta2 = 0.99;
  double eps = 1e-3;
  SecondMoments second_moments = SecondMoments::kPaper;

  bool adapts() const { return kind != ServerKind::kSgd && kind != ServerKind::kMomentum; }
};

// What clients correct and how the server weighs them.
enum class Algorithm { kFedavg, kScaffold, kFednova };
constexpr auto words(Algorithm) { return WordList<3>{"fedavg", "scaffold", "fednova"}; }

enum class WeighBy { kClients, kSamples };
constexpr auto words(WeighBy) { return WordList<2>{"clients", "samples"}; }

struct Config {
  int64_t clients = 0;     // 0: one per worker
  double fraction = 1;     // of the clients, asked in each round
  double over_select = 1;  // so many times more are asked, and the first to answer count
  Algorithm algorithm = Algorithm::kFedavg;
  int64_t local_steps = 0;  // of each round; 0: local_epochs
  int64_t local_epochs = 1;
  int64_t client_batch = 0;              // 0: its share of task.global_batch
  double proximal = 0;                   // FedProx's mu
  WeighBy weigh_by = WeighBy::kClients;  // scaffold: both means are over these
  ServerOptimizerConfig server;
  ClientSplitConfig split;
  AvailabilityConfig availability;
  double dropout = 0;     // share of the clients that begin and never answer
  double deadline_s = 0;  // after which a round closes; 0: when all have answered
  int64_t quorum = 1;     // answers without which a round does not count
};

void visit(Visitor& visitor, Config& config);
// Throws ConfigError naming the settings that contradict each other.
void validate(const Config& config, const TaskConfig& task, const ClusterConfig& cluster);
void validate(const Config& config, const OptimizerConfig& optimizer);

inline int64_t client_count(const Config& config, const ClusterConfig& cluster) {
  return config.clients > 0 ? config.clients : cluster.workers;
}
// Returns whether clients and server keep control variates.
inline bool has_controls(const Config& config) { return config.algorithm == Algorithm::kScaffold; }
// Returns whether all clients have the same weight, as in SCAFFOLD's paper, whatever they hold.
inline bool clients_count_alike(const Config& config) {
  return has_controls(config) && config.weigh_by == WeighBy::kClients;
}
// How many answers a round waits for, and how many clients it asks for them.
int64_t wanted_clients(const Config& config, int64_t clients);
int64_t asked_clients(const Config& config, int64_t clients);
int64_t batch_of_client(const Config& config, const TaskConfig& task, int64_t clients);
// Returns how many of all `samples` the clients of a round train on if none drops out.
double samples_in_round(const Config& config, const TaskConfig& task, const ClusterConfig& cluster,
                        size_t samples);
// True when a round may close before every client has answered: then who is fast matters.
inline bool closes_early(const Config& config) {
  return config.deadline_s > 0 || config.over_select > 1;
}

}  // namespace tutti::federated_averaging
