// Transport: moves the messages of one node. Knows channels and operations; knows nothing of the
// launcher, of deadlines or of sleeping, which are the reactor's.
//
// Everything here happens inside a call of the node: there are no threads, and UCX calls back only
// from within progress().
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/node.h"
#include "fabric/process/board.h"
#include "fabric/process/channel.h"
#include "fabric/process/courier.h"
#include "fabric/process/envelope.h"
#include "fabric/process/neighbourhood.h"
#include "fabric/process/operation.h"
#include "fabric/process/rendezvous.h"

namespace tutti::process {

class Transport {
 public:
  // `announce(rank, address)` lets `rank` know how to connect to us.
  using Announce = std::function<void(Rank, const std::string&)>;
  // `watch(fd, on)` adds the event fd of a channel to what the node sleeps on, or removes it.
  using Watch = std::function<void(int, bool)>;
  Transport(Board& board, Rank rank, const Neighbourhood& neighbourhood, Announce announce,
            Watch watch);

  // Membership, as the launcher tells it.
  void dial(Rank rank);  // begins to connect; does nothing if that has begun
  void on_address(Rank rank, uint32_t incarnation, const std::string& address);
  void lose(Rank rank);
  void join(Rank rank, uint32_t incarnation);
  bool connected(Rank rank) const;
  std::string why_unconnected(Rank rank) const;  // the error of UCX, or empty

  Operation& send(Rank to, Tag tag, std::span<const std::byte> data);
  Operation& receive(Rank from, Tag tag, std::span<std::byte> buffer);
  // Ends the operation, whatever its peer does: afterwards its buffer is free.
  void cancel(Operation& operation);
  void cancel_all();  // the body is over: its buffers are gone

  OperationTable& operations() { return operations_; }
  Traffic traffic() const { return traffic_; }
  std::vector<uint64_t> bytes_by_peer() const;
  // On one host what UCX carries through its ring stays in the cache and needs no system call: a
  // stream of small pieces takes three quarters of the time of one copy out of the sender's memory.
  size_t piece_bytes(Rank rank) const { return near(rank) ? kEagerBytes : kBulkBytes; }
  // Half of a second-level cache, as they are today.
  size_t block_bytes(Rank rank) const { return near(rank) ? kBlockBytes : 0; }

  void progress();
  bool arm();  // false: there is something to do already
  // For a last look before sleeping: some offer was taken that check_offers() has not seen.
  bool offers_taken() { return !offered_.empty() && rendezvous_.news(); }

 private:
  struct Peer {
    bool alive = true;
    uint32_t incarnation = 0;
    std::unique_ptr<Channel> channel;
    std::deque<Operation*> queue;  // sends that cannot begin yet, in order
    uint64_t bytes_sent = 0;
  };
  struct Pull {
    Channel* channel;
    uint64_t notice;
  };
  using Phase = Operation::Phase;

  bool near(Rank rank) const { return neighbourhood_.near(rank_, rank); }
  const UcxContext& context_for(Rank rank);
  void connect(Rank rank, const std::string& address);
  void stop_progress(Channel& channel);
  Peer& peer(Rank rank) { return peers_[static_cast<size_t>(rank)]; }
  void end(Operation& operation, State state, size_t bytes);
  Operation& begin(bool sending, Rank peer, Tag tag, const std::byte* data, size_t bytes);

  Envelope& seal(Operation& operation, Channel& channel);
  Operation* unseal(Envelope& envelope);  // UCX is through with it; whose it was, if still wanted
  void arrive(Envelope& envelope);

  bool transmit(Operation& operation);  // false: not now
  void notify(Channel& channel, uint64_t tag);
  void flush_queues();
  void check_offers();
  void free_offer(Operation& operation);
  void serve_pulls();

  void post_receive(Operation& operation, Channel& channel);
  void defer(Operation& operation);
  void match_deferred(Channel& channel);
  bool take_arrived(Operation& operation, Channel& channel);
  void receive_from_lost(Operation& operation);
  void settle_claims();
  void claim(Operation& operation);
  void pull(Operation& operation, size_t bytes);
  void pull_next(Operation& operation);
  void expect_pulls(Channel& channel);
  void end_by_loss(Operation& operation);
  void match_again(Operation& operation);

  void cancel_send(Operation& operation);
  void cancel_receive(Operation& operation);
  void take_back(Operation& operation);  // from UCX
  void keep_stray(Operation& operation);
  bool adopt_stray(Operation& operation, const Channel& channel);
  void forget_strays(const Channel& channel, bool whole);

  static void on_sent(void* request, ucs_status_t status, void* envelope);
  static void on_piece_sent(void* request, ucs_status_t status, void* envelope);
  static void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                          void* envelope);
  static void on_pull(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                      void* channel);
  static void on_discarded(void* request, ucs_status_t status, void* unused);

  Board& board_;
  Rank rank_;
  const Neighbourhood& neighbourhood_;
  Announce announce_;
  Watch watch_;
  std::unique_ptr<UcxContext> shared_memory_, network_;  // made for the first channel
  Rendezvous rendezvous_;
  Courier courier_;
  OperationTable operations_;
  Envelopes envelopes_;
  uint64_t serial_ = 0;
  std::vector<Peer> peers_;
  std::vector<Channel*> channels_;                 // those that progress
  std::vector<std::unique_ptr<Channel>> retired_;  // of earlier incarnations
  std::deque<Operation*> deferred_;                // in the order they were posted
  std::vector<Envelope*> strays_;                  // of each channel in the order they came
  std::vector<Operation*> claims_;
  std::vector<Operation*> offered_;
  std::vector<Pull> pulls_;
  size_t queued_ = 0;
  bool rematch_ = false;    // a deferred receive may find what has arrived long ago
  size_t next_source_ = 0;  // receives from anybody look at the peers in turn, from here on
  Traffic traffic_;
};

}  // namespace tutti::process
