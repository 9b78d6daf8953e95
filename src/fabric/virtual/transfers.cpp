#include "fabric/virtual/transfers.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tutti::simulation {

Transfers::Transfers(Platform& platform, Agenda& agenda, std::function<void()> changed)
    : platform_(platform), agenda_(agenda), changed_(std::move(changed)) {}

void Transfers::start(uint64_t id, Rank from, Rank to, size_t bytes) {
  // Empty messages still cost their latency.
  const double size = std::max<double>(1, static_cast<double>(bytes));
  transfers_.emplace(id, Transfer{from, to, size});
  to_start_.push_back(id);
  changed_();
}

void Transfers::cancel(uint64_t id) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  if (found->second.flows) platform_.network().stop(id, now());
  transfers_.erase(found);
  std::erase(finished_, id);
  changed_();
}

void Transfers::begin(uint64_t id, Transfer& transfer) {
  if (!reachable(transfer.from, transfer.to)) return;
  platform_.network().start(id, platform_.route(transfer.from, transfer.to),
                            std::ceil(transfer.bytes), now());
  transfer.flows = true;
}

void Transfers::flush() {
  for (const uint64_t id : std::exchange(to_start_, {})) {
    const auto found = transfers_.find(id);  // it may have been cancelled meanwhile
    if (found != transfers_.end() && !found->second.flows && !found->second.ended)
      begin(id, found->second);
  }
  wake_in_time();
}

// When the network has something to tell.
void Transfers::wake_in_time() {
  const double next_s = platform_.network().next_s(now());
  if (alarm_ != 0 && next_s == alarm_s_) return;
  if (alarm_ != 0) agenda_.cancel(std::exchange(alarm_, 0));
  if (!std::isfinite(next_s)) return;
  alarm_s_ = next_s;
  alarm_ = agenda_.at(next_s, [this] {
    alarm_ = 0;
    for (const uint64_t id : platform_.network().advance(now())) {
      Transfer& transfer = transfers_.at(id);
      transfer.flows = false;
      transfer.ended = true;
      finished_.push_back(id);
    }
    if (finished_.empty()) return wake_in_time();
    changed_();
  });
}

std::vector<uint64_t> Transfers::collect() {
  for (const uint64_t id : finished_) transfers_.erase(id);
  return std::exchange(finished_, {});
}

bool Transfers::idle() const {
  return platform_.network().empty() && finished_.empty() && to_start_.empty();
}

uint64_t Transfers::cut(Separates separates) {
  for (auto& [id, transfer] : transfers_)
    if (transfer.flows && separates(transfer.from, transfer.to)) {
      transfer.bytes = std::max(1.0, platform_.network().stop(id, now()));
      transfer.flows = false;
    }
  changed_();
  const uint64_t cut = next_cut_++;
  cuts_[cut] = std::move(separates);
  return cut;
}

void Transfers::heal(uint64_t cut) {
  cuts_.erase(cut);
  for (const auto& [id, transfer] : transfers_)
    if (!transfer.flows && !transfer.ended) to_start_.push_back(id);
  changed_();
}

bool Transfers::reachable(Rank a, Rank b) const {
  return std::none_of(cuts_.begin(), cuts_.end(),
                      [&](const auto& cut) { return cut.second(a, b); });
}

}  // namespace tutti::simulation
