#include "testbed/local_sums.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "collectives/all_reduce.h"
#include "core/error.h"
#include "fabric/exchange.h"
#include "fabric/process/process_fabric.h"
#include "jobs/reference_kernel.h"

namespace tutti {
namespace {

constexpr int kBarrierSlot = Window::kSlots - 1;  // `direct` has the first ones
constexpr double kSeconds = 0.06;                 // of sums of one size, about
constexpr int kFewest = 12;
constexpr int kMost = 2000;
constexpr int kMany = 100;  // sums so short that other programs come between few of them
constexpr int kSpeedTimes = 5;

std::string bytes_of_times(const std::vector<double>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

std::vector<double> times_of_bytes(const std::string& bytes) {
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  return values;
}

// A process that moves from core to core leaves its caches behind.
void stay_on_core(Rank rank) {
  cpu_set_t allowed, own;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int next = 0;
  for (size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed) && next++ == rank) CPU_SET(core, &own);
  if (CPU_COUNT(&own) == 1) sched_setaffinity(0, sizeof own, &own);
}

// As training meets it: a buffer that stays in place, summed again and again.
class LocalSums {
 public:
  LocalSums(Node& node, const std::string& name, size_t most_bytes)
      : node_(node),
        entry_(topology(name)),
        window_(*node.endpoint().open_window(most_bytes, node.timeout_s())),
        memory_(window_.of(node.endpoint().rank())) {
    std::fill(memory_.begin(), memory_.end(), std::byte{0});
    for (Rank rank = 0; rank < node.endpoint().size(); ++rank) group_.ranks.push_back(rank);
    group_.index = static_cast<size_t>(node.endpoint().rank());
    direct_ = make_direct_all_reduce(node, nullptr, window_, kSumFloat);
  }

  void time(size_t bytes, std::vector<double>& times_s) {
    std::unique_ptr<AllReduce> messages;
    if (entry_.rounds)
      messages =
          make_all_reduce(node_, nullptr, entry_.rounds, group_, bytes / sizeof(float), kSumFloat);
    AllReduce& sum = entry_.rounds ? *messages : *direct_;
    // All of them take as many, by a guess that needs no agreement: 1 us and a byte in 0.3 ns.
    const double guess_s = 1e-6 + static_cast<double>(bytes) * 0.3e-9;
    const int count = std::clamp(static_cast<int>(kSeconds / guess_s), kFewest, kMost);
    for (int i = 0; i < count + count / 4; ++i) {
      meet();
      const double began_s = node_.clock().now();
      sum.start(memory_.first(bytes), Tag(Purpose::kGradient, Tag::wrapped(i)));
      sum.finish();
      if (i >= count / 4) times_s.push_back(node_.clock().now() - began_s);
    }
    meet();
  }

 private:
  void meet() {
    const Rank self = node_.endpoint().rank();
    window_.post(kBarrierSlot, ++met_);
    for (const Rank rank : group_.ranks)
      if (rank != self)
        require_done(node_, window_.await(rank, kBarrierSlot, met_, node_.timeout_s()));
  }

  Node& node_;
  const TopologyEntry& entry_;
  Window& window_;
  std::span<std::byte> memory_;
  Group group_{.ranks = {}, .index = 0, .racks = {}};
  std::unique_ptr<AllReduce> direct_;
  uint64_t met_ = 0;
};

std::vector<NodeOutcome> run_here(int processes, const Fabric::Body& body,
                                  const std::atomic<bool>& stop) {
  const std::vector<std::string> roles(static_cast<size_t>(processes), "worker");
  std::vector<NodeOutcome> outcomes = make_process_fabric(roles)->run(body, stop);
  if (stop) throw InterruptedError();
  for (const NodeOutcome& outcome : outcomes)
    if (outcome.kind != NodeOutcome::Kind::kDone)
      throw Error(fmt::format("this machine could not be measured: {}", outcome.error));
  return outcomes;
}

}  // namespace

std::vector<double> time_sums(const std::string& topology, int processes,
                              const std::vector<size_t>& sizes, const std::atomic<bool>& stop) {
  const size_t most = *std::max_element(sizes.begin(), sizes.end());
  const auto body = [&](Node& node) {
    stay_on_core(node.endpoint().rank());
    LocalSums sums(node, topology, most);
    std::vector<double> times_s;
    for (const size_t bytes : sizes) {
      const size_t before = times_s.size();
      times_s.push_back(0);
      sums.time(bytes, times_s);
      times_s[before] = static_cast<double>(times_s.size() - before - 1);  // how many follow
    }
    return bytes_of_times(times_s);
  };
  std::vector<double> slowest;
  for (const NodeOutcome& outcome : run_here(processes, body, stop)) {
    const std::vector<double> own = times_of_bytes(outcome.result);
    slowest.resize(own.size());
    for (size_t i = 0; i < own.size(); ++i) slowest[i] = std::max(slowest[i], own[i]);
  }
  std::vector<double> result;
  for (size_t at = 0; at < slowest.size();) {
    const auto begin = slowest.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    const auto count = static_cast<std::ptrdiff_t>(slowest[at]);
    const auto typical = begin + count / (count >= kMany ? 2 : 10);
    std::nth_element(begin, typical, begin + count);
    result.push_back(*typical);
    at += static_cast<size_t>(count) + 1;
  }
  return result;
}

double speed_with(int processes, const std::atomic<bool>& stop) {
  const auto body = [](Node& node) {
    stay_on_core(node.endpoint().rank());
    std::vector<double> speeds;
    for (int i = 0; i < kSpeedTimes; ++i) speeds.push_back(measure_reference_flops());
    std::sort(speeds.begin(), speeds.end());
    return bytes_of_times({speeds[kSpeedTimes / 2]});
  };
  double sum = 0;
  for (const NodeOutcome& outcome : run_here(processes, body, stop))
    sum += times_of_bytes(outcome.result).front();
  return sum / processes;
}

}  // namespace tutti
