#include "strategies/gossip/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/random.h"

namespace tutti {
namespace {

// The same weight for everyone who is heard. Neighbours may be named twice, and be oneself.
Mixing regular(size_t worker, std::vector<size_t> from, std::vector<size_t> to) {
  for (std::vector<size_t>* list : {&from, &to}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
    std::erase(*list, worker);
  }
  Mixing mixing;
  mixing.own = 1.0 / static_cast<double>(from.size() + 1);
  for (const size_t other : from) mixing.from.push_back({other, mixing.own});
  mixing.to = std::move(to);
  return mixing;
}

Mixing ring_graph(size_t n, size_t i, uint64_t, uint64_t) {
  const std::vector<size_t> neighbours = {(i + 1) % n, (i + n - 1) % n};
  return regular(i, neighbours, neighbours);
}

Mixing torus_graph(size_t n, size_t i, uint64_t, uint64_t) {
  const size_t rows = torus_rows(n), columns = n / rows;
  const size_t row = i / columns, column = i % columns;
  const auto at = [&](size_t r, size_t c) { return r % rows * columns + c % columns; };
  const std::vector<size_t> neighbours = {at(row + 1, column), at(row + rows - 1, column),
                                          at(row, column + 1), at(row, column + columns - 1)};
  return regular(i, neighbours, neighbours);
}

size_t distances(size_t n) {  // 1, 2, 4, ... below n
  size_t count = 0;
  while ((size_t{1} << count) < n) ++count;
  return count;
}

// Everyone hears those 1, 2, 4, ... behind it (Ying et al., "Exponential graph is provably
// efficient for decentralized deep training", NeurIPS 2021).
Mixing exponential_graph(size_t n, size_t i, uint64_t, uint64_t) {
  std::vector<size_t> from, to;
  for (size_t k = 0; k < distances(n); ++k) {
    const size_t distance = size_t{1} << k;
    from.push_back((i + n - distance) % n);
    to.push_back((i + distance) % n);
  }
  return regular(i, from, to);
}

// The same neighbours in turn, one in each round: exact agreement after log2 n rounds when n is a
// power of two.
Mixing one_peer_graph(size_t n, size_t i, uint64_t round, uint64_t) {
  if (n < 2) return {};
  const size_t distance = size_t{1} << (round % distances(n));
  return regular(i, {(i + n - distance) % n}, {(i + distance) % n});
}

// Everybody knows the whole matching, because it depends on seed and round alone.
Mixing random_match_graph(size_t n, size_t i, uint64_t round, uint64_t seed) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  Random(seed, Stream::kGossip, static_cast<uint32_t>(round)).shuffle(order);
  const auto place = static_cast<size_t>(
      std::find(order.begin(), order.end(), static_cast<uint32_t>(i)) - order.begin());
  const size_t partner = place ^ 1;
  if (partner >= n) return {};  // the odd one out
  return regular(i, {order[partner]}, {order[partner]});
}

Mixing complete_graph(size_t n, size_t i, uint64_t, uint64_t) {
  std::vector<size_t> everyone(n);
  std::iota(everyone.begin(), everyone.end(), size_t{0});
  return regular(i, everyone, everyone);
}

size_t always_the_same(size_t) { return 1; }
size_t by_distance(size_t n) { return std::max<size_t>(1, distances(n)); }
size_t never_again(size_t) { return 0; }

// y = W x, or with the transposed matrix.
std::vector<double> mixed(const std::vector<Mixing>& w, const std::vector<double>& x,
                          bool transposed) {
  std::vector<double> y(x.size());
  for (size_t i = 0; i < w.size(); ++i) {
    y[i] += w[i].own * x[i];
    for (const Mixing::Edge& edge : w[i].from)
      if (transposed)
        y[edge.worker] += edge.weight * x[i];
      else
        y[i] += edge.weight * x[edge.worker];
  }
  return y;
}

double without_mean(std::vector<double>& x) {  // returns the norm
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  double squares = 0;
  for (double& value : x) {
    value -= mean;
    squares += value * value;
  }
  return std::sqrt(squares);
}

// The largest singular value of the product of all rounds, apart from that of the mean: by power
// iteration on the transposed product times the product.
double worst_shrinkage(const std::vector<std::vector<Mixing>>& rounds) {
  constexpr int kMostIterations = 3000;
  const size_t n = rounds.front().size();
  std::vector<double> x(n);
  Random random(1, Stream::kGossip);
  for (double& value : x) value = random.normal();
  double squared = 0;
  double norm = without_mean(x);
  for (int i = 0; i < kMostIterations && norm > 0; ++i) {
    for (double& value : x) value /= norm;
    for (const auto& round : rounds) x = mixed(round, x, false);
    for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) x = mixed(*round, x, true);
    norm = without_mean(x);
    if (norm < 1e-15) return 0;
    if (std::abs(norm - squared) < 1e-15 * norm) break;
    squared = norm;
  }
  return std::sqrt(norm);
}

}  // namespace

const std::vector<GraphEntry>& graph_catalog() {
  static const std::vector<GraphEntry> entries = {
      {"ring", "the two neighbours on a ring", ring_graph, always_the_same},
      {"torus", "the four neighbours on a rectangle whose ends meet", torus_graph, always_the_same,
       /*rectangle=*/true},
      {"one_peer_exponential", "those 1, 2, 4, ... ahead, one of them in each round",
       one_peer_graph, by_distance},
      {"exponential", "those 1, 2, 4, ... ahead, all of them in each round", exponential_graph,
       always_the_same},
      {"random_match", "one other, by a random matching in each round", random_match_graph,
       never_again},
      {"complete", "everyone", complete_graph, always_the_same, false, /*complete=*/true},
  };
  return entries;
}

const GraphEntry& graph(std::string_view name) {
  for (const GraphEntry& entry : graph_catalog())
    if (entry.name == name) return entry;
  throw ConfigError("strategy.graph", fmt::format("there is no graph '{}'", name));
}

size_t torus_rows(size_t workers) {
  size_t rows = 1;
  for (size_t r = 2; r * r <= workers; ++r)
    if (workers % r == 0) rows = r;
  return rows;
}

double spectral_gap(const GraphEntry& entry, size_t workers) {
  if (workers < 2) return 1;
  const size_t period = entry.period(workers);
  if (period == 0) {
    // A matching is a projection, W'W = W, so the mean of squares shrinks by the second eigenvalue
    // of the mean of W: everyone is matched with anyone else equally often.
    const auto n = static_cast<double>(workers);
    const double matched = workers % 2 == 0 ? 1 : (n - 1) / n;
    const double with_one = matched / 2 / (n - 1);
    return 1 - std::sqrt(1 - matched / 2 - with_one);
  }
  if (entry.mixing == complete_graph) return 1;
  std::vector<std::vector<Mixing>> rounds(period);
  for (size_t round = 0; round < period; ++round)
    for (size_t i = 0; i < workers; ++i)
      rounds[round].push_back(entry.mixing(workers, i, round, 0));
  return 1 - std::pow(worst_shrinkage(rounds), 1.0 / static_cast<double>(period));
}

}  // namespace tutti
