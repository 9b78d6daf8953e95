#include "strategies/federated_averaging/control_variates.h"

#include <algorithm>

namespace tutti::federated_averaging {

ControlVariates::ControlVariates(size_t size, Arithmetic arithmetic)
    : arithmetic_(arithmetic), c_(arithmetic.is_done() ? size : 0), change_(c_.size()) {}

void ControlVariates::correction(int64_t client, std::span<float> out) const {
  arithmetic_.perform([&] {
    const auto own = of_client_.find(client);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<float>(c_[i] - (own == of_client_.end() ? 0.0 : double{own->second[i]}));
  });
}

void ControlVariates::update(int64_t client, std::span<const float> control, double share) {
  arithmetic_.perform([&] {
    std::vector<float>& own = of_client_[client];
    own.resize(control.size());
    for (size_t i = 0; i < control.size(); ++i) {
      change_[i] += share * (double{control[i]} - double{own[i]});
      own[i] = control[i];
    }
  });
}

void ControlVariates::close_round() {
  for (size_t i = 0; i < c_.size(); ++i) c_[i] += change_[i];
  std::fill(change_.begin(), change_.end(), 0.0);
}

}  // namespace tutti::federated_averaging
