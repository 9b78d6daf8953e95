// A worker's links to the servers of all shards, and what it does with all of them together: above
// all, waiting for whoever of them answers next.
#pragma once

#include <deque>
#include <functional>

#include "strategies/parameter_server/link.h"
#include "strategies/parameter_server/step_rows.h"

namespace tutti::parameter_server {

class ServerLinks {
 public:
  // Called for a server that lacks the gradient of a lost worker, as its reply says.
  using Repeat = std::function<void(Link&)>;
  // `incoming` is where parameters arrive. The row of a step is complete when replies are here.
  ServerLinks(Context& context, const Config& config, std::span<float> incoming, StepRows& rows,
              Repeat repeat);

  auto begin() { return links_.begin(); }
  auto end() { return links_.end(); }
  size_t size() const { return links_.size(); }
  Link& operator[](size_t shard) { return links_[shard]; }
  Link& coordinator() { return links_.front(); }
  Rank first_server() const { return ring_.first_server(); }

  // Waits for all replies that are under way; with `headers_only` the parameters may come later.
  void await(double timeout_s, bool headers_only = false);
  void await() { await(context_.node.timeout_s()); }
  void finish_sending();
  // Copies what came with the replies to its place in the model.
  void read();

  // Tells the servers that this worker goes: because it has failed, or because all is done.
  void leave();
  void say_goodbye(bool answered);

 private:
  Context& context_;
  Ring ring_;
  std::deque<Link> links_;  // one for each shard
  StepRows& rows_;
  Repeat repeat_;
};

}  // namespace tutti::parameter_server
