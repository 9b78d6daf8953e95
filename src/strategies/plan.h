// Plan: everything that is decided before anybody starts. Plain data, made by one function from a
// job, the sizes of its data and a cluster; printed, sent, stored and compared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/range.h"
#include "core/schema.h"
#include "fabric/cluster.h"
#include "fabric/node.h"
#include "models/architecture.h"

namespace tutti {

// Whether workers take steps together, each at a pace of its own, or apart by at most a bound.
enum class Timing { kSynchronous, kAsynchronous, kBounded };
constexpr auto words(Timing) { return WordList<3>{"synchronous", "asynchronous", "bounded"}; }

// An architecture's place in the taxonomy of the field.
struct Taxonomy {
  std::string_view structure;     // single node | client-server | peer-to-peer
  std::string_view parallelism;   // none | data | model | hybrid
  std::string_view optimisation;  // centralised | decentralised
  Timing timing = Timing::kSynchronous;
  std::string_view pattern;        // communication pattern
  std::string_view data;           // who sees which samples
  std::string_view stragglers;     // what a slow node does to the others
  std::string_view communication;  // what a node sends in a step
  std::string_view computation;    // what a node computes in a step

  bool operator==(const Taxonomy&) const = default;
};

// How a strategy treats the rows of a sparse model.
enum class RowUse {
  kAll,      // as one dense vector
  kTouched,  // moves and updates those alone that a batch touches
  kSpread,   // and no node holds all of them
};

// What one node does and needs.
struct NodePlan {
  std::string role = "worker";
  std::vector<Range> layers;  // whose parameters it has while it trains; none: parts of layers
  bool has_model = true;      // it computes with these layers, and needs memory for that
  size_t window_bytes = 0;    // of memory that it shares with the other nodes of its host
  double memory_bytes = 0;    // without the data and the program itself
  double bytes_sent = 0;      // in a step, on average
  double messages = 0;        // in a step, on average
  bool may_be_lost = false;   // the others finish without it, and the run counts as done

  bool has_all_layers(const Architecture& architecture) const {
    return layers.size() == 1 && layers[0].size() == architecture.layers.size();
  }
  bool operator==(const NodePlan&) const = default;
};

// How the windows of the nodes are used.
enum class Sharing {
  kNone,
  kGradients,   // each begins with the gradients of its node; the strategy cannot do without
  kIfPossible,  // a strategy that cannot have them sends messages instead
};

// What a strategy adds to a plan in a type of its own: its stages, shards or tiers.
struct PlanDetail {
  virtual ~PlanDetail() = default;
};

// The same for those who only print, send or compare plans.
using Fact = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                          std::vector<Range>>;
using Facts = std::vector<std::pair<std::string, Fact>>;

// The books of the run that this one resumes.
struct Resumed {
  int64_t steps = 0, samples = 0;  // of all workers; 0 when the run starts anew
  bool operator==(const Resumed&) const = default;
};

struct Plan {
  uint32_t epoch = 0;  // of the membership that it was made for
  Taxonomy taxonomy = {};
  // Names the class of strategies that compute the same parameters for this task; the equivalence
  // suite proves it. Empty: none. A comparison may compute the gradients of a class only once.
  std::string equivalence = {};
  int64_t workers = 0;               // the first nodes; other roles follow
  std::vector<NodePlan> nodes = {};  // by rank
  // The settings below [strategy] that say how many nodes have a role: {"server", "servers"}. A
  // role of other nodes than workers that has none cannot do with fewer.
  std::vector<std::pair<std::string, std::string>> role_settings = {};
  Rank recorder = 0;  // who keeps the record
  int64_t steps = 0;
  int64_t samples = 0;         // of all steps; 0: the batches do not determine it
  int64_t settling_steps = 0;  // after which all are alike, where a strategy adapts to the cluster
  int64_t recurs_every = 1;    // steps; what happens in fewer is not yet what happens in many
  Resumed resumed = {};
  RowUse rows = RowUse::kAll;
  Sharing sharing = Sharing::kNone;
  bool gradients_shared = false;  // workers compute their gradients in their windows
  std::string keeps = {};         // the attachment that a run keeps; empty: parameters are enough
  std::string in_words = {};      // for tables: "8 servers, on the workers' machines"
  std::vector<std::string> reasons = {};  // what was made of the settings, and why
  // What the planner chose where the settings left it open, as settings below [strategy], and the
  // cluster with the nodes that these take.
  std::vector<std::string> decided = {};
  ClusterConfig cluster = {};
  Facts facts = {};
  std::shared_ptr<const PlanDetail> detail = nullptr;
  std::shared_ptr<const Architecture> architecture = nullptr;  // the layers that are trained

  std::vector<std::string> roles() const;
  const NodePlan& busiest() const;   // that sends most bytes
  double most_memory_bytes() const;  // of any worker
};

// Compares all that is printed.
bool operator==(const Plan& a, const Plan& b);

// The detail of a plan, of which the strategy knows the type.
template <class T>
const T& detail_of(const Plan& plan) {
  const T* const detail = dynamic_cast<const T*>(plan.detail.get());
  TUTTI_CHECK(detail);
  return *detail;
}

}  // namespace tutti
