// The launcher's nodes: those that it forked, and those that join from elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/process/control_socket.h"
#include "fabric/process/node_process.h"

namespace tutti::process {

struct Child {
  NodeProcess process;           // of a forked one
  bool joins = false;            // from elsewhere; it lives as long as its connection
  std::string origin;            // where it is
  int unanswered = 0;            // pings since it last said something
  int64_t heard_ns = 0;          // when it last said something, or was seen to run; 0: not yet
  uint64_t steps = 0;            // steps that a guest had begun by then
  int64_t awaited_until_ns = 0;  // its place is free until then; 0: taken, or not to be taken
  std::string cut_off_for;       // why the launcher killed it
  std::unique_ptr<ControlSocket> control;
  uint32_t incarnation = 0;
  bool greeted = false;  // its hello came: peers know it
  bool ready = false;
  bool ended = false;  // its outcome is settled
  bool lost = false;   // peers were told so, and not that it is back
  uint32_t lost_incarnation = 0;
  uint32_t lost_as = 0;  // which loss of the run it was, counted from 1
  NodeOutcome outcome;
  int restarts_left = 0;
  // Addresses for it, from peers who were faster to say hello: one of each at most, since in
  // `announced_to` is noted which incarnation of whom it has let know its own.
  std::vector<ControlMessage> early;
  std::map<Rank, uint32_t> announced_to;

  bool connected() const { return control && control->fd() >= 0; }
  bool running() const { return process.running() || (joins && connected()); }
  // Nodes elsewhere go by themselves when their connection ends.
  void kill() {
    process.kill();
    if (joins && control) control->close();
  }
  // A new incarnation begins, and nothing is known of it yet.
  void begin() {
    greeted = ready = false;
    heard_ns = 0;
    cut_off_for.clear();
  }
};

class Children {
 public:
  explicit Children(size_t nodes) : all_(nodes) {}
  Child& operator[](Rank rank) { return all_[static_cast<size_t>(rank)]; }
  const Child& operator[](Rank rank) const { return all_[static_cast<size_t>(rank)]; }
  int size() const { return static_cast<int>(all_.size()); }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<Child> all_;
};

}  // namespace tutti::process
