// Energy of a run on this machine, where nothing measures it.
#pragma once

#include <string>

namespace tutti {

struct Energy {
  double joules = 0;
  std::string method;  // measured, simulated or estimated, and how
};

// The model of CodeCarbon: a machine draws TDP x (0.1 + 0.9 x load^3), with 4 W a hardware thread
// for a processor it does not know, and at least 10 W for its memory.
Energy estimate_energy(double seconds, double cpu_seconds, int hardware_threads);

}  // namespace tutti
