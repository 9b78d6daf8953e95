#include "strategies/parameter_server/gradient_pushes.h"

#include "strategies/parameter_server/layout.h"

namespace tutti::parameter_server {

GradientPushes::GradientPushes(Context& context, ServerLinks& links,
                               std::optional<GradientSum>& sum)
    : context_(context), links_(links), sum_(sum) {
  for (const Link& link : links)
    pieces_.push_back(pieces_of(context.model.architecture(), link.range()));
}

void GradientPushes::push_pieces(Range ready) {
  const std::span<const float> gradients = context_.model.gradients();
  for (size_t i = 0; i < links_.size(); ++i)
    for (size_t piece = 0; piece < pieces_[i].size(); ++piece) {
      const Range range = pieces_[i][piece];
      if (range.begin < ready.begin || range.end > ready.end) continue;
      if (links_[i].shares())
        links_[i].leave_gradients(range, gradients);
      else
        links_[i].send_gradients(piece, bytes_of(gradients.subspan(range.begin, range.size())));
    }
}

void GradientPushes::push(Link& link, Request request, std::span<const float> gradients) {
  if (!link.shares()) return send(link, request, gradients);
  link.leave_gradients(link.range(), gradients);
  request.flags |= Request::kOutbox;
  link.request(request);
}

void GradientPushes::send(Link& link, const Request& request, std::span<const float> gradients) {
  link.request(request);
  const Range range = link.range();
  if (range.empty()) return;
  link.send_gradients(
      0, sum_ ? sum_->bytes(range) : bytes_of(gradients.subspan(range.begin, range.size())));
}

}  // namespace tutti::parameter_server
