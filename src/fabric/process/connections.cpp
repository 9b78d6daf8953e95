#include "fabric/process/connections.h"

#include <algorithm>
#include <utility>

namespace tutti::process {

Connections::Connections(Rank rank, int nodes, const Neighbourhood& neighbourhood,
                         Announce announce, Watch watch)
    : rank_(rank),
      neighbourhood_(neighbourhood),
      announce_(std::move(announce)),
      watch_(std::move(watch)),
      peers_(static_cast<size_t>(nodes)) {}

const UcxContext& Connections::context_for(Rank rank) {
  std::unique_ptr<UcxContext>& context = near(rank) ? shared_memory_ : network_;
  if (!context) context = std::make_unique<UcxContext>(near(rank) ? "" : neighbourhood_.interface);
  return *context;
}

Channel& Connections::open(Rank rank) {
  Peer& other = peer(rank);
  other.channel = std::make_unique<Channel>(context_for(rank), rank, other.incarnation);
  progressing_.push_back(other.channel.get());
  watch_(other.channel->event_fd(), true);
  return *other.channel;
}

bool Connections::lacks(Rank rank) const {
  if (rank == rank_ || !alive(rank)) return false;
  const Channel* channel = this->channel(rank);
  return !channel || !channel->connected() || !(near(rank) || channel->greeted());
}

std::string Connections::why_unconnected(Rank rank) const {
  const Channel* channel = this->channel(rank);
  return channel ? channel->failure() : "";
}

Channel* Connections::lose(Rank rank) {
  Peer& other = peer(rank);
  other.alive = false;
  Channel* channel = other.channel.get();
  if (!channel) return nullptr;
  // A message that is here counts as arrived: UCX matches it with the receives that wait.
  channel->close();
  // From now on nobody arms its event fd, which would keep a sleeper awake.
  if (std::erase(progressing_, channel) != 0) watch_(channel->event_fd(), false);
  return channel;
}

void Connections::join(Rank rank, uint32_t incarnation) {
  Peer& other = peer(rank);
  if (other.channel) retired_.push_back(std::move(other.channel));
  other.alive = true;
  other.incarnation = incarnation;
}

bool Connections::arm() const {
  return std::all_of(progressing_.begin(), progressing_.end(), [](Channel* c) { return c->arm(); });
}

}  // namespace tutti::process
