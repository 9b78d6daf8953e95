// How two nodes of different hosts connect: one side first, which says so to the other. If both did
// it at once, UCX would open two TCP connections and throw one away.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "fabric/process/channel.h"
#include "fabric/process/words.h"

namespace tutti::process {

class Handshake {
 public:
  explicit Handshake(Words& words) : words_(words) {}

  void expect(Channel& channel);  // listens for the greeting of the other side
  // Connects and greets; or, unless `first`, waits for the other side to do so.
  void connect(Channel& channel, const std::string& address, bool first);
  void progress();  // answers the greetings that have come
  bool busy() const { return greeted_ != 0; }
  void forget(const Channel& channel);

 private:
  struct Address {
    Channel* channel;
    std::string address;
  };
  struct Listener {  // what UCX calls back with
    Handshake* handshake;
    Channel* channel;
  };
  void greet(Channel& channel);
  static void on_greeting(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                          void* listener);

  Words& words_;
  std::deque<Listener> listeners_;  // addresses stay: UCX keeps them
  std::vector<Address> waiting_;    // to connect, for the greeting of the other side
  size_t greeted_ = 0;              // how many greetings came since we looked
};

}  // namespace tutti::process
