// Nodes that are not forked but join from elsewhere: letting them in, and noticing that they are
// gone. Their connection is their life, as the process is a forked node's.
#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "fabric/process/child.h"
#include "fabric/process/lobby.h"
#include "fabric/process/message_relay.h"
#include "fabric/process/neighbourhood.h"
#include "fabric/process/process_fabric.h"

namespace tutti::process {

class Guests {
 public:
  // Marks the ranks that are to be theirs. `neighbourhood` says who joined, and by which interface.
  Guests(const ProcessOptions& options, const std::vector<std::string>& roles, Children& children,
         Neighbourhood& neighbourhood, MessageRelay& relay);

  bool expected() const { return options_.remote > 0; }
  // Opens the lobby: their places are free until then.
  void invite(int64_t until_ns);
  bool all_came() const;
  // Gives them their ranks. Only when all have come: who left while waiting for the others has
  // bothered nobody.
  void seat();
  bool seated() const { return seated_; }  // true as well when none are expected
  std::string why_too_few() const;
  void turn_away(const std::string& why);  // those who came

  void watch(std::vector<pollfd>& polled) const;  // adds what it waits for
  void serve();                                   // never blocks: admits and pings
  void await(Rank rank, int64_t until_ns);        // somebody may take its place
  // The ranks that were lost in the run and whose places nobody took in time; all that are free
  // when the run `stops`. They are given up.
  std::vector<Rank> missed(bool stops);
  void close();  // in a forked child

 private:
  void admit(Lobby::Guest guest);
  void accept(Rank rank);
  void ping();

  const ProcessOptions& options_;
  const std::vector<std::string>& roles_;
  Children& children_;
  Neighbourhood& neighbourhood_;
  MessageRelay& relay_;
  std::optional<Lobby> lobby_;
  int64_t next_ping_ns_ = 0;
  bool seated_;
};

}  // namespace tutti::process
