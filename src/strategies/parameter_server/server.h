// A shard's server: holds a part of the parameters, applies gradients to it, answers pulls.
//
// It is a state machine. Inputs (entry.h) come from workers and from the membership to the head of
// the shard's chain, are executed there and then, in the same order, by its replicas; nothing that
// an input brought about leaves the head before the whole chain has the input. What differs between
// the consistency models is in consistency.h. A worker that sends nonsense is expelled, and one
// that is lost is gone; training goes on without.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "strategies/parameter_server/chain.h"
#include "strategies/parameter_server/clock_means.h"
#include "strategies/parameter_server/coordinator.h"
#include "strategies/parameter_server/shard.h"

namespace tutti::parameter_server {

class Server {
 public:
  // What the coordinator tells the servers of the other shards.
  using Publish = std::function<void(const Request&, const std::vector<Decided>&)>;
  // What the head of a chain tells everybody, or this worker.
  using Tell = std::function<void(const Notice&, Rank)>;
  // `context.recorder` counts what every replica counts alike, `local` what this node alone does.
  // With an empty order it has no part in the chain before it gets its state.
  Server(Context& context, Recorder& local, const Config& config, const Ring& ring, int shard,
         Order order, Inbox& inbox, Publish publish, Tell tell);

  bool leads() const { return chain_.leads(); }
  bool has_part() const { return chain_.has_part(); }
  bool is_joining() const { return chain_.order().members.empty(); }
  const Order& order() const { return chain_.order(); }
  Notice notice() const;
  uint64_t elements() const { return shard_.range().size(); }
  bool diverged() const { return diverged_; }
  bool over() const;     // everybody has the final parameters, as far as is known here
  bool settled() const;  // and nobody can ask for them again
  bool closed() const { return closed_; }
  std::vector<int> latecomers() const;  // workers that are there, but were never told of the end
  void close_chain();
  void finish_sending();

  // Messages. A request may come before this server knows that it is to answer: it has to wait.
  void handle(Rank from, const Request& request, size_t bytes, std::vector<Decided> decided);
  void gradient_arrived(const Arrival& arrival, const Completion& completion);
  void entry_arrived(Rank from, const Entry& entry, std::vector<Decided> decided);
  void update_arrived(const Arrival& arrival, const Completion& completion);
  void piece_sent(const Arrival& arrival, const Completion& completion);
  void refuse(int index, const std::string& why);  // a worker that sent nonsense

  // Members.
  void look_at_workers();
  void look_at_servers();
  void hear_of(const Notice& notice);
  void publish_again();  // somebody may not have got it
  // The head: takes the next step towards this chain, if it can be taken now.
  void rebalance(const std::vector<Member>& target);

 private:
  static constexpr size_t kNoSlot = SIZE_MAX;
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
    uint32_t incarnation = 0;
    uint64_t executed = 0;    // sequence number of its last request that was executed
    int64_t base = 0;         // the slowest worker's clock when it joined
    int64_t clock = 0;        // its pushes that were applied or dropped
    int64_t forgiven = 0;     // clocks that it need not catch up with
    int64_t forgiven_at = 0;  // its clock when it was told so last
    std::optional<Request> pull;
    Reply reply;  // the last one
    // Of the head alone:
    bool heard = false;     // the pull came to this server itself, not to the head before
    bool unheard = false;   // nothing has come since this server took over
    uint64_t sequence = 0;  // of its last request that arrived
    std::deque<Request> queue;
    std::optional<Push> push;           // on its way
    std::span<const float> parameters;  // of the reply
    bool by_layers = false;             // in pieces, one after the other
    size_t pieces_sent = 0;
    Buffer<float> staging;  // parameters that travel while others change them
    std::vector<Handle> sending;
    Handle secured;              // the answer to kSecure
    std::vector<uint64_t> keys;  // sparse: of the pull

    void archive(Archive& archive) {
      archive(present, finished, done, waited, incarnation, executed, base, clock, forgiven,
              forgiven_at, pull, reply);
    }
    // Its clock, as it is compared with others', minus its pushes.
    int64_t lead() const { return base + forgiven; }
  };
  struct Gathered {
    Request push;
    int worker = 0;
    size_t slot = kNoSlot;  // only the head has the gradient
  };
  struct Output {
    uint64_t index;  // the entry that brought it about
    int worker;
    uint64_t sequence;
  };
  struct Bulletin {
    uint64_t index;
    Request request;
    std::vector<Decided> decided;
    bool sent = false;
  };
  struct Deferred {
    Rank from;
    Request request;
    size_t bytes;
    std::vector<Decided> decided;
  };
  struct Input {
    Entry entry;
    std::vector<Decided> decided;
  };

  // Requests, at the head.
  bool follows(Worker& sender, uint64_t sequence) const;
  void process_queue(int index);
  void begin_push(int index, const Request& request);
  void take_outbox(int index, const Request& request);
  void secure(int index);
  void tell_secured(int index, const Request& request);
  void finish_push(int index);
  void answer_again(int index, const Request& request);
  void defer(Rank from, const Request& request, size_t bytes, std::vector<Decided> decided);
  void take_over();
  void forget_undelivered();

  // The chain, and a state that goes to a new member (server_moves.cpp).
  void look_at_chain();
  void catch_up();
  void hand_over();
  void save(Chain::Item& item);
  void restore(const Chain::Item& item);
  void archive(Archive& archive);

  // Inputs: `input` at the head, `follow` at the others, `execute` everywhere.
  void input(Entry entry, std::vector<Decided> decided = {});
  void follow();
  void execute(Chain::Item& item);
  void take(int index, const Request& request);
  void lose(int index);
  void join(int index, uint32_t incarnation);
  void end();
  void obey(const Request& bulletin, const std::vector<Decided>& decided);

  // Of a sparse model.
  void receive_rows(int index, const Request& request);
  bool rows_make_sense(int index);
  void take_keys(int index, size_t slot);
  void answer_rows(int index, const Request& pull, const Reply& reply);
  void update_rows(std::span<const size_t> slots, double factor, double rate);
  void save_rows(Archive& state);
  void restore_rows(Archive& state, std::span<const float> values);

  // Updates.
  void take_push(int index, const Request& request, size_t slot);
  void update(std::span<const size_t> slots, double factor, double rate);
  void update_mean(const Request& push, int64_t clock, size_t slot);
  void apply_at_once(int index, const Request& push, size_t slot);
  void try_to_close();
  bool may_close(const std::vector<Gathered>& chosen) const;
  void repeat_orphans();
  void ask_to_repeat(const Hand& hand);
  bool everybody_waits() const;
  bool forget_lost(std::vector<Decided>& decided);
  void close(std::vector<Gathered> chosen);
  void drop(const Gathered& gathered);
  void free(size_t slot);
  void updated();
  void announce(const Request& request, std::vector<Decided> decided = {});

  // Snapshots.
  void take_snapshot();
  void resume();
  bool resume_rows(uint64_t count, std::span<const std::byte>& left);

  // Replies.
  void answer_all();
  void answer(int index);
  bool fill_reply(int index, const Request& pull, Reply& reply);
  void send_reply(int index, const Reply& reply, std::span<const float> parameters);
  int64_t share(int index, std::span<const float> parameters);
  void release();
  void transmit(const Output& output);
  void send_next_piece(int index);

  // Members.
  void expel(int index, const std::string& why);
  void remove(int index);
  void abandon_push(Worker& worker, int index);
  std::vector<int> present(bool active) const;
  int64_t oldest() const;
  int64_t fastest() const;
  void forgive(Worker& asking, Reply& reply);
  bool coordinates() const { return coordinator_ != nullptr; }
  Worker& worker(int index) { return workers_[static_cast<size_t>(index)]; }

  Context& context_;
  Recorder& local_;
  Node& node_;
  const Config& config_;
  const Ring& ring_;
  int index_;  // of the shard
  Inbox& inbox_;
  Publish publish_;
  Tell tell_;
  std::unique_ptr<Consistency> consistency_;
  Timetable timetable_;
  Shard shard_;
  ClockMeans means_;  // rate = "dynamic"
  Chain chain_;
  std::unique_ptr<Coordinator> coordinator_;  // the first shard's
  std::vector<Range> pieces_;                 // of gradients
  std::vector<Range> forward_pieces_;         // of parameters
  std::vector<Worker> workers_;
  std::vector<Gathered> gathered_;  // towards the update that is open
  std::map<int64_t, std::vector<Decided>> decisions_;
  std::deque<Bulletin> bulletins_;  // the last ones
  std::string settings_;            // of the run, for snapshots; first shard only
  int64_t version_ = 0;             // updates
  int64_t samples_ = 0;
  int64_t kept_ = 0;     // the evaluation whose snapshot this is
  int64_t to_keep_ = 0;  // and the next one, taken when `keep_at_` is reached
  int64_t keep_at_ = 0;
  bool diverged_ = false;
  bool closed_ = false;
  bool changed_ = false;  // since everybody who waits was looked at, and what was found then:
  int64_t oldest_ = 0;
  bool nobody_active_ = false;
  Chain::Item* current_ = nullptr;  // what is executed just now
  bool replaying_ = false;          // and whether the head has executed it before
  int updates_ = 0;                 // that it has brought about
  std::deque<Output> outputs_;      // replies that the chain does not know the reason of
  std::vector<Deferred> deferred_;
  std::deque<Input> waiting_;  // for a change of the chain
  bool led_ = false;           // when the chain was looked at last
  bool behind_ = false;        // it has led or could take inputs before it was looked at
  uint32_t led_since_ = 0;     // epoch
  uint32_t told_ = 0;          // epoch that everybody was told of
};

}  // namespace tutti::parameter_server
