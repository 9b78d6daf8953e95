// A server: holds a shard of the parameters, applies gradients to it, answers pulls.
//
// One loop over one receive from anybody and over the gradients that are on their way; nothing in
// it waits for a single worker. What differs between the consistency models is in consistency.h.
// A worker that sends nonsense is expelled, and one that is lost is gone; training goes on without.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "strategies/parameter_server/coordinator.h"
#include "strategies/parameter_server/shard.h"

namespace tutti::parameter_server {

class Server {
 public:
  Server(Context& context, const Config& config);
  void run();

 private:
  struct Push {
    Request request;
    size_t slot = 0;
    size_t pieces_left = 0;
  };
  struct Worker {
    bool present = true;
    bool finished = false;  // pushes nothing more
    bool done = false;      // has the final parameters, or knows that there are none
    bool waited = false;    // its pull was refused for now
    uint64_t sequence = 0;
    int64_t base = 0;   // the slowest worker's clock when it joined
    int64_t clock = 0;  // its pushes that were applied or dropped
    std::deque<Request> queue;
    std::optional<Push> push;  // on its way
    std::optional<Request> pull;
    Reply reply;
    Buffer<float> staging;  // parameters that travel while others change them
    std::vector<Handle> sending;
    std::vector<uint64_t> keys;  // sparse: of the pull
  };
  struct Gathered {
    Request push;
    int worker = 0;
    size_t slot = 0;
  };
  struct Piece {
    int worker = -1;
    size_t bytes = 0;
  };
  struct Announcement {
    Request request;
    std::vector<Decided> decided;
    std::vector<Handle> sending;
  };

  // The loop.
  bool over() const;
  void wait_for_news();
  void look_at_members();
  void receive_request();
  void arrived(size_t index, const Completion& completion);
  void piece_arrived(const Piece& piece, const Completion& completion);

  // Requests.
  void handle(Rank from, const Request& request, size_t bytes);
  void process_queue(int index);
  void process(int index, const Request& request);
  void begin_push(int index, const Request& request);
  void finish_push(int index);
  void obey(const Request& request);  // the coordinator

  // Of a sparse model.
  void receive_rows(int index, const Request& request);
  bool rows_arrived(int index);  // true: a push that makes sense
  void answer_rows(int index, const Request& pull, Reply reply);

  // Updates.
  void apply_at_once(int index, const Request& push, size_t slot);
  void try_to_close();
  void repeat_orphans();
  void ask_to_repeat(const Hand& hand);
  bool everybody_waits() const;
  bool forget_lost(std::vector<Decided>& decided);
  void close(std::vector<Gathered> chosen);
  void drop(const Gathered& gathered);
  void updated();
  void announce(Announcement announcement);

  // Replies.
  void answer_all();
  void answer(int index);
  bool fill_reply(int index, const Request& pull, Reply& reply);
  void send_reply(int index, const Reply& reply, std::span<const float> parameters);

  // Members.
  void expel(int index, const std::string& why);
  void remove(int index);
  void abandon_push(Worker& worker, int index);
  std::vector<int> present(bool active) const;
  int64_t oldest() const;
  int64_t fastest() const;
  bool coordinates() const { return coordinator_ != nullptr; }
  Worker& worker(int index) { return workers_[static_cast<size_t>(index)]; }

  Context& context_;
  Node& node_;
  const Config& config_;
  Rank first_server_;
  std::unique_ptr<Consistency> consistency_;
  Timetable timetable_;
  Shard shard_;
  std::unique_ptr<Coordinator> coordinator_;  // the first server's
  std::vector<Range> pieces_;
  std::vector<Worker> workers_;
  std::vector<Gathered> gathered_;  // towards the update that is open
  std::map<int64_t, std::vector<Decided>> decisions_;
  std::deque<Announcement> announcements_;
  int64_t version_ = 0;  // updates
  int64_t samples_ = 0;
  int64_t kept_ = 0;     // the evaluation whose snapshot this is
  int64_t to_keep_ = 0;  // and the next one, taken when `keep_at_` is reached
  int64_t keep_at_ = 0;
  bool diverged_ = false;
  bool changed_ = false;  // since everybody who waits was looked at, and what was found then:
  int64_t oldest_ = 0;
  bool nobody_active_ = false;
  double heard_s_ = 0;
  Request incoming_;
  std::vector<Handle> handles_;  // the receive from anybody, then pieces of gradients
  std::vector<Piece> piece_of_;  // of the same index
};

}  // namespace tutti::parameter_server
