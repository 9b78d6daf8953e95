// Workers, shards and a copy of each shard without a fabric, a clock or parameters: what may happen
// next is a list of events, and whoever tests chooses one of them.
//
// The state machines are the real ones (shard_state.h). The world plays everything around them in
// the simplest way that is still right: requests become entries at the head of a shard, entries go
// to the copy one by one, replies leave when the copy has their reason. Memory is a list of the
// gradients that updates consist of. What must always hold is checked after every event.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strategies/parameter_server/shard_state.h"
#include "tests/strategies/parameter_server/model_worker.h"

namespace tutti::parameter_server {

struct WorldSettings {
  std::string consistency = "bsp";
  int64_t staleness = 1;
  int workers = 3;
  int shards = 2;
  int64_t steps = 2;
  size_t validation = 0;  // samples
  // The planted bug: a head that took over executes what workers say again.
  bool executes_again = false;
  bool compares_copies = true;  // byte by byte
  bool keeps_inputs = false;    // of the heads
};

StateSettings state_settings(const WorldSettings& world, int shard);
std::vector<std::byte> bytes_of(ShardState& state);

// What a head executed.
struct KeptInput {
  Entry entry;
  std::vector<Decided> decided;
};

struct Event {
  enum Kind {
    kRequest,     // the next request of `worker` reaches the head of `shard`
    kReplicate,   // the next entry reaches the copy of `shard`, and its acknowledgement the head
    kReply,       // the next reply of `shard` reaches `worker`
    kBulletin,    // the next bulletin of the first shard reaches `shard`
    kNotice,      // the head of `shard` notices that `worker` is lost
    kLoseServer,  // the home of `shard`, which holds a copy of the shard before it
    kLoseWorker,
  };
  Kind kind = kRequest;
  int shard = 0;
  int worker = 0;
};

class ShardWorld {
 public:
  explicit ShardWorld(const WorldSettings& settings);
  std::unique_ptr<ShardWorld> clone();
  // A number that is the same for worlds that are in the same state.
  std::pair<uint64_t, uint64_t> fingerprint();

  // Without losses, which may happen at any time.
  std::vector<Event> events() const;
  void happen(const Event& event);
  bool may_lose_server() const { return !lost_server_; }
  bool may_lose_worker() const;

  const std::string& broken() const { return broken_; }  // what does not hold, or ""
  // Nothing can happen any more: the same for what must hold in the end.
  std::string broken_at_the_end() const;
  const ShardState& head(int shard) const { return *at(shard).state; }
  int64_t resent() const { return resent_; }  // pushes that a head got which had them
  const std::vector<KeptInput>& inputs(int shard) const { return at(shard).inputs; }

 private:
  ShardWorld() = default;
  // What the parameters of one server consist of.
  struct Memory {
    std::vector<GradientName> applied, dropped;
    int64_t updates = 0;
  };
  struct Item {
    Entry entry;
    std::vector<Decided> decided;
    std::vector<GradientName> update;  // the gradients that were added up
    std::vector<std::byte> state;      // of the head, afterwards
  };
  struct Waiting {
    uint64_t index;
    output::Send send;
  };
  struct Copy {
    std::unique_ptr<ShardState> state;
    Memory memory;
  };
  struct Shard : Copy {
    std::optional<Copy> copy;
    uint64_t last = 0, acknowledged = 0, published = 0;
    std::vector<GradientName> held, absent;
    std::vector<bool> heard;
    std::deque<Item> items;         // that the copy has not got
    std::vector<KeptInput> inputs;  // of all time
    std::deque<Waiting> waiting;
    std::vector<std::deque<Reply>> replies;  // on their way, by worker
    std::deque<Bulletin> bulletins;          // of the first shard, on their way here
  };
  Shard& at(int shard) { return shards_[static_cast<size_t>(shard)]; }
  const Shard& at(int shard) const { return shards_[static_cast<size_t>(shard)]; }
  ModelWorker& worker(int index) { return workers_[static_cast<size_t>(index)]; }
  const ModelWorker& worker(int index) const { return workers_[static_cast<size_t>(index)]; }

  void request(int index, int worker);
  void say_again(int index, int worker, const Request& request);
  void input(int index, Entry entry, const std::vector<Decided>& decided = {});
  void replicate(int index);
  void release(int index);
  void lose_server(int home);
  void take_over(int index);
  void perform(int index, const std::vector<Output>& outputs, Item& item);
  void update(Memory& memory, const Output& output, const std::vector<GradientName>& gradients);
  void check_books(int index, const Copy& copy);
  void check_bound(int index, const output::Send& send);
  void fail(const std::string& what);

  WorldSettings settings_;
  std::vector<Shard> shards_;
  std::vector<ModelWorker> workers_;
  bool lost_server_ = false, lost_worker_ = false;
  int64_t resent_ = 0;
  std::string broken_;
};

}  // namespace tutti::parameter_server
