// Consistency models: when a gradient is applied, and who may read which parameters.
//
//  bsp       Valiant, "A bridging model for parallel computation", CACM 1990
//  asp       Dean et al., "Large scale distributed deep networks" (DistBelief), NIPS 2012
//  ssp       Ho et al., "More effective distributed ML via a stale synchronous parallel parameter
//            server", NIPS 2013
//  adaptive  after Zhang et al., "An adaptive synchronous parallel strategy for distributed machine
//            learning", IEEE Access 2018: the bound of each worker follows the occupancy of its
//            processor, and counts from the last synchronisation, between which the slowest worker
//            has some executions
//  waiting   the same with one bound for all, which follows the phases that workers wait in
//  backup    Chen et al., "Revisiting distributed synchronous SGD", 2016
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/archive.h"
#include "strategies/parameter_server/config.h"

namespace tutti::parameter_server {

class Consistency {
 public:
  virtual ~Consistency() = default;
  // True: gradients are collected and become one update per step. False: each is applied at once.
  virtual bool collects() const { return false; }
  // True: everybody computes every step, so that a worker that has read the next version proves
  // that nobody needs this one any more, and an evaluation may stop them all.
  virtual bool lockstep() const { return false; }
  // collects: how many gradients close a step that was cut into `parts`, when `present` workers are
  // there and `left` hands of the epoch.
  virtual size_t quorum(size_t parts, size_t present, size_t left) const;
  // May a worker read that has pushed `clock` times, when the slowest's `oldest` pushes are in?
  // `waited`: it was refused before.
  virtual bool may_read(int64_t clock, int64_t oldest, int64_t bound, bool waited);
  // How far the fastest may be ahead now; what workers are told.
  virtual int64_t bound(int worker) const;
  // May a worker that has pushed so many times since then be told again that it need not catch up
  // with those before it?
  virtual bool forgives(int64_t pushes) const;
  // A worker was busy for this share of its time since it was asked last.
  virtual void observe(int worker, double occupancy, size_t present);
  virtual void archive(Archive&) {}  // what it has observed
};

std::unique_ptr<Consistency> make_consistency(const Config& config, int64_t workers);

// Returns the factor for the rate of a gradient, which is one part of `parts` of a batch.
// `update_weight` replaces the weight of the part (ConSGD, Jiang et al. below). Otherwise the
// factor follows the staleness in rounds of all workers (Zhang et al., "Staleness-aware async-SGD",
// IJCAI 2016) or the worker's delay in clocks (Jiang et al., "Heterogeneity-aware distributed
// parameter servers", SIGMOD 2017).
double rate_factor(const Config& config, int64_t parts, double rounds_stale, int64_t clocks_behind);

}  // namespace tutti::parameter_server
