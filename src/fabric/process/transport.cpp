#include "fabric/process/transport.h"

#include <utility>

namespace tutti::process {

Transport::Transport(Board& board, Rank rank, const Neighbourhood& neighbourhood,
                     Connections::Announce announce, Connections::Watch watch)
    : rank_(rank),
      rendezvous_(board, rank),
      receives_(connections_, envelopes_, operations_, courier_, fetches_),
      envelopes_(receives_),
      courier_([this](Operation& operation) { receives_.match_again(operation); }),
      offers_(rendezvous_, envelopes_),
      fetches_(rendezvous_, connections_, envelopes_, courier_,
               [this](Operation& operation) { receives_.match_again(operation); }),
      sends_(connections_, envelopes_, offers_, courier_, board.nodes()),
      connections_(rank, board.nodes(), neighbourhood, std::move(announce), std::move(watch)) {}

void Transport::dial(Rank rank) {
  if (connections_.channel(rank) || !connections_.alive(rank)) return;
  Channel& channel = connections_.open(rank);
  if (connections_.near(rank))
    offers_.listen(channel);
  else
    courier_.open(channel);
  if (rank == rank_)
    connect(rank, channel.address());
  else
    connections_.announce(rank);
}

void Transport::connect(Rank rank, const std::string& address) {
  Channel& channel = *connections_.channel(rank);
  if (connections_.near(rank))
    channel.connect(address);
  else
    courier_.connect(channel, address, rank_ <= rank);
}

void Transport::on_address(Rank rank, uint32_t incarnation, const std::string& address) {
  if (!connections_.alive(rank) || connections_.incarnation(rank) != incarnation) return;
  dial(rank);
  if (!connections_.channel(rank)->connected()) connect(rank, address);
  sends_.flush();
}

void Transport::lose(Rank rank) {
  if (Channel* channel = connections_.lose(rank)) {
    courier_.settle();
    fetches_.settle();
    receives_.match(*channel);
    fetches_.settle();
    courier_.forget(*channel);
    receives_.forget_strays(*channel, false);
    offers_.forget(*channel);
  }
  offers_.check();
  operations_.for_each_pending([&](Operation& operation) {
    if (operation.peer != rank && operation.source != rank) return;
    operation.sending ? sends_.end_by_loss(operation) : receives_.end_by_loss(operation);
  });
  sends_.forget(rank);
}

void Transport::join(Rank rank, uint32_t incarnation) {
  if (const Channel* before = connections_.channel(rank)) receives_.forget_strays(*before, true);
  connections_.join(rank, incarnation);
}

Operation& Transport::begin(bool sending, Rank peer, Tag tag, const std::byte* data, size_t bytes) {
  Operation& operation = operations_.take();
  operation.serial = ++serial_;
  operation.sending = sending;
  operation.peer = peer;
  operation.tag = tag;
  operation.data = const_cast<std::byte*>(data);  // written to only if it is a receive's
  operation.bytes = bytes;
  return operation;
}

Operation& Transport::send(Rank to, Tag tag, std::span<const std::byte> data) {
  Operation& operation = begin(true, to, tag, data.data(), data.size());
  if (!connections_.alive(to)) {
    operation.end(State::kPeerLost, 0);
    return operation;
  }
  sends_.count(to, data.size());
  if (!connections_.channel(to)) dial(to);
  sends_.begin(operation);
  return operation;
}

Operation& Transport::receive(Rank from, Tag tag, std::span<std::byte> buffer) {
  Operation& operation = begin(false, from, tag, buffer.data(), buffer.size());
  if (receives_.defers(operation)) {
    receives_.defer(operation);
  } else if (!connections_.alive(from)) {
    receives_.take_from_lost(operation);
  } else {
    if (!connections_.channel(from)) dial(from);
    receives_.post(operation, *connections_.channel(from));
  }
  fetches_.settle();
  return operation;
}

void Transport::cancel(Operation& operation) {
  operation.sending ? sends_.cancel(operation) : receives_.cancel(operation);
  if (operation.pending()) operation.end(State::kCancelled, 0);
}

void Transport::cancel_all() {
  operations_.for_each_pending([&](Operation& operation) { cancel(operation); });
}

void Transport::progress() {
  for (size_t i = 0; i < connections_.progressing().size(); ++i) {
    Channel& channel = *connections_.progressing()[i];
    if (channel.progress() != 0) receives_.match(channel);
  }
  fetches_.settle();  // first what we ask for: it would wait behind what we are asked for
  if (courier_.busy()) {
    courier_.progress();
    fetches_.settle();
  }
  receives_.progress();
  offers_.progress();
  sends_.progress();
}

bool Transport::arm() {
  // What came while the last round answered something else raises no event any more.
  if (courier_.busy() || offers_.busy() || fetches_.busy() || receives_.busy()) return false;
  return connections_.arm();
}

}  // namespace tutti::process
