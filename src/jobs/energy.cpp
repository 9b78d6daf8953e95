#include "jobs/energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

namespace tutti {
namespace {

namespace fs = std::filesystem;

std::optional<uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

constexpr std::string_view kMemory = "dram";  // the name of a memory's counter

std::string read_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

}  // namespace

Energy estimate_energy(double seconds, double cpu_seconds, int hardware_threads, double tdp_watts) {
  if (seconds <= 0) return {.method = "estimated"};
  const double load = std::clamp(cpu_seconds / (seconds * hardware_threads), 0.0, 1.0);
  const double full_w = tdp_watts > 0 ? tdp_watts : 4.0 * hardware_threads;
  const double idle_w = 0.1 * full_w, memory_w = 10.0;
  const double busy_w = 0.9 * full_w * load * load * load;
  return {(idle_w + memory_w + busy_w) * seconds,
          fmt::format("estimated from load: {} x (0.1 + 0.9 x {:.2f}^3), memory 10 W",
                      tdp_watts > 0 ? fmt::format("{} W", tdp_watts)
                                    : fmt::format("{} threads x 4 W", hardware_threads),
                      load),
          idle_w * seconds, memory_w * seconds, busy_w * seconds};
}

// A package counts its cores and whatever else it has but not the memory, which has a counter of
// its own beside the cores: packages and memories add up, other parts would count twice.
EnergyCounters::EnergyCounters(const std::string& root) {
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, failed)) {
    const std::string directory = entry.path().string();
    if (!entry.path().filename().string().starts_with("intel-rapl:")) continue;
    const std::string name = read_word(directory + "/name");
    if (!name.starts_with("package") && name != kMemory) continue;
    const auto value = read_number(directory + "/energy_uj");
    const auto range = read_number(directory + "/max_energy_range_uj");
    if (value && range) counters_.push_back({directory + "/energy_uj", name, *value, *range});
  }
}

void EnergyCounters::sample() {
  for (Counter& counter : counters_) {
    const auto value = read_number(counter.path);
    if (!value) continue;
    counter.total += static_cast<double>(
        *value >= counter.last ? *value - counter.last : *value + counter.range - counter.last);
    counter.last = *value;
  }
}

double EnergyCounters::joules() const {
  double sum = 0;
  for (const Counter& counter : counters_) sum += counter.total / 1e6;
  return sum;
}

std::string EnergyCounters::method() const {
  std::string names;
  for (const Counter& counter : counters_) names += (names.empty() ? "" : ", ") + counter.name;
  return "measured by the processor's counters (RAPL): " + names;
}

}  // namespace tutti
