#include "fabric/virtual/transfers.h"

#include <algorithm>
#include <utility>

namespace tutti::simulation {

Transfers::Transfers(std::unique_ptr<Flows> flows, Changed changed)
    : flows_(std::move(flows)), changed_(std::move(changed)) {}

void Transfers::start(uint64_t id, Rank from, Rank to, size_t bytes) {
  // Empty messages still cost their latency; the simulator would never start a flow of 0 bytes.
  const double size = std::max<double>(1, static_cast<double>(bytes));
  transfers_.emplace(id, Transfer{from, to, size});
  to_start_.push_back(id);
  changed_();
}

void Transfers::cancel(uint64_t id) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  if (found->second.flowing) flows_->stop(id);
  transfers_.erase(found);
}

void Transfers::flush() {
  for (const uint64_t id : std::exchange(to_start_, {})) {
    const auto found = transfers_.find(id);  // it may have been cancelled meanwhile
    if (found == transfers_.end() || found->second.flowing) continue;
    Transfer& transfer = found->second;
    if (!reachable(transfer.from, transfer.to)) continue;
    transfer.flowing = true;
    flows_->start(id, transfer.from, transfer.to, transfer.bytes);
  }
  flows_->flush();
}

std::vector<uint64_t> Transfers::collect() {
  std::vector<uint64_t> finished = flows_->collect();
  for (const uint64_t id : finished) transfers_.erase(id);
  return finished;
}

bool Transfers::idle() const { return flows_->idle() && to_start_.empty(); }

uint64_t Transfers::cut(Separates separates) {
  for (auto& [id, transfer] : transfers_)
    if (transfer.flowing && separates(transfer.from, transfer.to) && flows_->moves(id)) {
      transfer.bytes = std::max(1.0, flows_->stop(id));
      transfer.flowing = false;
    }
  const uint64_t cut = next_cut_++;
  cuts_[cut] = std::move(separates);
  return cut;
}

void Transfers::heal(uint64_t cut) {
  cuts_.erase(cut);
  for (const auto& [id, transfer] : transfers_)
    if (!transfer.flowing) to_start_.push_back(id);
  changed_();
}

bool Transfers::reachable(Rank a, Rank b) const {
  return std::none_of(cuts_.begin(), cuts_.end(),
                      [&](const auto& cut) { return cut.second(a, b); });
}

}  // namespace tutti::simulation
