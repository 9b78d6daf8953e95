#include "jobs/energy.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti {

Energy estimate_energy(double seconds, double cpu_seconds, int hardware_threads) {
  if (seconds <= 0) return {0, "estimated"};
  const double load = std::clamp(cpu_seconds / (seconds * hardware_threads), 0.0, 1.0);
  const double processor_w = 4.0 * hardware_threads * (0.1 + 0.9 * load * load * load);
  const double memory_w = 10.0;
  return {(processor_w + memory_w) * seconds,
          fmt::format("estimated from load: {} threads x 4 W x (0.1 + 0.9 x {:.2f}^3), memory 10 W",
                      hardware_threads, load)};
}

}  // namespace tutti
