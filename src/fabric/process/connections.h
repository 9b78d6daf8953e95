// Whom a node can reach, and how: a channel to each incarnation of each peer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/process/channel.h"
#include "fabric/process/neighbourhood.h"

namespace tutti::process {

class Connections {
 public:
  // `announce(rank, address)` lets `rank` know how to connect to us.
  using Announce = std::function<void(Rank, const std::string&)>;
  // `watch(fd, on)` adds the event fd of a channel to what the node sleeps on, or removes it.
  using Watch = std::function<void(int, bool)>;
  Connections(Rank rank, int nodes, const Neighbourhood& neighbourhood, Announce announce,
              Watch watch);

  int nodes() const { return static_cast<int>(peers_.size()); }
  bool near(Rank rank) const { return neighbourhood_.near(rank_, rank); }
  bool alive(Rank rank) const { return peer(rank).alive; }
  uint32_t incarnation(Rank rank) const { return peer(rank).incarnation; }
  Channel* channel(Rank rank) const { return peer(rank).channel.get(); }  // null: not opened yet

  Channel& open(Rank rank);
  void announce(Rank rank) const { announce_(rank, peer(rank).channel->address()); }
  bool lacks(Rank rank) const;                   // a living peer, not connected yet
  std::string why_unconnected(Rank rank) const;  // the error of UCX, or empty

  // Closes its channel, which can still be looked at, and makes no more progress.
  Channel* lose(Rank rank);
  void join(Rank rank, uint32_t incarnation);  // its channel before is kept, but not used

  const std::vector<Channel*>& progressing() const { return progressing_; }
  bool arm() const;

 private:
  struct Peer {
    bool alive = true;
    uint32_t incarnation = 0;
    std::unique_ptr<Channel> channel;
  };
  Peer& peer(Rank rank) { return peers_[static_cast<size_t>(rank)]; }
  const Peer& peer(Rank rank) const { return peers_[static_cast<size_t>(rank)]; }
  const UcxContext& context_for(Rank rank);

  Rank rank_;
  const Neighbourhood& neighbourhood_;
  Announce announce_;
  Watch watch_;
  std::unique_ptr<UcxContext> shared_memory_, network_;  // made for the first channel
  std::vector<Peer> peers_;
  std::vector<Channel*> progressing_;
  std::vector<std::unique_ptr<Channel>> retired_;  // of earlier incarnations
};

}  // namespace tutti::process
