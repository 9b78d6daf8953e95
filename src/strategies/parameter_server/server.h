// A shard's server: holds a part of the parameters, applies gradients to it, answers pulls.
//
// What is to happen is decided by a state machine (shard_state.h). Around it are those who deal
// with the world: one receives, one replies, one replicates, one updates the parameters, one keeps
// snapshots. This class makes them one server: it has the state machine execute what the chain has
// put in order, and hands its outputs to whoever carries them out.
#pragma once

#include <functional>
#include <vector>

#include "strategies/parameter_server/receiver.h"
#include "strategies/parameter_server/shard_updates.h"
#include "strategies/parameter_server/snapshot_keeper.h"

namespace tutti::parameter_server {

class Server : private Replicated {
 public:
  // What the coordinator tells the servers of the other shards.
  using Publish = std::function<void(const Request&, const std::vector<Decided>&)>;
  // `context.recorder` counts what every replica counts alike, `local` what this node alone does.
  // With an empty order it has no part in the chain before it gets its state.
  Server(Context& context, Recorder& local, const Config& config, const Ring& ring, int shard,
         Order order, Inbox& inbox, Publish publish, Replication::Tell tell);

  Receiver& receiver() { return receiver_; }
  Replication& replication() { return replication_; }
  const Replication& replication() const { return replication_; }

  void piece_sent(const Arrival& arrival, const Completion& completion);
  void publish_again();  // somebody may not have got it
  // Goes on towards this chain, if it still pays.
  void rebalance(const std::vector<Member>& target);

  bool diverged() const { return state_.diverged(); }
  bool over() const;     // everybody has the final parameters, as far as is known here
  bool settled() const;  // and nobody can ask for them again
  bool closed() const { return state_.closed(); }
  std::vector<int> latecomers() const;  // workers that are there, but were never told of the end
  void close_chain() { replication_.input({.kind = Entry::kClosed}); }
  void finish_sending();

 private:
  struct Performer;
  void execute(Chain::Item& item, bool replayed) override;
  Buffer<float> save(Archive& archive) override;
  void restore(Archive& archive, std::span<const float> values) override;
  void release(uint64_t acknowledged) override;
  void take_over() override;
  void hand_over() override;
  void catch_up() override { receiver_.catch_up(); }
  void archive_books(Archive& archive);
  void tell_measured();

  Context& context_;
  Recorder& local_;
  Publish publish_;
  ShardState state_;
  Shard shard_;
  HeldGradients held_;
  ShardUpdates updates_;
  SnapshotKeeper snapshots_;
  Replier replier_;
  Replication replication_;
  Receiver receiver_;
  uint64_t published_ = 0;  // bulletins of entries up to this one
  size_t told_ = 0;         // measurements, for the record of the run
};

}  // namespace tutti::parameter_server
