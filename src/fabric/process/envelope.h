// An envelope: what UCX holds of an operation. It outlives one that is cancelled, and is used again
// when UCX has called back.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <deque>
#include <vector>

#include "fabric/process/loan.h"

namespace tutti::process {

class Channel;
struct Operation;

struct Envelope {
  Channel* channel = nullptr;      // null: not in use
  Operation* operation = nullptr;  // null: it was cancelled
  void* request = nullptr;
  Loan loan;
  // A receive that was cancelled when half of its message had come: the message is kept for the
  // next receive that matches it.
  bool stray = false;
  bool whole = false;  // by now all of it has come, with this status
  ucs_status_t status = UCS_OK;
  ucp_tag_recv_info_t message{};
  uint64_t tag = 0;
};

class Envelopes {
 public:
  Envelope& take(Channel& channel, Operation& operation) {
    if (free_.empty()) free_.push_back(&all_.emplace_back());
    Envelope& envelope = *free_.back();
    free_.pop_back();
    envelope.channel = &channel;
    envelope.operation = &operation;
    envelope.request = nullptr;
    envelope.stray = envelope.whole = false;
    return envelope;
  }

  void give_back(Envelope& envelope) {
    envelope.loan.end();
    envelope.channel = nullptr;
    envelope.operation = nullptr;
    free_.push_back(&envelope);
  }

  template <class Function>
  void for_each_of(const Operation& operation, Function function) {
    for (Envelope& envelope : all_)
      if (envelope.channel && envelope.operation == &operation) function(envelope);
  }

 private:
  std::deque<Envelope> all_;  // addresses stay: UCX keeps them
  std::vector<Envelope*> free_;
};

}  // namespace tutti::process
