// Transport: moves the messages of one node. Connections, sends and receives are types of their
// own; here they are brought together, and a loss or a cancellation goes to all that it concerns.
// Knows nothing of the launcher, of deadlines or of sleeping, which are the reactor's.
//
// Everything here happens inside a call of the node: there are no threads, and UCX calls back only
// from within progress().
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fabric/node.h"
#include "fabric/process/board.h"
#include "fabric/process/connections.h"
#include "fabric/process/courier.h"
#include "fabric/process/envelope.h"
#include "fabric/process/fetches.h"
#include "fabric/process/neighbourhood.h"
#include "fabric/process/offers.h"
#include "fabric/process/operation.h"
#include "fabric/process/receives.h"
#include "fabric/process/rendezvous.h"
#include "fabric/process/sends.h"

namespace tutti::process {

class Transport {
 public:
  Transport(Board& board, Rank rank, const Neighbourhood& neighbourhood,
            Connections::Announce announce, Connections::Watch watch);
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // Membership, as the launcher tells it.
  void dial(Rank rank);  // begins to connect; does nothing if that has begun
  void on_address(Rank rank, uint32_t incarnation, const std::string& address);
  void lose(Rank rank);
  void join(Rank rank, uint32_t incarnation);
  const Connections& connections() const { return connections_; }

  Operation& send(Rank to, Tag tag, std::span<const std::byte> data);
  Operation& receive(Rank from, Tag tag, std::span<std::byte> buffer);
  // Ends the operation, whatever its peer does: afterwards its buffer is free.
  void cancel(Operation& operation);
  void cancel_all();  // the body is over: its buffers are gone

  OperationTable& operations() { return operations_; }
  const Sends& sends() const { return sends_; }
  // On one host what UCX carries through its ring stays in the cache and needs no system call: a
  // stream of small pieces takes three quarters of the time of one copy out of the sender's memory.
  size_t piece_bytes(Rank rank) const {
    return connections_.near(rank) ? kEagerBytes : kBulkBytes;
  }
  // Half of a second-level cache, as they are today.
  size_t block_bytes(Rank rank) const { return connections_.near(rank) ? kBlockBytes : 0; }

  void progress();
  bool arm();  // false: there is something to do already
  bool offers_taken() const { return offers_.taken(); }

 private:
  void connect(Rank rank, const std::string& address);
  Operation& begin(bool sending, Rank peer, Tag tag, const std::byte* data, size_t bytes);

  Rank rank_;
  OperationTable operations_;
  uint64_t serial_ = 0;
  Rendezvous rendezvous_;
  Receives receives_;
  Envelopes envelopes_;
  Courier courier_;
  Offers offers_;
  Fetches fetches_;
  Sends sends_;
  Connections connections_;  // the first to go: UCX may call back for the others until then
};

}  // namespace tutti::process
