#include "strategies/parameter_server/server_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "strategies/parameter_server/layout.h"

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
      notice_(sizeof(Notice)),
      joins_late_(node_.membership().incarnation(node_.endpoint().rank()) > 0) {
  const auto most_decided = static_cast<size_t>(context.cluster.workers) * sizeof(Decided);
  request_.resize(sizeof(Request) + most_decided);
  entry_.resize(sizeof(Entry) + most_decided);
  for (const Range range : detail_of<ServerDetail>(context.plan).shards)
    sizes_.push_back(range.size());
  for (int shard = 0; shard < ring_.shards(); ++shard) {
    const Order& order = known_.emplace_back(ring_.first_order(shard));
    const bool has_part =
        std::any_of(order.members.begin(), order.members.end(),
                    [&](const Member& member) { return member.rank == node_.endpoint().rank(); });
    // One that came back has forgotten everything, and waits for somebody to give it a state.
    if (has_part && !(joins_late_ && config.replicas > 0)) add_server(shard, order);
  }
  if (joins_late_) target_ = ring_.balanced(sizes_);
}

void ServerNode::add_server(int shard, Order order) {
  servers_[shard] = std::make_unique<Own>();
  Own& added = *servers_[shard];
  Recorder& counts = config_.replicas > 0 ? added.recorder : context_.recorder;
  added.context.reset(new Context{context_.node, context_.plan, context_.task, context_.cluster,
                                  context_.optimizer, context_.data, context_.model,
                                  context_.window, context_.watch, counts, context_.log,
                                  context_.members, context_.folder});
  added.server = std::make_unique<Server>(
      *added.context, context_.recorder, config_, ring_, shard, std::move(order), inbox_,
      [this](const Request& request, const std::vector<Decided>& decided) {
        publish(request, decided);
      },
      [this](const Notice& notice, Rank to) { tell(notice, to); });
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
    rebalance();
  }
  for (const auto& [shard, own] : servers_) own->server->finish_sending();
  dismiss_latecomers();
  for (Post& post : posts_)
    if (post.sending.pending()) node_.endpoint().wait(post.sending, kLinger_s);
  report();
  for (const auto& [shard, own] : servers_)
    if (own->server->diverged())
      throw DivergedError("the loss of a worker is not a finite number any more");
}

// A worker that came back after the chains were closed would wait for an answer until its timeout.
// Without replicas nothing is closed: servers end at once, and such a worker finds them gone.
void ServerNode::dismiss_latecomers() {
  if (config_.replicas == 0) return;
  look_at_members();
  for (const auto& [shard, own] : servers_)
    for (const int worker : own->server->latecomers()) {
      Notice over = own->server->replication().notice();
      over.over = 1;
      tell(over, worker);
    }
}

bool ServerNode::over() {
  remove_retired();
  bool all_closed = true, all_over = true, any = false;
  for (const auto& [shard, own] : servers_) {
    Server& server = *own->server;
    if (server.replication().is_joining()) continue;
    any = true;
    if (server.replication().leads() && !server.closed() && server.settled()) {
      server.finish_sending();
      server.close_chain();
    }
    all_closed = all_closed && server.closed();
    all_over = all_over && (server.closed() || server.over());
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
  for (const auto& [shard, own] : servers_)
    if (!own->server->replication().is_joining()) return false;
  return told_over_ || silent_s_ > (heard_ ? node_.timeout_s() : kLinger_s);
}

// Of the shards that it serves, what happened from the start.
void ServerNode::report() {
  if (config_.replicas == 0) return;
  for (const auto& [shard, own] : servers_) {
    if (!own->server->replication().leads()) continue;
    context_.recorder.count("shards_served");
    context_.recorder.count("parameters_served",
                            static_cast<int64_t>(sizes_[static_cast<size_t>(shard)]));
    for (const auto& [name, count] : own->recorder.counters()) context_.recorder.count(name, count);
    for (const EvaluationRow& row : own->recorder.evaluations()) context_.recorder.evaluation(row);
  }
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

Server* ServerNode::find(int shard) {
  const auto found = servers_.find(shard);
  return found == servers_.end() ? nullptr : found->second->server.get();
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
  Server* server = find(arrival.shard);
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
  Server* server = find(request.shard);
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
                           .elements = known ? sizes_[static_cast<size_t>(entry.shard)] : 0,
                           .rows = context_.model.architecture().rows(),
                           .row_width = context_.model.architecture().row_width,
                           .first_server = ring_.first_server(),
                           .servers = ring_.servers()};
  std::string fault = fault_of(entry, completion.bytes, limits);
  if (fault.empty()) fault = fault_of(decided, limits.workers);
  if (!fault.empty()) return refuse(completion.peer, fault);
  Server* server = find(entry.shard);
  if (!server) {
    if (entry.kind != Entry::kState) return;  // it was left out of that chain
    add_server(entry.shard, {});
    server = find(entry.shard);
  }
  server->replication().entry_arrived(completion.peer, entry, std::move(decided));
}

void ServerNode::refuse(Rank from, const std::string& why) {
  if (!is_worker(from))
    return context_.log.warn(fmt::format("ignored a message of rank {}: {}", from, why));
  for (const auto& [shard, own] : servers_) own->server->receiver().refuse(from, why);
}

void ServerNode::publish(const Request& request, const std::vector<Decided>& decided) {
  for (int shard = 1; shard < ring_.shards(); ++shard) {
    Request copy = request;
    copy.shard = shard;
    const std::vector<Member> members = holders(shard);
    if (members.empty()) continue;
    if (members.front().rank == node_.endpoint().rank()) {
      local_.push_back({shard, copy, decided});
      continue;
    }
    std::vector<std::byte> message(sizeof(Request) + decided.size() * sizeof(Decided));
    std::memcpy(message.data(), &copy, sizeof(Request));
    if (!decided.empty())
      std::memcpy(message.data() + sizeof(Request), decided.data(),
                  decided.size() * sizeof(Decided));
    post(members.front().rank, request_tag(), std::move(message));
  }
}

void ServerNode::post(Rank to, Tag tag, std::vector<std::byte> message) {
  const size_t most = 64 * static_cast<size_t>(node_.endpoint().size());
  if (posts_.size() >= most) posts_.pop_front();  // small messages: those before are gone
  Post& post = posts_.emplace_back();
  post.message = std::move(message);
  post.sending = node_.endpoint().send(to, tag, post.message);
}

void ServerNode::deliver_locally() {
  if (std::exchange(repeats_bulletins_, false))
    for (const auto& [shard, own] : servers_) own->server->publish_again();
  while (!local_.empty()) {
    const Local local = std::move(local_.front());
    local_.pop_front();
    const size_t bytes = sizeof(Request) + local.decided.size() * sizeof(Decided);
    if (Server* server = find(local.shard))
      server->receiver().handle(node_.endpoint().rank(), local.request, bytes, local.decided);
  }
}

}  // namespace tutti::parameter_server
