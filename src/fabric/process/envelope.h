// An envelope: what UCX holds of an operation. It outlives one that is cancelled, and is used again
// when UCX has called back.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "fabric/process/channel.h"
#include "fabric/process/loan.h"
#include "fabric/process/operation.h"

namespace tutti::process {

class Envelopes;

struct Envelope {
  Envelopes* pool = nullptr;
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

// The receiver of what UCX has received.
class Arrivals {
 public:
  virtual ~Arrivals() = default;
  virtual void arrive(Envelope& envelope) = 0;
};

class Envelopes {
 public:
  explicit Envelopes(Arrivals& arrivals) : arrivals_(arrivals) {}
  Envelopes(const Envelopes&) = delete;
  Envelopes& operator=(const Envelopes&) = delete;

  Envelope& take(Channel& channel, Operation& operation) {
    if (free_.empty()) {
      free_.push_back(&all_.emplace_back());
      free_.back()->pool = this;
    }
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

  // One for all of the operation.
  Envelope& seal(Operation& operation, Channel& channel) {
    Envelope& envelope = take(channel, operation);
    operation.envelope = &envelope;
    return envelope;
  }
  // UCX is through with it; returns whose it was, if still wanted.
  Operation* unseal(Envelope& envelope) {
    Operation* operation = envelope.operation;
    if (operation) operation->envelope = nullptr;
    give_back(envelope);
    return operation;
  }

  // Posts a receive of up to `bytes` into `data`, or takes a message that has arrived into the
  // operation's buffer. Both end by an arrival, which may have come when they return.
  void receive(Operation& operation, Channel& channel, std::byte* data, size_t bytes, uint64_t tag,
               uint64_t mask);
  Envelope& receive(Operation& operation, Channel& channel, ucp_tag_message_h message);

  template <class Function>
  void for_each_of(const Operation& operation, Function function) {
    for (Envelope& envelope : all_)
      if (envelope.channel && envelope.operation == &operation) function(envelope);
  }

 private:
  static void note_request(Envelope& envelope, const Operation& operation, void* request);
  static void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                          void* envelope);

  Arrivals& arrivals_;
  std::deque<Envelope> all_;  // addresses stay: UCX keeps them
  std::vector<Envelope*> free_;
};

// UCX gives back a receive that no message has met yet.
inline void take_back(const Operation& operation) {
  const Envelope* envelope = operation.envelope;
  if (envelope && envelope->request)
    ucp_request_cancel(envelope->channel->worker(), envelope->request);
}

}  // namespace tutti::process
