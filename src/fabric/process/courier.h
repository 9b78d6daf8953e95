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
// receiver says that was cancelled. Pieces go to memory of our own first: the buffer of a receive
// is then free at any moment, whatever is under way to it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/process/channel.h"
#include "fabric/process/operation.h"

namespace tutti::process {

class Courier {
 public:
  // How an operation ends, and what becomes of a receive whose message was called back.
  using End = std::function<void(Operation&, State, size_t)>;
  using MatchAgain = std::function<void(Operation&)>;
  Courier(End end, MatchAgain match_again);
  ~Courier();

  void open(Channel& channel);  // before its first message: begins to listen
  // Connects and says so to the other side; or, unless `first`, waits for the other side to do so.
  // If both sides did it at once, UCX would open two TCP connections and throw one away.
  void connect(Channel& channel, const std::string& address, bool first);

  // A send that should be pushed when what was pushed before has gone: let it wait until then.
  bool must_wait(size_t bytes, const Channel& channel) const;
  // A send of middle size; false: it is not, or cannot be taken now.
  bool push(Operation& operation, Channel& channel);
  void acknowledge(Channel& channel, size_t bytes);    // a receive met what was pushed
  void offer(Operation& operation, Channel& channel);  // a send; the notice is on its way
  void pull(Operation& operation, Channel& channel);   // a receive that met a notice
  // A send, whose buffer is free at once: true when nobody will get it; otherwise it ends as done.
  bool withdraw(Operation& operation);
  void detach(Operation& operation);  // a receive: its buffer is free at once
  void forget(Channel& channel);      // its peer is lost: neither is to be touched again

  void progress();  // goes on with what UCX's callbacks have noted
  void settle();    // only with what has arrived
  bool busy() const {
    return !requests_.empty() || !arrived_.empty() || finished_ != 0 || greeted_ != 0;
  }

 private:
  struct Delivery;  // of a message that we send
  struct Piece;     // of a delivery, in UCX's hands
  struct Haul;      // of one that we receive
  struct Parcel;    // a message that was pushed
  struct Ear;       // one per channel: hears its requests
  struct Request {
    Channel* channel;
    uint64_t notice, word;
  };
  struct Address {
    Channel* channel;
    std::string address;
  };
  struct Word {
    Channel* channel;
    uint64_t tag, value;
  };

  static bool may_push(size_t bytes, const Channel& channel);
  Delivery* find(const Channel& channel, uint64_t notice);
  Delivery* find(const Operation& operation);
  void greet(Channel& channel);
  void answer_greetings();
  void serve(const Request& request);
  void send_pieces(Delivery& delivery);
  void send_piece(Delivery& delivery, size_t bytes);
  void drop(const Delivery& delivery);
  void go_on();
  void say(Channel& channel, uint64_t tag, uint64_t value);
  void listen(Ear& ear);
  void expect(Haul& haul);
  bool take(Haul& haul);  // true: it is over

  static void on_pushed(void* request, ucs_status_t status, void* bytes);
  static void on_word_sent(void* request, ucs_status_t status, void* word);
  static void on_piece_sent(void* request, ucs_status_t status, void* piece);
  static void on_request(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                         void* ear);
  static void on_greeting(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                          void* channel);
  static void on_arrival(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                         void* haul);

  End end_;
  MatchAgain match_again_;
  std::vector<std::unique_ptr<Delivery>> deliveries_;
  std::vector<std::unique_ptr<Haul>> hauls_;
  std::vector<Parcel*> parcels_;  // UCX's callback deletes them
  std::deque<Ear> ears_;          // addresses stay: UCX keeps them
  std::vector<Request> requests_;
  std::vector<Haul*> arrived_;
  std::vector<Word> unsent_;      // for channels that are not connected yet
  std::vector<Address> waiting_;  // to connect, for the greeting of the other side
  size_t greeted_ = 0;            // how many greetings came since we looked
  size_t finished_ = 0;           // deliveries whose last piece has gone
  uint64_t serial_ = 0;
};

}  // namespace tutti::process
