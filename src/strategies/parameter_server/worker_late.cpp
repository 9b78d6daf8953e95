// Parameters that arrive while the forward pass goes on: each layer waits for its own and for those
// before it, as Model::Needed asks for them.
//
// When all replies are there the step before is closed everywhere, so nobody can need the
// parameters before any more: what has arrived is taken over at once, the rest piece by piece.
// With prefetch the next pull is asked for when the last piece is here, so that it finds the second
// buffer free: at the latest when the backward pass begins.
#include <utility>

#include "core/error.h"
#include "strategies/parameter_server/worker.h"

namespace tutti::parameter_server {

void Worker::commit_late() {
  late_pieces_ = 0;
  for (Link& link : links_) {
    use(link);
    if (link.awaits()) {
      for (size_t i = 0; i < link.pieces().size(); ++i)
        if (link.handles()[i + 1].pending()) ++late_pieces_;
      continue;
    }
    if (!context_.node.clock().cost_only()) link.read(context_.model.parameters());
    foresee_statistics(link.range());
    late_copied_ += static_cast<double>(link.range().size());
  }
  began_ = true;
  local_.expect(late_pieces_ > 0 ? this : nullptr);
  if (late_pieces_ == 0) await({0, 0});
}

void Worker::ask_ahead() {
  ahead_ = late_pieces_ > 0;
  if (!ahead_) ask(Request::kAhead);
}

bool Worker::has(Range range) {
  if (late_pieces_ == 0) return true;
  for (Link& link : links_)
    for (size_t i = 0; i < link.pieces().size(); ++i)
      if (link.pieces()[i].begin < range.end && link.handles()[i + 1].pending()) return false;
  return true;
}

void Worker::take(Link& link, size_t piece, const Completion& completion) {
  link.ended(piece + 1, completion);
  --late_pieces_;
  const Range range = link.pieces()[piece];
  if (!context_.node.clock().cost_only()) link.read(context_.model.parameters(), range);
  foresee_statistics(range);
  late_copied_ += static_cast<double>(range.size());
}

void Worker::take_arrived() {
  if (late_pieces_ == 0) return;  // others are those of the next pull
  for (Link& link : links_)
    for (size_t i = 0; i < link.pieces().size(); ++i) {
      Handle& handle = link.handles()[i + 1];
      if (!handle.pending()) continue;
      if (const auto completion = context_.node.endpoint().test(handle)) take(link, i, *completion);
    }
}

void Worker::await(Range range) {
  PhaseScope scope(context_.watch, Phase::kCommunicate);
  take_arrived();
  for (Link& link : links_)
    for (size_t i = 0; late_pieces_ > 0 && i < link.pieces().size(); ++i) {
      Handle& handle = link.handles()[i + 1];
      if (link.pieces()[i].begin >= range.end || !handle.pending()) continue;
      scope.change(Phase::kWait);
      const Completion completion =
          context_.node.endpoint().wait(handle, context_.node.timeout_s());
      scope.change(Phase::kCommunicate);
      take(link, i, completion);
    }
  // One copy each way of all that came: as much work as when they come together.
  const double copied = std::exchange(late_copied_, 0);
  if (copied > 0) context_.node.clock().charge({.flops = 0, .memory_bytes = 8.0 * copied});
  if (ahead_) ask_ahead();
}

}  // namespace tutti::parameter_server
