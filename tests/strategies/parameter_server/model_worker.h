// A worker of the parameter server without a fabric: what it asks of each shard and what it does
// with the replies, as the real one does (worker.cpp, link.cpp), but it computes nothing.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "strategies/parameter_server/turn.h"
#include "strategies/shared_evaluation.h"

namespace tutti::parameter_server {

// Its conversation with one shard.
struct ModelLink {
  uint64_t sequence = 0;
  int64_t pushes = 0;
  int64_t version = 0;  // of the parameters that are computed on
  uint64_t awaits = 0;  // the reply to this request; 0: none
  Reply reply;
  std::deque<Request> sent;  // since the last reply: an heir gets them again
  std::deque<Request> way;   // on their way to the head
};

class ModelWorker {
 public:
  ModelWorker(int shards, bool collects) : collects_(collects), links_(count(shards)) {}

  void begin() { ask(0); }
  // Returns what is wrong with the reply, or "".
  std::string take(int shard, const Reply& reply);
  // The head of this shard is another one: what is on the way is lost, and said again.
  void turn(int shard) { link(shard).way = link(shard).sent; }
  void stop() { alive_ = false; }
  bool alive() const { return alive_; }
  bool done() const { return phase_ == Phase::kGone; }
  ModelLink& link(int shard) { return links_[count(shard)]; }
  const ModelLink& link(int shard) const { return links_[count(shard)]; }
  void archive(Archive& archive);

 private:
  enum class Phase { kTraining, kReading, kEnding, kLeaving, kGone };
  static size_t count(int number) { return static_cast<size_t>(number); }
  void act();
  void commit();
  void send(ModelLink& link, Request request);
  void ask(uint32_t flags, const EvaluationShare& share = {});
  void push(ModelLink& link, const Hand& hand);
  void evaluate(const EvaluationTask& task);
  bool awaits_version(int64_t version);

  bool collects_;
  bool alive_ = true, began_ = false;
  Phase phase_ = Phase::kTraining, before_ = Phase::kTraining;
  EvaluationTask task_;
  std::vector<ModelLink> links_;
};

}  // namespace tutti::parameter_server
