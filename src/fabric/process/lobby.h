// The lobby: where strangers who dial the launcher wait until they have shown the token of the run.
//
// Nothing that a stranger sends can do more than end its own connection: it may say one small frame
// within a few seconds, and no memory is taken for more.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/process/tcp.h"

namespace tutti::process {

class Lobby {
 public:
  explicit Lobby(const HostPort& where);

  // Where to dial, and the token to show, made anew for each run.
  std::string address() const;
  const std::string& token() const { return token_; }

  // Adds what it waits for.
  void watch(std::vector<pollfd>& polled) const;
  struct Guest {
    FileDescriptor connection;
    std::string origin;     // its address
    std::string interface;  // by which it came
  };
  // Never blocks. Those who have shown the token since the last call.
  std::vector<Guest> serve();
  void close();  // in a forked child

 private:
  struct Stranger {
    FileDescriptor connection;
    std::string heard;
    int64_t deadline_ns = 0;
  };
  enum class Verdict { kWaits, kMayEnter, kLeaves };
  void accept_all();
  Verdict hear(Stranger& stranger) const;
  Verdict judge(const Stranger& stranger) const;

  FileDescriptor socket_;
  std::string token_;
  std::vector<Stranger> strangers_;
};

// Tells the other side why, and leaves it to them to hang up; the connection is closed.
void refuse(const FileDescriptor& connection, const std::string& reason);

}  // namespace tutti::process
