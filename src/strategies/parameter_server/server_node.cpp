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
// How long a server stays when all is done but the head of its chain was lost before it could say
// so: workers whose goodbye it had not answered ask again at once.
constexpr double kLinger_s = 1;

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
      ring_(context.node, static_cast<Rank>(context.cluster.workers),
            static_cast<int>(config.servers), static_cast<int>(config.replicas)),
      inbox_(context.node.endpoint()) {
  const Rank self = node_.endpoint().rank();
  const auto most_decided = static_cast<size_t>(context.cluster.workers) * sizeof(Decided);
  request_.resize(sizeof(Request) + most_decided);
  entry_.resize(sizeof(Entry) + most_decided);
  for (int shard = 0; shard < ring_.servers(); ++shard) {
    const int place = ring_.place(shard, self);
    if (place < 0) continue;
    Context* its = &context;
    if (place > 0) {
      Recorder& recorder = recorders_.emplace_back();
      its = &contexts_.emplace_back(Context{context.node, context.task, context.cluster,
                                            context.optimizer, context.data, context.model,
                                            context.window, context.watch, recorder, context.log,
                                            context.members, context.folder});
    }
    servers_[shard] = std::make_unique<Server>(
        *its, config_, ring_, shard, inbox_,
        [this](const Request& request, const std::vector<Decided>& decided) {
          publish(request, decided);
        });
  }
}

void ServerNode::run() {
  // One that came back has forgotten everything; the others do without it.
  if (config_.replicas > 0 && node_.membership().incarnation(node_.endpoint().rank()) > 0) return;
  heard_s_ = node_.clock().now();
  receive_request();
  if (config_.replicas > 0) receive_entry();
  look_at_members();
  while (!over()) {
    wait_for_news();
    look_at_members();
    deliver_locally();
  }
  for (const auto& [shard, server] : servers_) server->finish_sending();
  for (Post& post : posts_)
    if (post.sending.pending()) node_.endpoint().wait(post.sending, node_.timeout_s());
  report();
  for (const auto& [shard, server] : servers_)
    if (server->diverged())
      throw DivergedError("the loss of a worker is not a finite number any more");
}

bool ServerNode::over() {
  bool all_closed = true, all_over = true;
  for (const auto& [shard, server] : servers_) {
    if (server->leads() && !server->closed() && server->settled()) {
      server->finish_sending();
      server->close_chain();
    }
    all_closed = all_closed && server->closed();
    all_over = all_over && (server->closed() || server->over());
  }
  if (all_closed || !all_over) return all_closed;
  if (over_since_s_ < 0) over_since_s_ = node_.clock().now();
  return node_.clock().now() - over_since_s_ > kLinger_s;
}

// Of the shards that it had to take over, what happened from the start.
void ServerNode::report() {
  size_t copy = 0;
  for (const auto& [shard, server] : servers_) {
    if (ring_.place(shard, node_.endpoint().rank()) == 0) continue;
    const Recorder& recorder = recorders_[copy++];
    if (!server->leads()) continue;
    for (const auto& [name, count] : recorder.counters()) context_.recorder.count(name, count);
    for (const EvaluationRow& row : recorder.evaluations()) context_.recorder.evaluation(row);
  }
}

void ServerNode::receive_request() {
  inbox_.expect(kAnyRank, request_tag(), request_, {.kind = Arrival::kRequest});
}

void ServerNode::receive_entry() {
  inbox_.expect(kAnyRank, entry_tag(), entry_, {.kind = Arrival::kEntry});
}

Server* ServerNode::find(int shard) {
  const auto found = servers_.find(shard);
  return found == servers_.end() ? nullptr : found->second.get();
}

void ServerNode::wait_for_news() {
  if (!local_.empty()) return;
  PhaseScope scope(context_.watch, Phase::kWait);
  const auto news = inbox_.wait(kLookEvery_s);
  scope.change(Phase::kOther);
  if (!news) {
    if (node_.clock().now() - heard_s_ <= node_.timeout_s()) return;
    throw FabricError(FabricError::Kind::kTimedOut, kAnyRank,
                      fmt::format("no worker sent anything for {} s; if they are only slow, raise "
                                  "cluster.timeout",
                                  node_.timeout_s()));
  }
  heard_s_ = node_.clock().now();
  const auto& [arrival, completion] = *news;
  if (arrival.kind == Arrival::kRequest) return request_arrived(completion);
  if (arrival.kind == Arrival::kEntry) return entry_arrived(completion);
  Server& server = *find(arrival.shard);
  if (arrival.kind == Arrival::kGradient)
    server.gradient_arrived(arrival, completion);
  else
    server.update_arrived(arrival, completion);
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
  Server* server = whole && completion.bytes >= sizeof(Request) ? find(request.shard) : nullptr;
  if (!server) return refuse(completion.peer, "a message of another size, or about another shard");
  server->handle(completion.peer, request, completion.bytes, std::move(decided));
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
  Server* server = whole ? find(entry.shard) : nullptr;
  if (!server || is_worker(completion.peer))
    return refuse(completion.peer, "an entry of a chain that it has no part in");
  const EntryLimits limits{static_cast<int>(context_.cluster.workers), ring_.servers(),
                           server->elements()};
  std::string fault = fault_of(entry, completion.bytes, limits);
  if (fault.empty()) fault = fault_of(decided, limits.workers);
  if (!fault.empty()) return refuse(completion.peer, fault);
  server->entry_arrived(completion.peer, entry, std::move(decided));
}

void ServerNode::refuse(Rank from, const std::string& why) {
  if (!is_worker(from))
    return context_.log.warn(fmt::format("ignored a message of rank {}: {}", from, why));
  for (const auto& [shard, server] : servers_) server->refuse(from, why);
}

void ServerNode::look_at_members() {
  bool worker_changed = false, server_lost = false;
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
      server_lost = true;
    }
  }
  if (server_lost) {
    over_since_s_ = -1;
    for (const auto& [shard, server] : servers_) server->look_at_servers();
    for (int shard = 0; shard < ring_.servers(); ++shard)
      if (ring_.head(shard) == kAnyRank)
        throw FabricError(FabricError::Kind::kPeerLost, ring_.first_server() + shard,
                          fmt::format("every server is lost that had a copy of the parameters of "
                                      "rank {}; raise strategy.replicas to survive more losses",
                                      ring_.first_server() + shard));
  }
  if (worker_changed)
    for (const auto& [shard, server] : servers_) server->look_at_workers();
}

void ServerNode::publish(const Request& request, const std::vector<Decided>& decided) {
  for (int shard = 1; shard < ring_.servers(); ++shard) {
    Request copy = request;
    copy.shard = shard;
    const Rank head = ring_.head(shard);
    if (head == kAnyRank) continue;
    if (head == node_.endpoint().rank()) {
      local_.push_back({shard, copy, decided});
      continue;
    }
    const size_t most = 64 * static_cast<size_t>(ring_.servers());
    if (posts_.size() >= most) posts_.pop_front();  // small messages: those before are gone
    Post& post = posts_.emplace_back();
    post.message.resize(sizeof(Request) + decided.size() * sizeof(Decided));
    std::memcpy(post.message.data(), &copy, sizeof(Request));
    if (!decided.empty())
      std::memcpy(post.message.data() + sizeof(Request), decided.data(),
                  decided.size() * sizeof(Decided));
    post.sending = node_.endpoint().send(head, request_tag(), post.message);
  }
}

void ServerNode::deliver_locally() {
  while (!local_.empty()) {
    const Local local = std::move(local_.front());
    local_.pop_front();
    const size_t bytes = sizeof(Request) + local.decided.size() * sizeof(Decided);
    find(local.shard)->handle(node_.endpoint().rank(), local.request, bytes, local.decided);
  }
}

}  // namespace tutti::parameter_server
