#include "strategies/pairwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "fabric/exchange.h"
#include "strategies/averaging.h"

namespace tutti {
namespace {

// Of purpose kControl.
enum class PairNews : uint64_t { kEnded, kMembers };
constexpr Tag kRequest(Purpose::kParameters, 0, PairPart::kRequest);
constexpr Tag kAnswer(Purpose::kParameters, 0, PairPart::kAnswer);
constexpr Tag kEnded(Purpose::kControl, 0, PairNews::kEnded);
constexpr Tag kMembers(Purpose::kControl, 0, PairNews::kMembers);

// A message above kEagerBytes travels once its receive is posted, so a few are posted at a time.
constexpr int64_t kMostIncoming = 4;

}  // namespace

Rank first_of(const std::vector<bool>& living) {
  return static_cast<Rank>(std::find(living.begin(), living.end(), true) - living.begin());
}

PairwiseExchange::PairwiseExchange(Context& context, double weight, Served served)
    : context_(context),
      me_(context.node.endpoint().rank()),
      to_serve_(std::move(served)),
      count_(context.model.parameters().size()),
      weight_(static_cast<float>(weight)),
      reports_(static_cast<size_t>(context.cluster.workers), static_cast<size_t>(me_), now_s()),
      living_(static_cast<size_t>(context.cluster.workers), true),
      sent_(message_bytes()),
      answered_(message_bytes()) {
  answer_if_due();
}

void PairwiseExchange::answer_if_due() {
  if (!served_.empty() || (to_serve_.by == Answering::kFirst && !leads())) return;
  served_ = to_serve_.values();
  for (int64_t i = 0; i < std::min(kMostIncoming, context_.cluster.workers - 1); ++i) {
    Letter& incoming = incoming_.emplace_back();
    incoming.message = Buffer<std::byte>(message_bytes());
    incoming.handle = context_.node.endpoint().receive(kAnyRank, kRequest, incoming.message.span());
  }
}

std::span<float> PairwiseExchange::values_of(Buffer<std::byte>& message) {
  return values_in<float>(message.span().subspan(reports_.bytes()));
}

void PairwiseExchange::lose(Rank rank) {
  if (living_[static_cast<size_t>(rank)])
    context_.log.warn(fmt::format("lost rank {}; going on without it", rank));
  living_[static_cast<size_t>(rank)] = false;  // for good, also if it comes back
  answer_if_due();
}

void PairwiseExchange::request(Rank peer, std::span<const float> own) {
  TUTTI_CHECK(idle());
  reports_.write(sent_.span());
  on_vectors(context_, 2, own.size(),
             [&] { std::copy(own.begin(), own.end(), values_of(sent_).begin()); });
  requested_ = {.step = steps_, .time_s = now_s()};
  answer_ = context_.node.endpoint().receive(peer, kAnswer, answered_.span());
  request_ = context_.node.endpoint().send(peer, kRequest, sent_.span());
}

void PairwiseExchange::serve() {
  while (const auto event = context_.node.membership().next_event())
    if (event->kind == MemberEvent::Kind::kLost) lose(event->rank);
  Endpoint& endpoint = context_.node.endpoint();
  for (Letter& incoming : incoming_)
    while (const auto completion = endpoint.test(incoming.handle)) answer(incoming, *completion);
  // An answer that could not be delivered was for somebody who is gone.
  for (Letter& outgoing : answers_)
    if (outgoing.handle.pending()) endpoint.test(outgoing.handle);
}

void PairwiseExchange::answer(Letter& incoming, const Completion& completion) {
  Endpoint& endpoint = context_.node.endpoint();
  if (completion.state == State::kDone && living_[static_cast<size_t>(completion.peer)]) {
    auto free = std::find_if(answers_.begin(), answers_.end(),
                             [](const Letter& o) { return !o.handle.pending(); });
    if (free == answers_.end()) {
      answers_.emplace_back().message = Buffer<std::byte>(message_bytes());
      free = answers_.end() - 1;
    }
    reports_.learn(incoming.message.span());
    reports_.write(free->message.span());
    on_vectors(context_, 4, count_, [&] {
      const std::span<const float> theirs = values_of(incoming.message);
      const std::span<float> moved = values_of(free->message);
      for (size_t i = 0; i < count_; ++i) {
        moved[i] = weight_ * (theirs[i] - served_[i]);
        served_[i] += moved[i];
      }
    });
    free->handle = endpoint.send(completion.peer, kAnswer, free->message.span());
  }
  incoming.handle = endpoint.receive(kAnyRank, kRequest, incoming.message.span());
}

void PairwiseExchange::accept(std::span<float> own) {
  Endpoint& endpoint = context_.node.endpoint();
  if (request_.pending()) endpoint.test(request_);
  if (!answer_.pending()) return;
  if (const auto completion = endpoint.test(answer_)) take(*completion, own);
}

void PairwiseExchange::take(const Completion& completion, std::span<float> own) {
  if (completion.state != State::kDone) return lose(completion.peer);
  reports_.learn(answered_.span());
  double squares = 0;
  on_vectors(context_, 3, count_, [&] {
    const std::span<const float> moved = values_of(answered_);
    for (size_t i = 0; i < count_; ++i) {
      own[i] -= moved[i];
      squares += double{moved[i]} * double{moved[i]};
    }
  });
  distance_ = std::sqrt(squares) / double{weight_};
  context_.recorder.applied({.round = requested_.step,
                             .staleness = static_cast<double>(steps_ - requested_.step),
                             .age_s = now_s() - requested_.time_s});
}

std::pair<size_t, Completion> PairwiseExchange::wait_serving(std::vector<Handle>& awaited) {
  PhaseScope scope(context_.watch, Phase::kWait);
  for (;;) {
    serve();
    std::vector<Handle> all;
    all.reserve(awaited.size() + incoming_.size());
    for (Handle& handle : awaited) all.push_back(std::move(handle));
    for (Letter& incoming : incoming_) all.push_back(std::move(incoming.handle));
    const auto [index, completion] =
        context_.node.endpoint().wait_any(all, context_.node.timeout_s());
    for (size_t i = 0; i < awaited.size(); ++i) awaited[i] = std::move(all[i]);
    for (size_t i = 0; i < incoming_.size(); ++i)
      incoming_[i].handle = std::move(all[awaited.size() + i]);
    if (completion.state == State::kTimedOut || index < awaited.size()) return {index, completion};
    answer(incoming_[index - awaited.size()], completion);
  }
}

std::vector<Rank> PairwiseExchange::finish(std::span<float> own) {
  if (answer_.pending()) {
    std::vector<Handle> last(1);
    last[0] = std::move(answer_);
    const Completion completion = wait_serving(last).second;
    if (completion.state == State::kTimedOut) require_done(context_.node, completion);
    take(completion, own);
  }
  while (!leads())
    if (follow_end(leader())) break;
  if (leads()) lead_end();
  std::vector<Rank> left;
  for (size_t rank = 0; rank < living_.size(); ++rank)
    if (living_[rank]) left.push_back(static_cast<Rank>(rank));
  return left;
}

void PairwiseExchange::lead_end() {
  const std::span<const int64_t> own = reports_.facts();
  std::vector<std::vector<int64_t>> reports(living_.size(), {own.begin(), own.end()});
  std::vector<Handle> ended(living_.size());
  size_t open = 0;
  const auto first = static_cast<size_t>(me_) + 1;
  for (size_t rank = first; rank < living_.size(); ++rank) {
    if (!living_[rank]) continue;
    ended[rank] = context_.node.endpoint().receive(static_cast<Rank>(rank), kEnded,
                                                   writable_bytes_of<int64_t>(reports[rank]));
    ++open;
  }
  while (open > 0) {
    const auto [rank, completion] = wait_serving(ended);
    if (completion.state == State::kTimedOut) {
      const auto late = std::find_if(ended.begin(), ended.end(),
                                     [](const Handle& handle) { return handle.pending(); });
      throw FabricError(FabricError::Kind::kTimedOut, static_cast<Rank>(late - ended.begin()),
                        fmt::format("rank {} has not ended its training for {} s; if it is only "
                                    "slow, raise cluster.timeout",
                                    late - ended.begin(), context_.node.timeout_s()));
    }
    --open;
    if (completion.state == State::kDone)
      reports_.learn(bytes_of<int64_t>(reports[rank]));
    else
      lose(static_cast<Rank>(rank));
  }
  std::vector<std::byte> flags(living_.size());
  for (size_t rank = 0; rank < flags.size(); ++rank) flags[rank] = std::byte(living_[rank] ? 1 : 0);
  for (size_t rank = first; rank < living_.size(); ++rank) {
    if (!living_[rank]) continue;
    Handle handle = context_.node.endpoint().send(static_cast<Rank>(rank), kMembers, flags);
    // Who is lost from now on ends the run: what follows is agreed upon with all of them.
    require_done(context_.node, context_.node.endpoint().wait(handle, context_.node.timeout_s()));
  }
}

// False: the leader is lost, and somebody else has become it.
bool PairwiseExchange::follow_end(Rank leader) {
  std::vector<std::byte> flags(living_.size());
  std::vector<Handle> told(1);
  told[0] = context_.node.endpoint().receive(leader, kMembers, flags);
  Handle ended = context_.node.endpoint().send(leader, kEnded, bytes_of<int64_t>(reports_.facts()));
  const Completion completion = wait_serving(told).second;
  if (completion.state == State::kPeerLost && completion.peer == leader) {
    lose(leader);
    return false;
  }
  require_done(context_.node, completion);
  for (size_t rank = 0; rank < living_.size(); ++rank) living_[rank] = flags[rank] != std::byte{0};
  return true;
}

bool joined_from_the_start(Context& context) {
  const Rank me = context.node.endpoint().rank();
  if (context.node.membership().incarnation(me) == 0) return true;
  context.log.warn("came back after a crash; the others go on without this node");
  return false;
}

void refuse_cost_only(const ClusterConfig& cluster, std::string_view setting) {
  if (cluster.cost_only)
    throw ConfigError("cluster.cost_only",
                      fmt::format("{} decides by what is in the messages when training ends, but "
                                  "with cluster.cost_only = true they are empty; set it to false, "
                                  "or take the synchronous mode",
                                  setting));
}

}  // namespace tutti
