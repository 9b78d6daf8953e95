// Sends: small ones go to UCX, large ones are offered, on this machine by offers.h and to other
// hosts by courier.h. What cannot begin yet waits in order.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "fabric/process/connections.h"
#include "fabric/process/courier.h"
#include "fabric/process/envelope.h"
#include "fabric/process/offers.h"
#include "fabric/process/operation.h"

namespace tutti::process {

class Sends {
 public:
  Sends(Connections& connections, Envelopes& envelopes, Offers& offers, Courier& courier, int nodes)
      : connections_(connections),
        envelopes_(envelopes),
        offers_(offers),
        courier_(courier),
        peers_(static_cast<size_t>(nodes)) {}

  void begin(Operation& operation);  // to a peer that has a channel
  void cancel(Operation& operation);
  void end_by_loss(Operation& operation);
  void forget(Rank rank);  // what waits for it has ended
  // Begins what waited and can.
  void flush();
  void progress() {
    if (queued_ != 0) flush();
  }

  void count(Rank to, size_t bytes);
  Traffic traffic() const { return traffic_; }
  std::vector<uint64_t> bytes_by_peer() const;

 private:
  using Phase = Operation::Phase;
  struct Peer {
    std::deque<Operation*> queue;  // sends that cannot begin yet, in order
    uint64_t bytes_sent = 0;
  };
  Peer& peer(Rank rank) { return peers_[static_cast<size_t>(rank)]; }
  bool transmit(Operation& operation, Channel& channel);  // false: not now
  bool offer(Operation& operation, Channel& channel);
  static void on_sent(void* request, ucs_status_t status, void* envelope);

  Connections& connections_;
  Envelopes& envelopes_;
  Offers& offers_;
  Courier& courier_;
  std::vector<Peer> peers_;
  size_t queued_ = 0;
  Traffic traffic_;
};

}  // namespace tutti::process
