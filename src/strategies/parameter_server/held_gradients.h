// Where the gradients lie that the state machine of a shard names: in which slot of the shard.
//
// Only the head of a chain has gradients. One that took over knows which ones the head before had
// gathered, and lacks them until their workers have sent them again.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "strategies/parameter_server/shard.h"
#include "strategies/parameter_server/turn.h"

namespace tutti::parameter_server {

class HeldGradients {
 public:
  HeldGradients(Shard& shard, int workers) : shard_(shard), held_(static_cast<size_t>(workers)) {}

  void hold(const GradientName& name, size_t slot);
  std::optional<size_t> slot_of(const GradientName& name) const;
  void discard(const GradientName& name);  // its slot is free; nothing if it is not here
  // Copies what lies in this worker's window into memory of this server's own.
  void secure(int worker);
  void discard_all();

  void lack(std::vector<GradientName> names) { absent_ = std::move(names); }
  bool lacks(const GradientName& name) const;
  std::span<const GradientName> absent() const { return absent_; }

 private:
  struct Held {
    uint64_t sequence;
    size_t slot;
  };
  std::vector<Held>& of(int worker) { return held_[static_cast<size_t>(worker)]; }

  Shard& shard_;
  std::vector<std::vector<Held>> held_;  // by worker
  std::vector<GradientName> absent_;
};

}  // namespace tutti::parameter_server
