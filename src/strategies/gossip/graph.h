// Who averages with whom, and with which weights: the mixing matrix W of a round, as data.
//
// Every W is doubly stochastic: rows sum to 1, so agreement stays; columns sum to 1, so the mean of
// the parameters stays. On a regular graph of degree d all weights are 1 / (d + 1). How fast
// workers come to agree is W's spectral gap: in the long run each round shrinks the root mean
// square distance from the mean by the factor 1 - gap, or more.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fabric/tag.h"

namespace tutti {

// One worker's row of W: what it keeps, whom it hears, and who hears it, with the same weights.
struct Mixing {
  struct Edge {
    size_t worker;
    double weight;
  };
  double own = 1;
  std::vector<Edge> from;  // by worker
  std::vector<size_t> to;  // by worker
};

struct GraphEntry {
  std::string_view name;
  std::string_view summary;
  // The row of `worker` out of `workers` in round `round`. The seed decides random graphs.
  Mixing (*mixing)(size_t workers, size_t worker, uint64_t round, uint64_t seed);
  // After so many rounds the matrices repeat; 0: never.
  size_t (*period)(size_t workers);
  bool rectangle = false;  // workers must make one of at least two rows
  bool complete = false;   // everybody averages with everybody
};
const std::vector<GraphEntry>& graph_catalog();
const GraphEntry& graph(std::string_view name);

// Rows of the torus: the largest divisor of `workers` up to its root. 1: it has no torus.
size_t torus_rows(size_t workers);

// 1 minus the factor by which a round shrinks the distance from the mean, at worst; for graphs that
// change, per round of a whole period; for random ones, of the mean of squares.
double spectral_gap(const GraphEntry& graph, size_t workers);

}  // namespace tutti
