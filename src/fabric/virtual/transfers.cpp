#include "fabric/virtual/transfers.h"

#include <algorithm>
#include <cmath>
#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/s4u.hpp>
#include <utility>

#include "fabric/virtual/agenda.h"

namespace tutti::simulation {
namespace {

using simgrid::kernel::resource::Action;
using simgrid::kernel::resource::NetworkAction;

// SimGrid publishes the signal and the base class of its argument, but not the class itself. Action
// is its first and only base, hence at the same address; were it not, no message would ever arrive.
const Action& as_action(const NetworkAction& flow) { return reinterpret_cast<const Action&>(flow); }

}  // namespace

Transfers::Transfers(const Platform& platform, std::function<void()> changed)
    : platform_(platform), changed_(std::move(changed)) {
  // One engine lives per process, so nobody else's flows come here, and nothing need disconnect.
  simgrid::s4u::Link::on_communication_state_change_cb([this](NetworkAction& flow, Action::State) {
    if (as_action(flow).get_state() == Action::State::FINISHED)
      flow_ended(as_action(flow).get_activity());
  });
}

Transfers::~Transfers() = default;

void Transfers::start(uint64_t id, Rank from, Rank to, size_t bytes) {
  // Empty messages still cost their latency; the simulator would never start a flow of 0 bytes.
  const double size = std::max<double>(1, static_cast<double>(bytes));
  transfers_.emplace(id, Transfer{from, to, size, nullptr});
  to_start_.push_back(id);
  changed_();
}

void Transfers::cancel(uint64_t id) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  if (found->second.flow) stop(found->second);  // also one that has finished but is not collected
  transfers_.erase(found);
  std::erase(finished_, id);
}

void Transfers::begin(uint64_t id, Transfer& transfer) {
  if (!reachable(transfer.from, transfer.to)) return;
  transfer.flow = simgrid::s4u::Comm::sendto_async(
      platform_.host_of(transfer.from), platform_.host_of(transfer.to),
      static_cast<uint64_t>(std::ceil(transfer.bytes)));
  by_activity_[transfer.flow->get_impl()] = id;
}

double Transfers::stop(Transfer& transfer) {
  const double left = transfer.flow->get_remaining();
  by_activity_.erase(transfer.flow->get_impl());
  // Not at once: telling the simulator may switch actors, even in the middle of an unwinding one.
  to_stop_.push_back(std::exchange(transfer.flow, nullptr));
  changed_();
  return left;
}

void Transfers::flow_ended(const void* activity) {
  const auto found = by_activity_.find(activity);
  if (found == by_activity_.end()) return;
  finished_.push_back(found->second);
  by_activity_.erase(found);
  changed_();
}

void Transfers::flush() {
  for (simgrid::s4u::CommPtr& flow : to_stop_) {
    flow->cancel();
    retire(std::move(flow));
  }
  to_stop_.clear();
  for (const uint64_t id : std::exchange(to_start_, {})) {
    const auto found = transfers_.find(id);  // it may have been cancelled meanwhile
    if (found != transfers_.end() && !found->second.flow) begin(id, found->second);
  }
}

std::vector<uint64_t> Transfers::collect() {
  for (const uint64_t id : finished_) {
    const auto found = transfers_.find(id);
    retire(std::move(found->second.flow));
    transfers_.erase(found);
  }
  return std::exchange(finished_, {});
}

// The simulator looks at a flow once more at the end of the round in which it ended, so it must
// outlive that: until time has passed.
void Transfers::retire(simgrid::s4u::CommPtr flow) {
  if (now() > retired_at_) retired_.clear();
  retired_at_ = now();
  retired_.push_back(std::move(flow));
}

bool Transfers::idle() const {
  return by_activity_.empty() && finished_.empty() && to_start_.empty();
}

uint64_t Transfers::cut(Separates separates) {
  for (auto& [id, transfer] : transfers_)
    if (transfer.flow && separates(transfer.from, transfer.to) &&
        by_activity_.contains(transfer.flow->get_impl()))
      transfer.bytes = std::max(1.0, stop(transfer));
  const uint64_t cut = next_cut_++;
  cuts_[cut] = std::move(separates);
  return cut;
}

void Transfers::heal(uint64_t cut) {
  cuts_.erase(cut);
  for (const auto& [id, transfer] : transfers_)
    if (!transfer.flow) to_start_.push_back(id);
  changed_();
}

bool Transfers::reachable(Rank a, Rank b) const {
  return std::none_of(cuts_.begin(), cuts_.end(),
                      [&](const auto& cut) { return cut.second(a, b); });
}

}  // namespace tutti::simulation
