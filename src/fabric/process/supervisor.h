// The launcher's side of a run: starts the nodes and watches them until each has an outcome. Who
// joins from elsewhere is the guests' business, what nodes hear of each other the relay's.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/process/board.h"
#include "fabric/process/child.h"
#include "fabric/process/guests.h"
#include "fabric/process/message_relay.h"
#include "fabric/process/neighbourhood.h"
#include "fabric/process/process_fabric.h"
#include "fabric/process/silence.h"

namespace tutti::process {

class Supervisor {
 public:
  Supervisor(const std::vector<std::string>& roles, const ProcessOptions& options,
             const Fabric::Body& body, const std::atomic<bool>& stop);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  std::vector<NodeOutcome> run();
  double startup_s() const { return startup_s_; }

 private:
  bool gather();  // waits for the guests; false: not all came
  std::vector<NodeOutcome> nobody_came();
  void start(Rank rank);
  void supervise();  // one round: waits for something to happen, at most a little while
  void listen(Rank rank);
  void handle(Rank rank, const ControlMessage& message);  // throws DataError
  void settle(Rank rank, NodeOutcome outcome);

  void start_when_ready();
  void give_start(Rank rank);
  void check_startup();
  void check_silence();
  void check_stop();
  bool all_ended() const;
  void dismiss();

  void cut_off(Rank rank, const std::string& why);  // one that does not do as it should
  void part(Rank rank, const std::string& why);     // a guest, whose connection is over
  void bury(Rank rank);
  void end_or_restart(Rank rank, const std::string& how);

  const std::vector<std::string>& roles_;
  ProcessOptions options_;
  const Fabric::Body& body_;
  const std::atomic<bool>& stop_;
  Board board_;
  Children children_;
  Neighbourhood neighbourhood_;
  MessageRelay relay_;
  Guests guests_;
  SilenceCheck silence_;
  bool started_ = false;
  bool stopping_ = false;
  int64_t kill_at_ns_ = 0;
  double startup_s_ = 0;
};

}  // namespace tutti::process
