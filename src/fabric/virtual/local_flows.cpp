// Messages between nodes of one host, where the cluster says how fast these are: a node copies one
// after the other, and each is seen a little later. All others are another solver's.
#include <algorithm>
#include <map>
#include <utility>

#include "fabric/virtual/flows.h"

namespace tutti::simulation {
namespace {

class LocalFlows final : public Flows {
 public:
  LocalFlows(const ClusterConfig& config, int nodes, Agenda& agenda, Changed changed,
             std::unique_ptr<Flows> others)
      : config_(config),
        agenda_(agenda),
        changed_(std::move(changed)),
        others_(std::move(others)),
        free_s_(static_cast<size_t>(nodes)) {}

  void start(uint64_t id, Rank from, Rank to, double bytes) override {
    if (host_of(config_, from) != host_of(config_, to)) return others_->start(id, from, to, bytes);
    double& free_s = free_s_[static_cast<size_t>(from)];
    free_s = std::max(now(), free_s) + bytes / config_.host_bandwidth;
    const uint64_t alarm = agenda_.at(free_s + config_.host_latency_s, [this, id] {
      copies_.erase(id);
      ended_.push_back(id);
      changed_();
    });
    copies_[id] = {free_s, bytes, alarm};
  }

  double stop(uint64_t id) override {
    if (std::erase(ended_, id) > 0) return 0;
    const auto copy = copies_.find(id);
    if (copy == copies_.end()) return others_->stop(id);
    const Copy stopped = copy->second;
    agenda_.cancel(stopped.alarm);
    copies_.erase(copy);
    return std::clamp((stopped.end_s - now()) * config_.host_bandwidth, 0.0, stopped.bytes);
  }

  bool moves(uint64_t id) const override { return copies_.contains(id) || others_->moves(id); }
  void flush() override { others_->flush(); }

  std::vector<uint64_t> collect() override {
    std::vector<uint64_t> ended = others_->collect();
    ended.insert(ended.end(), ended_.begin(), ended_.end());
    ended_.clear();
    return ended;
  }

  bool idle() const override { return copies_.empty() && ended_.empty() && others_->idle(); }

 private:
  struct Copy {
    double end_s = 0;  // when the sender is done with it
    double bytes = 0;
    uint64_t alarm = 0;
  };

  const ClusterConfig& config_;
  Agenda& agenda_;
  Changed changed_;
  std::unique_ptr<Flows> others_;
  std::vector<double> free_s_;  // by rank: when it has copied all that it sends
  std::map<uint64_t, Copy> copies_;
  std::vector<uint64_t> ended_;  // and not collected
};

}  // namespace

std::unique_ptr<Flows> make_local_flows(const ClusterConfig& config, int nodes, Agenda& agenda,
                                        Changed changed, std::unique_ptr<Flows> others) {
  return std::make_unique<LocalFlows>(config, nodes, agenda, std::move(changed), std::move(others));
}

}  // namespace tutti::simulation
