// Parameters that arrive while the forward pass goes on: each layer waits for its own and for those
// before it, as Model::Needed asks for them.
//
// When all replies are there the step before is closed everywhere, so nobody can need the
// parameters before any more: what has arrived is taken over at once, the rest piece by piece.
// With prefetch the next pull is asked for when the last piece is here, so that it finds the second
// buffer free: at the latest when the backward pass begins.
#pragma once

#include <functional>

#include "strategies/compute.h"
#include "strategies/parameter_server/accrued_gradients.h"
#include "strategies/parameter_server/server_links.h"

namespace tutti::parameter_server {

class LatePulls : public LateParameters {
 public:
  // `ask` asks for the next parameters.
  LatePulls(Context& context, ServerLinks& links, AccruedGradients& accrued,
            std::function<void()> ask);

  // The replies are here: takes over what has come of their parameters.
  void begin();
  bool pending() const { return pieces_ > 0; }
  void ask_ahead();
  bool has(Range range) override;
  void await(Range range) override;

 private:
  void take_arrived();
  void take(Link& link, size_t piece, const Completion& completion);

  Context& context_;
  ServerLinks& links_;
  AccruedGradients& accrued_;
  std::function<void()> ask_;
  size_t pieces_ = 0;  // that are still on their way
  double copied_ = 0;  // floats, not charged yet
  bool ahead_ = false;  // the next pull is asked for when the last of them is here
};

}  // namespace tutti::parameter_server
