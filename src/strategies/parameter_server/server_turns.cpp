// Parameters leave in turns.
//
// Hundreds of workers would otherwise share the server's link, and each would have its parameters
// only when everybody has. In turns the link carries as much and most of them wait for half as
// long; a simulated network has less to share out, too. Gradients do not take turns: a worker
// announces them when its backward pass begins, and a slow one would hold up the others.
#include "strategies/parameter_server/server.h"

namespace tutti::parameter_server {
namespace {

// Enough to fill the link while some of them are slow to read.
constexpr size_t kAtOnce = 16;

}  // namespace

void Server::take_turn(int index, uint64_t sequence, std::span<const float> parameters) {
  turns_.push_back({index, sequence, parameters});
  begin_turns();
}

void Server::begin_turns() {
  while (under_way_ < kAtOnce && !turns_.empty()) {
    const Turn turn = turns_.front();
    turns_.pop_front();
    ++under_way_;
    handles_.push_back(node_.endpoint().send(turn.worker, parameters_tag(turn.sequence),
                                             bytes_of(turn.parameters)));
    piece_of_.push_back({turn.worker, turn.parameters.size_bytes(), true});
  }
}

void Server::end_turn() {
  --under_way_;
  begin_turns();
}

// What is under way to this worker is given up: it is gone, or has it already.
void Server::forget_turns(int index) {
  std::erase_if(turns_, [&](const Turn& turn) { return turn.worker == index; });
  for (size_t i = handles_.size(); i-- > 1;) {
    if (piece_of_[i].worker != index || !piece_of_[i].sending) continue;
    handles_.erase(handles_.begin() + static_cast<std::ptrdiff_t>(i));
    piece_of_.erase(piece_of_.begin() + static_cast<std::ptrdiff_t>(i));
    --under_way_;
  }
  begin_turns();
}

}  // namespace tutti::parameter_server
