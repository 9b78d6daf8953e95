// Averaging in pairs without waiting: the exchange of asynchronous gossip and elastic averaging.
//
// A worker sends its values to a peer and goes on training. The peer, when it gets to it, moves its
// own values y by m = weight (x - y) and answers with m; the worker, when that arrives, moves by
// -m. So the sum of all values stays, whatever has happened to either in between. Nobody waits for
// an answer without answering others, and each has one request under way at most: there is no cycle
// to be stuck in, and no need for the graph to have two sides (as in Lian et al., "Asynchronous
// decentralized parallel stochastic gradient descent", ICML 2018, which blocks).
//
// Messages also carry on how far each worker is (reported_progress.h). The end itself is agreed
// with the first of those that are left: a worker that is lost is left out, whichever it is.
#pragma once

#include <deque>
#include <functional>

#include "core/bytes.h"
#include "strategies/reported_progress.h"
#include "strategies/strategy.h"

namespace tutti {

// Of tags of purpose kParameters: the exchange's own, and at its end the average of all that
// gossip makes, or the centre that elastic averaging hands on.
enum class PairPart : uint64_t { kRequest = 0, kAnswer = 1, kMean, kCentre };

Rank first_of(const std::vector<bool>& living);

// Who answers requests, everybody or the first of those that are left, and the values that these
// move. They are asked for once, when this node begins to answer: at first, or when all before it
// are lost.
enum class Answering { kAll, kFirst };
struct Served {
  Answering by = Answering::kAll;
  std::function<std::span<float>()> values;
};

class PairwiseExchange {
 public:
  PairwiseExchange(Context& context, double weight, Served served);

  bool idle() const { return !answer_.pending() && !request_.pending(); }
  // Sends `own` to `peer`, which must be among the living. Only while idle.
  void request(Rank peer, std::span<const float> own);
  // Never blocks: serves requests that have arrived.
  void serve();
  // Never blocks: moves `own` by the answer if it has arrived.
  void accept(std::span<float> own);

  const std::vector<bool>& living() const { return living_; }
  // The first of the living measures for all, and agrees with them on the end.
  Rank leader() const { return first_of(living_); }
  bool leads() const { return leader() == me_; }
  // How far this node is, and what it knows of the others.
  void set_own_samples(int64_t samples) { reports_.set_own_samples(samples, now_s()); }
  int64_t likely_samples() const { return reports_.likely_samples(now_s(), living_); }
  const ReportedProgress& reports() const { return reports_; }
  void stop() { reports_.stop(); }
  // Steps of this node so far: what the staleness of an answer is counted in.
  void set_steps(int64_t steps) { steps_ = steps; }
  // Sets how far an exchange moves both sides, which may follow the schedule of the learning rate.
  void set_weight(double weight) { weight_ = static_cast<float>(weight); }
  // The root of the mean square distance between two workers, by the last answer.
  double pair_distance() const { return distance_; }

  // Collective, after training: until every living worker has ended. Returns those that are left,
  // the same on all of them. `own` takes the last answer.
  std::vector<Rank> finish(std::span<float> own);

 private:
  struct Letter {
    Buffer<std::byte> message;
    Handle handle;  // after the message: cancelled before it goes
  };

  struct Requested {  // when the last request was sent
    int64_t step = 0;
    double time_s = 0;
  };

  double now_s() const { return context_.node.clock().now(); }
  size_t message_bytes() const { return reports_.bytes() + count_ * sizeof(float); }
  std::span<float> values_of(Buffer<std::byte>& message);
  void answer(Letter& incoming, const Completion& completion);
  void take(const Completion& completion, std::span<float> own);
  void lose(Rank rank);
  void answer_if_due();
  // Blocks until one of `awaited` has ended, serving requests meanwhile.
  std::pair<size_t, Completion> wait_serving(std::vector<Handle>& awaited);
  void lead_end();
  bool follow_end(Rank leader);

  Context& context_;
  const Rank me_;
  const Served to_serve_;
  const size_t count_;
  std::span<float> served_;  // empty: this node gets no requests
  float weight_;
  ReportedProgress reports_;
  std::vector<bool> living_;
  int64_t steps_ = 0;
  Requested requested_;
  double distance_ = 0;
  Buffer<std::byte> sent_, answered_;
  std::deque<Letter> incoming_;
  std::deque<Letter> answers_;  // under way
  Handle request_, answer_;     // last: cancelled before their buffers go
};

// False on a worker that was lost and came back: the others have gone on without it, and it takes
// no part any more.
bool joined_from_the_start(Context& context);

// Throws ConfigError when only costs are simulated. `setting` is what needs the contents.
void refuse_cost_only(const ClusterConfig& cluster, std::string_view setting);

}  // namespace tutti
