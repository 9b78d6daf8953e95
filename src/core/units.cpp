#include "core/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>

#include "core/error.h"

namespace tutti {
namespace {

struct Suffix {
  std::string_view name;
  double factor;
};

// Ordered by size within the names used for printing (those come first).
constexpr Suffix kSeconds[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3},
                               {"s", 1.0},   {"min", 60},  {"h", 3600}};
constexpr Suffix kBytes[] = {{"B", 1},         {"kB", 1e3},          {"MB", 1e6},
                             {"GB", 1e9},      {"TB", 1e12},         {"KiB", 1024.0},
                             {"MiB", 1048576}, {"GiB", 1073741824.0}};
constexpr Suffix kRates[] = {{"B/s", 1},           {"kB/s", 1e3},          {"MB/s", 1e6},
                             {"GB/s", 1e9},        {"bit/s", 0.125},       {"kbit/s", 125},
                             {"Mbit/s", 125e3},    {"Gbit/s", 125e6},      {"KiB/s", 1024.0},
                             {"MiB/s", 1048576.0}, {"GiB/s", 1073741824.0}};
constexpr Suffix kFlops[] = {
    {"FLOP/s", 1}, {"kFLOP/s", 1e3}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}};
constexpr Suffix kWatts[] = {{"mW", 1e-3}, {"W", 1}, {"kW", 1e3}};
constexpr Suffix kJoules[] = {{"uJ", 1e-6}, {"mJ", 1e-3}, {"J", 1}, {"kJ", 1e3}, {"MJ", 1e6}};

std::span<const Suffix> suffixes(Unit unit) {
  switch (unit) {
    case Unit::kSeconds:
      return kSeconds;
    case Unit::kBytes:
      return kBytes;
    case Unit::kBytesPerSecond:
      return kRates;
    case Unit::kFlopsPerSecond:
      return kFlops;
    case Unit::kWatts:
      return kWatts;
    case Unit::kJoules:
      return kJoules;
  }
  return {};
}

size_t printed_suffixes(Unit unit) {
  switch (unit) {
    case Unit::kSeconds:
      return 4;
    case Unit::kBytes:
      return 5;
    case Unit::kBytesPerSecond:
      return 4;
    case Unit::kFlopsPerSecond:
      return 5;
    case Unit::kWatts:
      return 3;
    case Unit::kJoules:
      return 5;
  }
  return 0;
}

const Suffix& best_suffix(double value, Unit unit) {
  const auto all = suffixes(unit).first(printed_suffixes(unit));
  const Suffix* best = &all.front();
  for (const Suffix& suffix : all)
    if (std::abs(value) >= suffix.factor * (1 - 1e-12)) best = &suffix;
  if (value == 0)  // "0 s", not "0 ns"
    for (const Suffix& suffix : all)
      if (suffix.factor == 1) best = &suffix;
  return *best;
}

}  // namespace

double parse_quantity(std::string_view text, Unit unit) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    throw ConfigError("", fmt::format("'{}' is more or less than a number can be", text));
  if (error != std::errc{} || !std::isfinite(value))
    throw ConfigError("", fmt::format("'{}' does not start with a number", text));
  std::string_view name = text.substr(static_cast<size_t>(rest - text.data()));
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  if (name.empty()) return value;
  std::string known;
  for (const Suffix& suffix : suffixes(unit)) {
    if (suffix.name == name) return value * suffix.factor;
    known += (known.empty() ? "" : ", ") + std::string(suffix.name);
  }
  throw ConfigError("",
                    fmt::format("'{}' has an unknown unit '{}'; use one of {}", text, name, known));
}

std::string format_quantity(double value, Unit unit) {
  const Suffix& suffix = best_suffix(value, unit);
  return fmt::format("{:.10g} {}", value / suffix.factor, suffix.name);
}

std::string human_quantity(double value, Unit unit) {
  // Rounded before the unit is chosen: 999999 B is "1 MB", not "1e+03 kB".
  if (value != 0 && std::isfinite(value)) {
    const double digit = std::pow(10, std::floor(std::log10(std::abs(value))) - 2);
    value = std::round(value / digit) * digit;
  }
  const Suffix& suffix = best_suffix(value, unit);
  const double scaled = value / suffix.factor;
  if (std::abs(scaled) >= 1000) return fmt::format("{:.0f} {}", scaled, suffix.name);
  return fmt::format("{:.3g} {}", scaled, suffix.name);
}

std::string human_quality(double quality) {
  const double size = std::abs(quality);
  const bool usual = size == 0 || (size >= 0.01 && size < 1e4) || std::isnan(size);
  return fmt::format(fmt::runtime(usual ? "{:.4f}" : "{:.4g}"), quality);
}

}  // namespace tutti
