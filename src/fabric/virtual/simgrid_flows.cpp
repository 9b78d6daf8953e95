// Flows as SimGrid's communications: its network model, its solver, its events.
#include <cmath>
#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/s4u.hpp>
#include <unordered_map>
#include <utility>

#include "fabric/virtual/flows.h"

namespace tutti::simulation {
namespace {

using simgrid::kernel::resource::Action;
using simgrid::kernel::resource::NetworkAction;
using simgrid::s4u::CommPtr;

// SimGrid publishes the signal and the base class of its argument, but not the class itself. Action
// is its first and only base, hence at the same address; were it not, no message would ever arrive.
const Action& as_action(const NetworkAction& flow) { return reinterpret_cast<const Action&>(flow); }

class SimgridFlows final : public Flows {
 public:
  SimgridFlows(const Platform& platform, Changed changed)
      : platform_(platform), changed_(std::move(changed)) {
    // One engine lives per process, so nobody else's flows come here, and nothing need disconnect.
    simgrid::s4u::Link::on_communication_state_change_cb(
        [this](NetworkAction& flow, Action::State) {
          if (as_action(flow).get_state() == Action::State::FINISHED)
            ended(as_action(flow).get_activity());
        });
  }

  void start(uint64_t id, Rank from, Rank to, double bytes) override {
    flush();  // what was stopped before gives way first
    const CommPtr flow = simgrid::s4u::Comm::sendto_async(
        platform_.host_of(from), platform_.host_of(to), static_cast<uint64_t>(std::ceil(bytes)));
    by_activity_[flow->get_impl()] = id;
    flows_[id] = flow;
  }

  double stop(uint64_t id) override {
    const auto found = flows_.find(id);
    const double left = found->second->get_remaining();
    by_activity_.erase(found->second->get_impl());
    // Not at once: telling the simulator may switch actors, even in the middle of an unwinding one.
    to_stop_.push_back(std::move(found->second));
    flows_.erase(found);
    std::erase(finished_, id);
    changed_();
    return left;
  }

  bool moves(uint64_t id) const override {
    const auto found = flows_.find(id);
    return found != flows_.end() && by_activity_.contains(found->second->get_impl());
  }

  void flush() override {
    for (CommPtr& flow : to_stop_) {
      flow->cancel();
      retire(std::move(flow));
    }
    to_stop_.clear();
  }

  std::vector<uint64_t> collect() override {
    for (const uint64_t id : finished_) {
      const auto found = flows_.find(id);
      retire(std::move(found->second));
      flows_.erase(found);
    }
    return std::exchange(finished_, {});
  }

  bool idle() const override { return by_activity_.empty() && finished_.empty(); }

 private:
  void ended(const void* activity) {
    const auto found = by_activity_.find(activity);
    if (found == by_activity_.end()) return;
    finished_.push_back(found->second);
    by_activity_.erase(found);
    changed_();
  }

  // The simulator looks at a flow once more at the end of the round in which it ended, so it must
  // outlive that: until time has passed.
  void retire(CommPtr flow) {
    if (now() > retired_at_) retired_.clear();
    retired_at_ = now();
    retired_.push_back(std::move(flow));
  }

  const Platform& platform_;
  Changed changed_;
  std::unordered_map<uint64_t, CommPtr> flows_;
  std::unordered_map<const void*, uint64_t> by_activity_;
  std::vector<uint64_t> finished_;
  std::vector<CommPtr> to_stop_;
  std::vector<CommPtr> retired_;
  double retired_at_ = 0;
};

}  // namespace

std::unique_ptr<Flows> make_simgrid_flows(const Platform& platform, Changed changed) {
  return std::make_unique<SimgridFlows>(platform, std::move(changed));
}

}  // namespace tutti::simulation
