#include "bench/peers/peer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace peer {
namespace {

[[noreturn]] void usage(std::string_view what) {
  fmt::print(stderr, "{}; usage: [--processes N] [--reps N] [--bytes N,N,...]\n", what);
  std::exit(2);
}

size_t positive(std::string_view text) {
  size_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || rest != text.data() + text.size() || value == 0 || value > 1u << 30)
    usage(fmt::format("'{}' is not a number from 1 to 2^30", text));
  return value;
}

std::vector<size_t> sizes_in(std::string_view text) {
  std::vector<size_t> sizes;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    sizes.push_back(positive(text.substr(0, comma)));
    if (sizes.back() % sizeof(float) != 0) usage("sizes must be multiples of 4 bytes");
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return sizes;
}

// Small whole numbers, so that sums in any order are exact.
int value_at(size_t i, int rank) { return static_cast<int>(i % 251) + rank; }

}  // namespace

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 == argc) usage(fmt::format("{} lacks its value", name));
    const std::string_view value = argv[i + 1];
    if (name == "--processes")
      options.processes = static_cast<int>(positive(value));
    else if (name == "--reps")
      options.repetitions = static_cast<int>(positive(value));
    else if (name == "--bytes")
      options.sizes_bytes = sizes_in(value);
    else
      usage(fmt::format("unknown argument {}", name));
  }
  return options;
}

void fill(std::span<float> values, int rank) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(value_at(i, rank));
}

bool is_sum(std::span<const float> values, int processes) {
  for (size_t i = 0; i < values.size(); ++i) {
    const int sum = processes * value_at(i, 0) + processes * (processes - 1) / 2;
    if (values[i] != static_cast<float>(sum)) return false;
  }
  return true;
}

double now_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(now).count();
}

void print_line(const std::string& impl, const std::string& detail, int processes, size_t bytes,
                const std::vector<double>& samples_us) {
  fmt::print(
      "{{\"impl\":\"{}\",\"detail\":\"{}\",\"processes\":{},\"bytes\":{},\"samples_us\":[{:.3f}]}}"
      "\n",
      impl, detail, processes, bytes, fmt::join(samples_us, ","));
  std::fflush(stdout);
}

}  // namespace peer
