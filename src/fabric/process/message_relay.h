// What nodes hear of each other: the launcher passes their addresses and windows on, and tells all
// of them of every loss in the same order.
#pragma once

#include <cstdint>
#include <memory>

#include "fabric/process/board.h"
#include "fabric/process/child.h"

namespace tutti::process {

class MessageRelay {
 public:
  MessageRelay(Board& board, Children& children) : board_(board), children_(children) {}

  void tell(Rank rank, const ControlMessage& message,
            std::shared_ptr<FileDescriptor> attached = nullptr);
  void tell_lost(Rank rank);  // does nothing if the others know
  // A node has said hello: it is told who is there, and the others that it is.
  void greet(Rank rank);
  // Messages of `from`; both throw DataError where they make no sense.
  void forward_address(Rank from, const ControlMessage& message);
  void forward_window(Rank from, const ControlMessage& message);
  void flush(Rank rank);  // goes on with what its connection did not take

 private:
  void tell_others(Rank about, const ControlMessage& message,
                   const std::shared_ptr<FileDescriptor>& attached = nullptr);

  Board& board_;
  Children& children_;
  uint32_t losses_ = 0;
};

// What a node may say when: throws DataError where `message` is none of it. Nothing but a hello
// comes from one that the others do not know, be it that it is new or that it has given up.
void check_message(const Child& from, Rank rank, const ControlMessage& message);

}  // namespace tutti::process
