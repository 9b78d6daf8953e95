#include "strategies/parameter_server/held_gradients.h"

#include <algorithm>

namespace tutti::parameter_server {

void HeldGradients::hold(const GradientName& name, size_t slot) {
  std::erase(absent_, name);
  of(name.worker).push_back({name.sequence, slot});
}

std::optional<size_t> HeldGradients::slot_of(const GradientName& name) const {
  for (const Held& held : held_[static_cast<size_t>(name.worker)])
    if (held.sequence == name.sequence) return held.slot;
  return std::nullopt;
}

void HeldGradients::discard(const GradientName& name) {
  std::erase(absent_, name);
  std::erase_if(of(name.worker), [&](const Held& held) {
    if (held.sequence != name.sequence) return false;
    shard_.free_slot(held.slot);
    return true;
  });
}

void HeldGradients::secure(int worker) {
  for (Held& held : of(worker)) held.slot = shard_.own_slot(held.slot);
}

void HeldGradients::discard_all() {
  absent_.clear();
  for (std::vector<Held>& list : held_) {
    for (const Held& held : list) shard_.free_slot(held.slot);
    list.clear();
  }
}

bool HeldGradients::lacks(const GradientName& name) const {
  return std::find(absent_.begin(), absent_.end(), name) != absent_.end();
}

}  // namespace tutti::parameter_server
