#include "strategies/parameter_server/late_pulls.h"

#include <utility>

namespace tutti::parameter_server {

LatePulls::LatePulls(Context& context, ServerLinks& links, AccruedGradients& accrued,
                     std::function<void()> ask)
    : context_(context), links_(links), accrued_(accrued), ask_(std::move(ask)) {}

void LatePulls::begin() {
  pieces_ = 0;
  for (Link& link : links_) {
    if (link.awaits()) {
      for (size_t i = 0; i < link.pieces().size(); ++i)
        if (link.handles()[i + 1].pending()) ++pieces_;
      continue;
    }
    context_.arithmetic().perform([&] { link.read(context_.model.parameters()); });
    accrued_.foresee_statistics(link.range());
    copied_ += static_cast<double>(link.range().size());
  }
}

void LatePulls::ask_ahead() {
  ahead_ = pending();
  if (!ahead_) ask_();
}

bool LatePulls::has(Range range) {
  if (!pending()) return true;
  for (Link& link : links_)
    for (size_t i = 0; i < link.pieces().size(); ++i)
      if (link.pieces()[i].begin < range.end && link.handles()[i + 1].pending()) return false;
  return true;
}

void LatePulls::take(Link& link, size_t piece, const Completion& completion) {
  link.ended(piece + 1, completion);
  --pieces_;
  const Range range = link.pieces()[piece];
  context_.arithmetic().perform([&] { link.read(context_.model.parameters(), range); });
  accrued_.foresee_statistics(range);
  copied_ += static_cast<double>(range.size());
}

void LatePulls::take_arrived() {
  if (!pending()) return;  // others are those of the next pull
  for (Link& link : links_)
    for (size_t i = 0; i < link.pieces().size(); ++i) {
      Handle& handle = link.handles()[i + 1];
      if (!handle.pending()) continue;
      if (const auto completion = context_.node.endpoint().test(handle)) take(link, i, *completion);
    }
}

void LatePulls::await(Range range) {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  take_arrived();
  for (Link& link : links_)
    for (size_t i = 0; pending() && i < link.pieces().size(); ++i) {
      Handle& handle = link.handles()[i + 1];
      if (link.pieces()[i].begin >= range.end || !handle.pending()) continue;
      scope.change(Phase::kWait);
      const Completion completion =
          context_.node.endpoint().wait(handle, context_.node.timeout_s());
      scope.change(Phase::kCommunicate);
      take(link, i, completion);
    }
  // One copy each way of all that came: as much work as when they come together.
  const double copied = std::exchange(copied_, 0);
  if (copied > 0) context_.node.clock().charge({.flops = 0, .memory_bytes = 8.0 * copied});
  if (ahead_) ask_ahead();
}

}  // namespace tutti::parameter_server
