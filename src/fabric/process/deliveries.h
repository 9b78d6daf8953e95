// Large messages to other hosts, which their receivers ask for: offered, then sent piece by piece.
// courier.h has the protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/process/channel.h"
#include "fabric/process/operation.h"
#include "fabric/process/words.h"

namespace tutti::process {

class Deliveries {
 public:
  explicit Deliveries(Words& words);
  ~Deliveries();

  void offer(Operation& operation, Channel& channel);  // names it by operation.notice
  // A receiver asks for the message of this notice, or has had enough of it.
  void serve(Channel& channel, uint64_t notice, uint64_t word);
  // Its buffer is free at once: true when nobody will get it; otherwise it ends as done.
  bool withdraw(Operation& operation);
  void forget(Channel& channel);

  void progress();  // goes on where pieces have gone
  bool busy() const { return finished_ != 0; }

 private:
  struct Delivery;
  struct Piece;  // of a delivery, in UCX's hands

  void send_pieces(Delivery& delivery);
  void send_piece(Delivery& delivery, size_t bytes);
  void drop(const Delivery& delivery);
  static void on_piece_sent(void* request, ucs_status_t status, void* piece);

  Words& words_;
  std::vector<std::unique_ptr<Delivery>> deliveries_;
  size_t finished_ = 0;  // whose last piece has gone
  uint64_t serial_ = 0;
};

}  // namespace tutti::process
