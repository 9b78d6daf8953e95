// Local SGD: workers take H steps on their own, then average (Stich, "Local SGD converges fast and
// communicates little", ICLR 2019).
//
// With post_local it starts synchronously (Lin et al., "Don't use large mini-batches, use local
// SGD", ICLR 2020). An outer optimizer may take the averaged difference for a gradient (Reddi et
// al., ICLR 2021; with Nesterov momentum: Douillard et al., "DiLoCo", arXiv:2311.08105), and
// fragments of the parameters may be averaged in turn while training goes on (Douillard et al.,
// "Streaming DiLoCo with overlapping communication", arXiv:2501.18512).
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

enum class OuterKind { kSgd, kMomentum, kNesterov, kAdam };
constexpr auto words(OuterKind) { return WordList<4>{"sgd", "momentum", "nesterov", "adam"}; }

// What takes the averaged difference for a gradient: some of [optimizer], at a constant rate.
struct OuterConfig {
  OuterKind kind = OuterKind::kSgd;
  double lr = 1;
  double momentum = 0.9;  // momentum, nesterov
};

// [strategy] kind = "local_sgd"
struct LocalSgdConfig {
  int64_t sync_every = 16;  // H
  double post_local = 0;    // epochs
  OuterConfig outer;
  int64_t fragments = 1;
  int64_t overlap = 0;  // steps between the start of a fragment's average and its use
  double mixing = 0;    // share of its own parameters that a worker keeps then
};

std::unique_ptr<Strategy> make_local_sgd();
std::vector<Variant> local_sgd_variants();

}  // namespace tutti
