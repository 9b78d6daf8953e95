// Channels, loss and progress. The life of a single message is in transport_messages.cpp.
#include "fabric/process/transport.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace tutti::process {

Transport::Transport(Board& board, Rank rank, const Neighbourhood& neighbourhood, Announce announce,
                     Watch watch)
    : board_(board),
      rank_(rank),
      neighbourhood_(neighbourhood),
      announce_(std::move(announce)),
      watch_(std::move(watch)),
      rendezvous_(board, rank),
      courier_(
          [this](Operation& operation, State state, size_t bytes) { end(operation, state, bytes); },
          [this](Operation& operation) { match_again(operation); }),
      peers_(static_cast<size_t>(board.nodes())) {}

const UcxContext& Transport::context_for(Rank rank) {
  std::unique_ptr<UcxContext>& context = near(rank) ? shared_memory_ : network_;
  if (!context) context = std::make_unique<UcxContext>(near(rank) ? "" : neighbourhood_.interface);
  return *context;
}

void Transport::dial(Rank rank) {
  Peer& other = peer(rank);
  if (other.channel || !other.alive) return;
  other.channel = std::make_unique<Channel>(context_for(rank), *this, rank, other.incarnation);
  channels_.push_back(other.channel.get());
  watch_(other.channel->event_fd(), true);
  if (near(rank))
    expect_pulls(*other.channel);
  else
    courier_.open(*other.channel);
  if (rank == rank_)
    connect(rank, other.channel->address());
  else
    announce_(rank, other.channel->address());
}

void Transport::connect(Rank rank, const std::string& address) {
  Channel& channel = *peer(rank).channel;
  if (near(rank))
    channel.connect(address);
  else
    courier_.connect(channel, address, rank_ <= rank);
}

void Transport::on_address(Rank rank, uint32_t incarnation, const std::string& address) {
  Peer& other = peer(rank);
  if (!other.alive || other.incarnation != incarnation) return;
  dial(rank);
  if (!other.channel->connected()) connect(rank, address);
  flush_queues();
}

bool Transport::connected(Rank rank) const {
  const Peer& other = peers_[static_cast<size_t>(rank)];
  return other.channel && other.channel->connected() && (near(rank) || other.channel->greeted());
}

std::string Transport::why_unconnected(Rank rank) const {
  const Peer& other = peers_[static_cast<size_t>(rank)];
  return other.channel ? other.channel->failure() : "";
}

// From now on nobody arms its event fd, which would keep a sleeper awake.
void Transport::stop_progress(Channel& channel) {
  if (std::erase(channels_, &channel) != 0) watch_(channel.event_fd(), false);
}

void Transport::lose(Rank rank) {
  Peer& other = peer(rank);
  other.alive = false;
  Channel* channel = other.channel.get();
  if (channel) {
    // What has arrived counts as arrived: UCX matches it with the receives that wait for it.
    channel->close();
    stop_progress(*channel);
    courier_.settle();
    settle_claims();
    match_deferred(*channel);
    settle_claims();
    courier_.forget(*channel);
    forget_strays(*channel, false);
  }
  check_offers();
  operations_.for_each_pending([&](Operation& operation) {
    if (operation.peer == rank || operation.source == rank) end_by_loss(operation);
  });
  queued_ -= other.queue.size();
  other.queue.clear();
  std::erase_if(pulls_, [&](const Pull& pull) { return pull.channel == channel; });
}

void Transport::end_by_loss(Operation& operation) {
  if (!operation.sending) take_back(operation);
  if (operation.envelope) {
    // Half arrived, or half sent. The channel makes no progress any more, so its buffer is free.
    operation.envelope->channel->abandon();
    unseal(*operation.envelope);
  }
  if (operation.phase == Phase::kOffered && near(operation.peer)) {
    free_offer(operation);
    std::erase(offered_, &operation);
  }
  std::erase(deferred_, &operation);
  if (operation.peer == kAnyRank) {  // somebody else may still send what it waits for
    operation.source = kAnyRank;
    operation.phase = Phase::kDeferred;
    deferred_.push_front(&operation);
    return;
  }
  end(operation, State::kPeerLost, 0);
}

void Transport::join(Rank rank, uint32_t incarnation) {
  Peer& other = peer(rank);
  if (other.channel) {
    forget_strays(*other.channel, true);
    retired_.push_back(std::move(other.channel));
  }
  other.alive = true;
  other.incarnation = incarnation;
}

void Transport::progress() {
  for (size_t i = 0; i < channels_.size(); ++i) {
    Channel& channel = *channels_[i];
    if (channel.progress() != 0 && !deferred_.empty()) match_deferred(channel);
  }
  settle_claims();  // first what we ask for: it would wait behind what we are asked for
  if (courier_.busy()) {
    courier_.progress();
    settle_claims();
  }
  if (std::exchange(rematch_, false))
    for (Channel* channel : channels_) match_deferred(*channel);
  if (!offered_.empty() && rendezvous_.any_taken()) check_offers();
  if (!pulls_.empty()) serve_pulls();
  if (queued_ != 0) flush_queues();
}

bool Transport::arm() {
  // What came while the last round answered something else raises no event any more.
  if (courier_.busy() || !pulls_.empty() || !claims_.empty() || rematch_) return false;
  return std::all_of(channels_.begin(), channels_.end(), [](Channel* c) { return c->arm(); });
}

void Transport::flush_queues() {
  for (Peer& other : peers_) {
    while (!other.queue.empty() && other.channel && other.channel->connected()) {
      Operation& operation = *other.queue.front();
      if (!transmit(operation)) break;
      other.queue.pop_front();
      --queued_;
    }
  }
}

void Transport::check_offers() {
  std::erase_if(offered_, [&](Operation* operation) {
    if (!rendezvous_.taken(*operation)) return false;
    free_offer(*operation);
    end(*operation, State::kDone, operation->bytes);
    return true;
  });
}

}  // namespace tutti::process
