// How gradients of a dense model reach the servers: piece by piece as the backward pass has them,
// as a whole, or left in a window that a server shares; in deterministic runs as exact sums.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/bytes.h"
#include "strategies/gradient_sum.h"
#include "strategies/parameter_server/server_links.h"

namespace tutti::parameter_server {

class GradientPushes {
 public:
  // Where there is a sum it is pushed in the place of gradients.
  GradientPushes(Context& context, ServerLinks& links, std::optional<GradientSum>& sum);

  // This range of the model's gradients is final.
  void push_pieces(Range ready);
  // Of a gradient as a whole, with the request that pushes it: `push` leaves it in a window where
  // there is one, `send` never does.
  void push(Link& link, Request request, std::span<const float> gradients);
  void send(Link& link, const Request& request, std::span<const float> gradients);

 private:
  Context& context_;
  ServerLinks& links_;
  std::optional<GradientSum>& sum_;
  std::vector<std::vector<Range>> pieces_;  // of each link's range
};

}  // namespace tutti::parameter_server
