// Receives, and how messages find them. UCX matches those that name their peer. Receives from
// anybody, and those behind one, cannot be posted to one UCX worker: they look at what has arrived.
#pragma once

#include <deque>
#include <vector>

#include "fabric/process/connections.h"
#include "fabric/process/courier.h"
#include "fabric/process/envelope.h"
#include "fabric/process/fetches.h"
#include "fabric/process/operation.h"

namespace tutti::process {

class Receives : public Arrivals {
 public:
  Receives(Connections& connections, Envelopes& envelopes, OperationTable& operations,
           Courier& courier, Fetches& fetches)
      : connections_(connections),
        envelopes_(envelopes),
        operations_(operations),
        courier_(courier),
        fetches_(fetches) {}

  // Whether a receive has to look by itself; if not, it is posted to its peer's channel.
  bool defers(const Operation& operation) const;
  void defer(Operation& operation);
  void post(Operation& operation, Channel& channel);
  void take_from_lost(Operation& operation);  // what has arrived before, or nothing
  void match_again(Operation& operation);     // its message was called back

  // What has arrived at the channel may be what deferred receives wait for.
  void match(Channel& channel);
  void progress();
  bool busy() const { return rematch_; }
  void arrive(Envelope& envelope) override;

  void cancel(Operation& operation);
  void end_by_loss(Operation& operation);
  // Half messages of a lost peer that will never be whole, or all that are kept of it.
  void forget_strays(const Channel& channel, bool whole);

 private:
  using Phase = Operation::Phase;
  bool take_arrived(Operation& operation, Channel& channel);
  void finish(Envelope& envelope);
  void wait_for_anybody(Operation& operation);
  void keep_stray(Operation& operation);
  bool adopt_stray(Operation& operation, const Channel& channel);

  Connections& connections_;
  Envelopes& envelopes_;
  OperationTable& operations_;
  Courier& courier_;
  Fetches& fetches_;
  std::deque<Operation*> deferred_;  // in the order they were posted
  std::vector<Envelope*> strays_;    // of each channel in the order they came
  bool rematch_ = false;             // a deferred receive may find what has arrived long ago
  size_t next_source_ = 0;  // receives from anybody look at the peers in turn, from here on
};

}  // namespace tutti::process
