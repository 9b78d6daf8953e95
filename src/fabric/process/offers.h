// Large messages to processes of this machine, from their sender's side: offered on the board
// (rendezvous.h) until their receivers have fetched them, and sent by UCX where the system forbids
// receivers to.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "fabric/process/channel.h"
#include "fabric/process/envelope.h"
#include "fabric/process/operation.h"
#include "fabric/process/rendezvous.h"

namespace tutti::process {

class Offers {
 public:
  Offers(Rendezvous& rendezvous, Envelopes& envelopes)
      : rendezvous_(rendezvous), envelopes_(envelopes) {}

  void listen(Channel& channel);  // for receivers that ask for their messages
  // Names the offer by operation.notice; false: no offer is free now.
  bool open(Operation& operation);
  void cancel(Operation& operation);  // it has ended if its receiver has it
  void close(Operation& operation);   // its receiver is lost
  void forget(const Channel& channel);

  void check();  // ends those that were taken
  void progress() {
    if (!offered_.empty() && rendezvous_.any_taken()) check();
    if (!pulls_.empty()) serve();
  }
  bool busy() const { return !pulls_.empty(); }
  // For a last look before sleeping: some offer was taken that check() has not seen.
  bool taken() const { return !offered_.empty() && rendezvous_.news(); }

 private:
  using Phase = Operation::Phase;
  struct Listener {  // what UCX calls back with
    Offers* offers;
    Channel* channel;
  };
  struct Pull {
    Listener* listener;
    uint64_t notice;
  };
  void expect(Listener& listener);
  void serve();
  void free(const Operation& operation);
  static void on_pull(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                      void* listener);
  static void on_piece_sent(void* request, ucs_status_t status, void* envelope);

  Rendezvous& rendezvous_;
  Envelopes& envelopes_;
  std::vector<Operation*> offered_;
  std::deque<Listener> listeners_;  // addresses stay: UCX keeps them
  std::vector<Pull> pulls_;
};

}  // namespace tutti::process
