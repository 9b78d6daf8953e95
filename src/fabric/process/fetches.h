// Receives that have met the notice of a large message: it is fetched out of its sender's memory on
// this machine (rendezvous.h), piece by piece by UCX where the system forbids that, and by the
// courier from other hosts.
#pragma once

#include <functional>
#include <vector>

#include "fabric/process/connections.h"
#include "fabric/process/courier.h"
#include "fabric/process/envelope.h"
#include "fabric/process/operation.h"
#include "fabric/process/rendezvous.h"

namespace tutti::process {

class Fetches {
 public:
  // A receive whose message its sender called back goes on as if it had never been sent.
  using MatchAgain = std::function<void(Operation&)>;
  Fetches(Rendezvous& rendezvous, Connections& connections, Envelopes& envelopes, Courier& courier,
          MatchAgain match_again);

  // A receive has met a notice, or a piece for it has come: settle() goes on with it.
  void add(Operation& operation) { noted_.push_back(&operation); }
  void settle();
  bool busy() const { return !noted_.empty(); }
  void cancel(Operation& operation);  // one that is pulled

 private:
  using Phase = Operation::Phase;
  void begin(Operation& operation);
  void pull(Operation& operation, size_t bytes);
  void pull_next(Operation& operation);

  Rendezvous& rendezvous_;
  Connections& connections_;
  Envelopes& envelopes_;
  Courier& courier_;
  MatchAgain match_again_;
  std::vector<Operation*> noted_;
};

}  // namespace tutti::process
