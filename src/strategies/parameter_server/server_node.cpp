#include "strategies/parameter_server/server_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace tutti::parameter_server {
namespace {

// How soon a lost worker is noticed that nobody else says anything about.
constexpr double kLookEvery_s = 0.1;
// The decided gradients that follow a request or an entry in its message.
std::vector<Decided> decided_in(std::span<const std::byte> bytes) {
  std::vector<Decided> decided(bytes.size() / sizeof(Decided));
  if (!decided.empty()) std::memcpy(decided.data(), bytes.data(), decided.size() * sizeof(Decided));
  return decided;
}

}  // namespace

ServerNode::ServerNode(Context& context, const Config& config)
    : context_(context),
      node_(context.node),
      config_(config),
      ring_(context.node, static_cast<Rank>(context.cluster.workers), config),
      inbox_(context.node.endpoint()),
      posts_(context.node, ring_),
      joins_late_(node_.membership().incarnation(node_.endpoint().rank()) > 0),
      shards_(
          context, config, ring_, inbox_, joins_late_,
          [this](const Request& request, const std::vector<Decided>& decided) {
            publish(request, decided);
          },
          [this](const Notice& notice, Rank to) { tell(notice, to); }),
      notice_(sizeof(Notice)) {
  const auto most_decided = static_cast<size_t>(context.cluster.workers) * sizeof(Decided);
  request_.resize(sizeof(Request) + most_decided);
  entry_.resize(sizeof(Entry) + most_decided);
}

void ServerNode::run() {
  receive_request();
  if (config_.replicas > 0) {
    receive_entry();
    receive_notice();
    for (int server = 0; server < ring_.servers(); ++server) watch(ring_.first_server() + server);
  }
  look_at_members();
  while (!over()) {
    wait_for_news();
    look_at_members();
    deliver_locally();
    shards_.rebalance();
  }
  for (Server* server : shards_.all()) server->finish_sending();
  dismiss_latecomers();
  posts_.finish(kLinger_s);
  shards_.report();
  for (const Server* server : shards_.all())
    if (server->diverged())
      throw DivergedError("the loss of a worker is not a finite number any more");
}

// A worker that came back after the chains were closed would wait for an answer until its timeout.
// Without replicas nothing is closed: servers end at once, and such a worker finds them gone.
void ServerNode::dismiss_latecomers() {
  if (config_.replicas == 0) return;
  look_at_members();
  for (const Server* server : shards_.all())
    for (const int worker : server->latecomers()) {
      Notice over = server->replication().notice();
      over.over = 1;
      tell(over, worker);
    }
}

bool ServerNode::over() {
  shards_.remove_retired();
  bool all_closed = true, all_over = true, any = false;
  for (Server* server : shards_.all()) {
    if (server->replication().is_joining()) continue;
    any = true;
    if (server->replication().leads() && !server->closed() && server->settled()) {
      server->finish_sending();
      server->close_chain();
    }
    all_closed = all_closed && server->closed();
    all_over = all_over && (server->closed() || server->over());
  }
  if (!any) return nobody_needs_it();
  if (all_closed && !std::exchange(told_over_, true) && config_.replicas > 0) {
    Notice over{.count = 1, .over = 1};
    over.members.front().rank = node_.endpoint().rank();
    for (Rank rank = ring_.first_server(); rank < ring_.first_server() + ring_.servers(); ++rank)
      tell(over, rank);
  }
  if (all_closed || !all_over) return all_closed;
  if (over_since_s_ < 0) over_since_s_ = node_.clock().now();
  return node_.clock().now() - over_since_s_ > kLinger_s;
}

// A server without any shard: it came back, and others do without it, or nobody is left.
bool ServerNode::nobody_needs_it() const {
  if (!shards_.all_join()) return false;
  return told_over_ || silent_s_ > (heard_ ? node_.timeout_s() : kLinger_s);
}

void ServerNode::receive_request() {
  inbox_.expect(kAnyRank, request_tag(), request_, {.kind = Arrival::kRequest});
}

void ServerNode::receive_notice() {
  inbox_.expect(kAnyRank, notice_tag(), notice_, {.kind = Arrival::kNotice});
}

void ServerNode::receive_entry() {
  inbox_.expect(kAnyRank, entry_tag(), entry_, {.kind = Arrival::kEntry});
}

void ServerNode::wait_for_news() {
  if (!local_.empty()) return;
  PhaseScope scope(context_.watch, Phase::kWait);
  const auto news = inbox_.wait(kLookEvery_s);
  scope.change(Phase::kOther);
  if (!news) {
    silent_s_ += kLookEvery_s;
    if (silent_s_ <= node_.timeout_s() || nobody_needs_it()) return;
    throw FabricError(FabricError::Kind::kTimedOut, kAnyRank,
                      fmt::format("no worker sent anything for {} s; if they are only slow, raise "
                                  "cluster.timeout",
                                  node_.timeout_s()));
  }
  silent_s_ = 0;
  heard_ = true;
  const auto& [arrival, completion] = *news;
  if (arrival.kind == Arrival::kRequest) return request_arrived(completion);
  if (arrival.kind == Arrival::kEntry) return entry_arrived(completion);
  if (arrival.kind == Arrival::kNotice) return notice_arrived(completion);
  if (arrival.kind == Arrival::kLoss) return look_at_members();
  Server* server = shards_.find(arrival.shard);
  if (server && arrival.kind == Arrival::kGradient)
    server->receiver().gradient_arrived(arrival, completion);
  else if (server && arrival.kind == Arrival::kSent)
    server->piece_sent(arrival, completion);
  else if (server)
    server->replication().update_arrived(arrival, completion);
}

void ServerNode::request_arrived(const Completion& completion) {
  Request request;
  std::memcpy(&request, request_.data(), sizeof(request));
  const bool whole = completion.state == State::kDone;
  std::vector<Decided> decided;
  if (whole && completion.bytes > sizeof(Request))
    decided = decided_in(std::span(request_).first(completion.bytes).subspan(sizeof(Request)));
  receive_request();
  look_at_members();  // the sender may have just come back, or a server may be lost
  if (!whole && completion.state != State::kTruncated) return;
  const bool about_a_shard = whole && completion.bytes >= sizeof(Request) && request.shard >= 0 &&
                             request.shard < ring_.shards();
  if (!about_a_shard) return refuse(completion.peer, "a message of another size, or no such shard");
  if (request.flags == Request::kWhere && config_.replicas > 0 && is_worker(completion.peer))
    return answer_where(completion.peer, request.shard);
  Server* server = shards_.find(request.shard);
  if (!server && config_.replicas > 0) return;  // it has moved, and its sender will hear of that
  if (!server) return refuse(completion.peer, "a message about another server's shard");
  server->receiver().handle(completion.peer, request, completion.bytes, std::move(decided));
}

void ServerNode::entry_arrived(const Completion& completion) {
  Entry entry;
  std::memcpy(&entry, entry_.data(), sizeof(entry));
  const bool whole = completion.state == State::kDone && completion.bytes >= sizeof(Entry);
  std::vector<Decided> decided;
  if (whole) decided = decided_in(std::span(entry_).first(completion.bytes).subspan(sizeof(Entry)));
  receive_entry();
  look_at_members();
  if (completion.state != State::kDone && completion.state != State::kTruncated) return;
  if (!whole || is_worker(completion.peer))
    return refuse(completion.peer, "an entry of a chain that it has no part in");
  const bool known = entry.shard >= 0 && entry.shard < ring_.shards();
  const EntryLimits limits{.workers = static_cast<int>(context_.cluster.workers),
                           .shards = ring_.shards(),
                           .elements = known ? shards_.elements(entry.shard) : 0,
                           .rows = context_.model.architecture().rows(),
                           .row_width = context_.model.architecture().row_width,
                           .first_server = ring_.first_server(),
                           .servers = ring_.servers()};
  std::string fault = fault_of(entry, completion.bytes, limits);
  if (fault.empty()) fault = fault_of(decided, limits.workers);
  if (!fault.empty()) return refuse(completion.peer, fault);
  Server* server = shards_.find(entry.shard);
  if (!server) {
    if (entry.kind != Entry::kState) return;  // it was left out of that chain
    server = &shards_.add(entry.shard, {});
  }
  server->replication().entry_arrived(completion.peer, entry, std::move(decided));
}

void ServerNode::refuse(Rank from, const std::string& why) {
  if (!is_worker(from))
    return context_.log.warn(fmt::format("ignored a message of rank {}: {}", from, why));
  for (Server* server : shards_.all()) server->receiver().refuse(from, why);
}

void ServerNode::publish(const Request& request, const std::vector<Decided>& decided) {
  for (int shard = 1; shard < ring_.shards(); ++shard) {
    Request copy = request;
    copy.shard = shard;
    const std::vector<Member> members = shards_.holders(shard);
    if (members.empty()) continue;
    if (members.front().rank == node_.endpoint().rank())
      local_.push_back({shard, copy, decided});
    else
      posts_.publish(members.front().rank, copy, decided);
  }
}

void ServerNode::tell(const Notice& notice, Rank to) {
  if (to == kAnyRank) repeats_bulletins_ = true;
  posts_.tell(notice, to);
}

void ServerNode::deliver_locally() {
  if (std::exchange(repeats_bulletins_, false))
    for (Server* server : shards_.all()) server->publish_again();
  while (!local_.empty()) {
    const Local local = std::move(local_.front());
    local_.pop_front();
    const size_t bytes = sizeof(Request) + local.decided.size() * sizeof(Decided);
    if (Server* server = shards_.find(local.shard))
      server->receiver().handle(node_.endpoint().rank(), local.request, bytes, local.decided);
  }
}

void ServerNode::look_at_members() {
  bool worker_changed = false;
  while (const std::optional<MemberEvent> event = node_.membership().next_event()) {
    if (is_worker(event->rank)) {
      worker_changed = true;
    } else if (event->kind == MemberEvent::Kind::kLost) {
      if (config_.replicas == 0)
        throw FabricError(FabricError::Kind::kPeerLost, event->rank,
                          fmt::format("lost rank {}, a server, and nobody has a copy of its "
                                      "parameters; strategy.replicas = 1 would have kept one",
                                      event->rank));
      context_.log.warn(fmt::format("rank {}, a server, is lost", event->rank));
      look_at_servers(kAnyRank);
    } else if (config_.replicas > 0) {
      context_.log.info(fmt::format("rank {}, a server, is back", event->rank));
      watch(event->rank);
      look_at_servers(event->rank);
    }
  }
  if (worker_changed)
    for (Server* server : shards_.all()) server->receiver().look_at_workers();
}

// Chains wait for each other: nobody should have to look by itself whether they are still there.
void ServerNode::watch(Rank server) {
  if (server == node_.endpoint().rank() || !node_.membership().alive(server)) return;
  inbox_.expect(server, life_tag(), std::span(&nothing_, 1),
                {.kind = Arrival::kLoss, .peer = server});
}

void ServerNode::look_at_servers(Rank joined) {
  over_since_s_ = -1;
  for (Server* server : shards_.all()) {
    server->replication().look_at_servers();
    server->publish_again();  // the head that a bulletin was sent to may have been lost with it
    if (joined != kAnyRank && server->replication().leads())
      tell(server->replication().notice(), joined);
  }
  shards_.aim();
}

void ServerNode::answer_where(Rank worker, int shard) {
  const Server* server = shards_.find(shard);
  const Replication* replication = server ? &server->replication() : nullptr;
  if (replication && replication->is_joining()) return;  // it tells everybody when it is the head
  tell(replication && replication->has_part() ? replication->notice() : Notice{.shard = shard},
       worker);
}

void ServerNode::notice_arrived(const Completion& completion) {
  Notice notice;
  std::memcpy(&notice, notice_.data(), sizeof(notice));
  receive_notice();
  look_at_members();
  if (completion.state != State::kDone && completion.state != State::kTruncated) return;
  const std::string fault = completion.state == State::kDone
                                ? fault_of(notice, completion.bytes, completion.peer,
                                           ring_.first_server(), ring_.servers(), ring_.shards())
                                : "a message of another size";
  if (!fault.empty()) return refuse(completion.peer, fault);
  if (notice.count == 0) return;
  if (notice.over) {
    told_over_ = told_over_ || joins_late_;
    return;
  }
  shards_.learn(notice);
  if (Server* server = shards_.find(notice.shard)) server->replication().hear_of(notice);
  for (Server* server : shards_.all()) server->publish_again();
}

}  // namespace tutti::parameter_server
