// Large messages between hosts. UCX carries a notice of one, in order with all other messages; the
// receiver whose receive matches it asks for the bytes, and they come piece by piece.
//
//   sender                                receiver
//   notice | tag          ------------->  a receive matches it
//                         <-------------  kRequest: room in the buffer
//   kSize: bytes, or none ------------->
//   kPiece, kPiece, ...   ------------->  as fast as they go
//
// A request has to wait behind what its sender is sending at the time, which on a slow link is
// long. So messages of middle size are not asked for: they are copied and sent at once, as long as
// the receiver has not too many of them that no receive has met.
//
// A piece of no bytes ends a message that its sender called back, and answers "enough", which a
// receiver says that was cancelled.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "fabric/process/channel.h"
#include "fabric/process/deliveries.h"
#include "fabric/process/handshake.h"
#include "fabric/process/hauls.h"
#include "fabric/process/operation.h"
#include "fabric/process/pushed_messages.h"
#include "fabric/process/words.h"

namespace tutti::process {

class Courier {
 public:
  using MatchAgain = Hauls::MatchAgain;
  explicit Courier(MatchAgain match_again);
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  void open(Channel& channel);  // before its first message: begins to listen
  void connect(Channel& channel, const std::string& address, bool first) {
    handshake_.connect(channel, address, first);
  }

  // A send that should be pushed when what was pushed before has gone: let it wait until then.
  bool must_wait(size_t bytes, const Channel& channel) const {
    return pushed_.must_wait(bytes, channel);
  }
  // A send of middle size; false: it is not, or cannot be taken now.
  bool push(Operation& operation, Channel& channel) { return pushed_.push(operation, channel); }
  void acknowledge(Channel& channel, size_t bytes);  // a receive met what was pushed
  // Any other large send; its notice is on its way.
  void offer(Operation& operation, Channel& channel) { deliveries_.offer(operation, channel); }
  // A send, whose buffer is free at once: true when nobody will get it; otherwise it ends as done.
  bool withdraw(Operation& operation) {
    return !pushed_.withdraw(operation) && deliveries_.withdraw(operation);
  }

  // A receive that met a notice; and one that is cancelled, whose buffer is free at once.
  void pull(Operation& operation, Channel& channel) { hauls_.pull(operation, channel); }
  void detach(Operation& operation) { hauls_.detach(operation); }

  void forget(Channel& channel);  // its peer is lost: nothing of it is to be touched again
  void progress();                // goes on with what UCX's callbacks have noted
  void settle() { hauls_.progress(); }  // only with what has arrived
  bool busy() const {
    return !requests_.empty() || hauls_.busy() || deliveries_.busy() || handshake_.busy();
  }

 private:
  struct Ear {  // one per channel: hears its requests
    Courier* courier;
    Channel* channel;
    uint64_t word;
  };
  struct Request {
    Ear* ear;
    uint64_t notice, word;
  };
  void listen(Ear& ear);
  void serve(const Request& request);
  static void on_request(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                         void* ear);

  Words words_;
  Handshake handshake_;
  PushedMessages pushed_;
  Deliveries deliveries_;
  Hauls hauls_;
  std::deque<Ear> ears_;  // addresses stay: UCX keeps them
  std::vector<Request> requests_;
};

}  // namespace tutti::process
