#include "jobs/spending.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/units.h"
#include "jobs/perspective.h"

namespace tutti {
namespace {

constexpr double kBetweenSamples_s = 5;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double cpu_seconds_with_children() {
  double sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    getrusage(who, &used);
    sum += seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  }
  return sum;
}

double seconds_between(std::chrono::steady_clock::time_point from,
                       std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

void visit(RecordVisitor& v, Spent& s) {
  v.field("wall_s", s.wall_s, "Time that it took");
  v.field("cpu_s", s.cpu_s, "Processor time");
  v.field("joules", s.joules, "Energy of the machine that computed it");
  v.field("kwh", s.kwh, "That energy x `footprint.pue`, in kWh");
  v.field("co2e_g", s.co2e_g, "CO2e of these kWh, in grams");
  v.field("cost", s.cost, "Price of the machine for that time");
  v.field("currency", s.currency, "Currency of the price");
  v.field("method", s.method, "How the energy was obtained");
}

Spent operator+(const Spent& one, const Spent& other) {
  return {.wall_s = one.wall_s + other.wall_s,
          .cpu_s = one.cpu_s + other.cpu_s,
          .joules = one.joules + other.joules,
          .kwh = one.kwh + other.kwh,
          .co2e_g = one.co2e_g + other.co2e_g,
          .cost = one.cost + other.cost,
          .currency = other.currency.empty() ? one.currency : other.currency,
          .method = other.method.empty() ? one.method : other.method};
}

std::string spent_text(const Spent& spent) {
  return fmt::format("{}, {} CO2e, {:.3g} {} to compute this here, in {} ({})", kwh_text(spent.kwh),
                     mass_text(spent.co2e_g), spent.cost, spent.currency,
                     human_quantity(spent.wall_s, Unit::kSeconds),
                     spent.method.substr(0, spent.method.find(' ')));
}

Spending::Spending(const FootprintConfig& config)
    : config_(config), cpu_before_s_(cpu_seconds_with_children()) {}

void Spending::sample() {
  const Clock::time_point now = Clock::now();
  if (seconds_between(sampled_, now) < kBetweenSamples_s) return;
  sampled_ = now;
  counters_.sample();
}

Spent Spending::so_far() {
  counters_.sample();
  Spent spent;
  spent.wall_s = seconds_between(start_, Clock::now());
  spent.cpu_s = cpu_seconds_with_children() - cpu_before_s_;
  if (counters_.available()) {
    spent.joules = counters_.joules();
    spent.method = counters_.method();
  } else {
    const Energy energy =
        estimate_energy(spent.wall_s, spent.cpu_s, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
                        config_.tdp_watts);
    spent.joules = energy.joules;
    spent.method = energy.method;
  }
  spent.kwh = kilowatt_hours(config_, spent.joules);
  spent.co2e_g = co2e_grams(config_, spent.joules).value;
  spent.cost = spent.wall_s / 3600 * config_.price;
  spent.currency = config_.currency;
  return spent;
}

}  // namespace tutti
