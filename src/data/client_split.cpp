#include "data/client_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/random.h"
#include "core/range.h"

namespace tutti {
namespace {

// Sequences of Stream::kSplit. The first is also that of task.partition = "disjoint", so that
// clients of an iid split hold what workers of such a partition do.
enum Sequence : uint32_t { kShuffled = 0, kLabels, kShares };

using Piles = std::vector<std::vector<uint32_t>>;

constexpr size_t kGathered = 256;

// The label of each sample; of sequences, of their first position.
std::vector<int32_t> labels_of(const Data& data, std::span<const uint32_t> samples) {
  const auto answers = static_cast<size_t>(data.dataset->answers_per_sample());
  std::vector<int32_t> labels;
  labels.reserve(samples.size());
  Batch batch;
  for (size_t begin = 0; begin < samples.size(); begin += kGathered) {
    data.dataset->gather(samples.subspan(begin, std::min(kGathered, samples.size() - begin)),
                         batch);
    for (size_t i = 0; i < batch.size(); ++i) labels.push_back(batch.labels[i * answers]);
  }
  return labels;
}

std::vector<uint32_t> shuffled(const Data& data, uint64_t seed) {
  std::vector<uint32_t> samples = data.splits.train;
  Random(seed, Stream::kSplit, kShuffled).shuffle(samples);
  return samples;
}

// The samples of each label, each pile in random order.
Piles by_label(const Data& data, uint64_t seed) {
  const std::vector<uint32_t> samples = shuffled(data, seed);
  const std::vector<int32_t> labels = labels_of(data, samples);
  Piles piles(static_cast<size_t>(data.dataset->classes()));
  for (size_t i = 0; i < samples.size(); ++i)
    piles[static_cast<size_t>(labels[i])].push_back(samples[i]);
  return piles;
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 2000.
double gamma(double shape, Random& random) {
  if (shape < 1) return gamma(shape + 1, random) * std::pow(1 - random.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

// Where to cut `total` samples into shares drawn from Dirichlet(alpha), the end of each, when only
// those that are `open` get any.
std::vector<size_t> dirichlet_ends(double alpha, const std::vector<bool>& open, size_t total,
                                   Random& random) {
  const size_t shares = open.size();
  std::vector<double> drawn(shares);
  for (size_t i = 0; i < shares; ++i) {
    const double value = gamma(alpha, random);
    drawn[i] = open[i] ? value : 0;
  }
  double sum = std::accumulate(drawn.begin(), drawn.end(), 0.0);
  if (!(sum > 0)) {  // all of them too small for a number: one has everything, as in the limit
    drawn[random.below(shares)] = 1;
    sum = 1;
  }
  std::vector<size_t> ends(shares);
  double before = 0;
  for (size_t i = 0; i < shares; ++i) {
    before += drawn[i];
    ends[i] = std::min(total, static_cast<size_t>(std::llround(before / sum * double(total))));
  }
  ends.back() = total;
  return ends;
}

Piles deal_iid(const std::vector<uint32_t>& samples, size_t clients) {
  Piles piles(clients);
  for (size_t i = 0; i < clients; ++i) {
    const Range part = part_of(samples.size(), clients, i);
    piles[i].assign(samples.begin() + static_cast<std::ptrdiff_t>(part.begin),
                    samples.begin() + static_cast<std::ptrdiff_t>(part.end));
  }
  return piles;
}

void deal(const std::vector<uint32_t>& from, const std::vector<size_t>& ends, Piles& to) {
  size_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    for (size_t k = begin; k < ends[i]; ++k) to[i].push_back(from[k]);
    begin = ends[i];
  }
}

// Who has which labels. Client i has label i, counted round and round, so that with as many clients
// as labels each label is somebody's; with fewer, those that nobody has come next.
std::vector<std::vector<size_t>> choose_labels(size_t clients, size_t classes, size_t each,
                                               Random& random) {
  TUTTI_CHECK(clients > 0 && clients * each >= classes);
  std::vector<std::vector<size_t>> chosen(clients);
  for (size_t i = 0; i < clients; ++i) chosen[i].push_back(i % classes);
  size_t next = 0;
  for (size_t label = clients; label < classes; ++label) {
    while (chosen[next % clients].size() == each) ++next;
    chosen[next++ % clients].push_back(label);
  }
  for (std::vector<size_t>& own : chosen)
    while (own.size() < each) {
      const size_t label = random.below(classes);
      if (std::find(own.begin(), own.end(), label) == own.end()) own.push_back(label);
    }
  return chosen;
}

Piles deal_shards(const Piles& labels, size_t clients, size_t each, Random& random) {
  std::vector<std::vector<size_t>> owners(labels.size());
  const auto chosen = choose_labels(clients, labels.size(), each, random);
  for (size_t client = 0; client < clients; ++client)
    for (const size_t label : chosen[client]) owners[label].push_back(client);
  Piles piles(clients);
  for (size_t label = 0; label < labels.size(); ++label)
    for (size_t i = 0; i < owners[label].size(); ++i) {
      const Range part = part_of(labels[label].size(), owners[label].size(), i);
      for (size_t k = part.begin; k < part.end; ++k)
        piles[owners[label][i]].push_back(labels[label][k]);
    }
  return piles;
}

// A client without samples could not train: it gets one of the client that has most.
void leave_nobody_empty(Piles& piles) {
  const auto smaller = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  for (std::vector<uint32_t>& pile : piles) {
    if (!pile.empty()) continue;
    std::vector<uint32_t>& largest = *std::max_element(piles.begin(), piles.end(), smaller);
    TUTTI_CHECK(largest.size() > 1);
    pile.push_back(largest.back());
    largest.pop_back();
  }
}

Piles deal_all(const Data& data, const ClientSplitConfig& config, size_t clients, uint64_t seed) {
  Random shares(seed, Stream::kSplit, kShares);
  Piles piles(clients);
  if (config.kind == ClientSplitKind::kIid) return deal_iid(shuffled(data, seed), clients);
  if (config.kind == ClientSplitKind::kShards) {
    Random labels(seed, Stream::kSplit, kLabels);
    return deal_shards(by_label(data, seed), clients, static_cast<size_t>(config.labels), labels);
  }
  if (config.kind == ClientSplitKind::kDirichlet) {
    // As published, who has its equal share of all samples gets none of the labels that follow.
    const double equal = static_cast<double>(data.splits.train.size()) / double(clients);
    for (const std::vector<uint32_t>& pile : by_label(data, seed)) {
      std::vector<bool> open;
      for (const std::vector<uint32_t>& own : piles) open.push_back(double(own.size()) < equal);
      deal(pile, dirichlet_ends(config.alpha, open, pile.size(), shares), piles);
    }
    return piles;
  }
  TUTTI_CHECK(config.kind == ClientSplitKind::kQuantity);
  const std::vector<uint32_t> samples = shuffled(data, seed);
  deal(samples,
       dirichlet_ends(config.alpha, std::vector<bool>(clients, true), samples.size(), shares),
       piles);
  return piles;
}

}  // namespace

void visit(Visitor& v, ClientSplitConfig& c) {
  if (c.kind == ClientSplitKind::kDirichlet || c.kind == ClientSplitKind::kQuantity)
    v.field("alpha", c.alpha, {1e-6, 1e9},
            "of the Dirichlet distribution: the smaller, the more clients differ");
  if (c.kind == ClientSplitKind::kShards)
    v.field("labels", c.labels, kAtLeastOne, "labels of each client");
}

bool splits_by_label(const ClientSplitConfig& config) {
  return config.kind == ClientSplitKind::kShards || config.kind == ClientSplitKind::kDirichlet;
}

void validate_client_split(const DataSizes& data, const ClientSplitConfig& config,
                           int64_t clients) {
  const auto samples = static_cast<int64_t>(data.train);
  if (clients > samples)
    throw ConfigError("strategy.clients",
                      fmt::format("strategy.clients = {} is more than the {} training samples",
                                  clients, samples));
  if (!splits_by_label(config)) return;
  const int64_t classes = data.classes;
  if (classes == 0 || data.answers_per_sample != 1)
    throw ConfigError("strategy.split",
                      fmt::format("strategy.split = \"{}\" deals by labels, but these samples have "
                                  "no single one; use iid or quantity",
                                  word_of(config.kind)));
  if (config.kind != ClientSplitKind::kShards) return;
  if (config.labels > classes)
    throw ConfigError(
        "strategy.split.labels",
        fmt::format("strategy.split.labels = {} is more than the {} labels of the data",
                    config.labels, classes));
  if (clients * config.labels < classes)
    throw ConfigError("strategy.split.labels",
                      fmt::format("strategy.clients = {} with strategy.split.labels = {} each "
                                  "leave some of the {} labels to nobody; raise one of them",
                                  clients, config.labels, classes));
}

ClientSplit split_clients(const Data& data, const ClientSplitConfig& config, int64_t clients,
                          uint64_t seed) {
  Piles piles = deal_all(data, config, static_cast<size_t>(clients), seed);
  leave_nobody_empty(piles);
  std::vector<uint32_t> samples, ends;
  samples.reserve(data.splits.train.size());
  for (const std::vector<uint32_t>& pile : piles) {
    samples.insert(samples.end(), pile.begin(), pile.end());
    ends.push_back(static_cast<uint32_t>(samples.size()));
  }
  return {std::move(samples), std::move(ends)};
}

std::vector<int64_t> label_counts(const Data& data, std::span<const uint32_t> samples) {
  std::vector<int64_t> counts(static_cast<size_t>(data.dataset->classes()));
  if (counts.empty()) return counts;
  for (const int32_t label : labels_of(data, samples)) ++counts[static_cast<size_t>(label)];
  return counts;
}

}  // namespace tutti
