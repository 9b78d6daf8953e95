// Large messages from other hosts: asked for when a receive has met their notice, and received
// piece by piece. courier.h has the protocol.
//
// Pieces go to memory of our own first: the buffer of a receive is then free at any moment,
// whatever is under way to it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fabric/process/channel.h"
#include "fabric/process/operation.h"
#include "fabric/process/words.h"

namespace tutti::process {

class Hauls {
 public:
  // Called for a receive whose message was called back.
  using MatchAgain = std::function<void(Operation&)>;
  Hauls(Words& words, MatchAgain match_again);
  ~Hauls();

  void pull(Operation& operation, Channel& channel);  // a receive that met a notice
  void detach(Operation& operation);                  // its buffer is free at once
  void forget(Channel& channel);

  void progress();  // takes what has arrived
  bool busy() const { return !arrived_.empty(); }

 private:
  struct Haul;

  void expect(Haul& haul);
  bool take(Haul& haul);  // true: it is over
  static void on_arrival(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                         void* haul);

  Words& words_;
  MatchAgain match_again_;
  std::vector<std::unique_ptr<Haul>> hauls_;
  std::vector<Haul*> arrived_;
};

}  // namespace tutti::process
