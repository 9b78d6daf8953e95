// Synchronous all-reduce: every worker ends a step with the same sum of all gradients.
#pragma once

#include <memory>

#include "strategies/strategy.h"

namespace tutti {

// [strategy] kind = "allreduce"
struct AllReduceConfig {
  std::string topology = "ring";
  // Gradients are exchanged in buckets of about this size while the backward pass still computes
  // earlier layers. Smaller buckets start earlier, larger ones cost fewer messages.
  double bucket_bytes = 1 << 20;
  bool balance = false;  // shares of a batch follow the speed of the workers
};

std::unique_ptr<Strategy> make_allreduce();
std::vector<Variant> allreduce_variants();  // one per topology, and balanced

// Cuts the parameters into buckets that end at parameter borders, last layers first.
std::vector<Range> make_buckets(const Architecture& architecture, double bucket_bytes);

}  // namespace tutti
