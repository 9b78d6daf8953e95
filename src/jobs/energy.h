// Energy of a run on this machine: measured where the kernel offers it, else estimated. One count
// per machine, whatever the number of workers on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

struct Energy {
  double joules = 0;
  std::string method;  // measured, simulated or estimated, and how
  // These are the parts of an estimate: the processor when it does nothing, the memory, and what
  // the processor takes because it computes.
  double idle_joules = 0, memory_joules = 0, busy_joules = 0;
};

// The model of CodeCarbon: a machine draws TDP x (0.1 + 0.9 x load^3), with 4 W a hardware thread
// for a processor it does not know (tdp_watts = 0), and at least 10 W for its memory.
Energy estimate_energy(double seconds, double cpu_seconds, int hardware_threads,
                       double tdp_watts = 0);

// The energy counters of the processor (RAPL), as Linux shows them below /sys/class/powercap. They
// count microjoules and start again at zero after a few minutes under load: sample() must be called
// more often than that.
class EnergyCounters {
 public:
  // `root` is the directory of the counters.
  explicit EnergyCounters(const std::string& root = "/sys/class/powercap");
  bool available() const { return !counters_.empty(); }
  void sample();
  double joules() const;  // since the construction, as of the last sample
  std::string method() const;

 private:
  struct Counter {
    std::string path;
    std::string name;
    uint64_t last = 0;   // microjoules
    uint64_t range = 0;  // it wraps after this value
    double total = 0;    // microjoules
  };
  std::vector<Counter> counters_;
};

}  // namespace tutti
