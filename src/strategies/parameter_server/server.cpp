// The loop and the requests; updates are in server_updates.cpp, replies in server_replies.cpp.
#include "strategies/parameter_server/server.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "strategies/parameter_server/layout.h"

namespace tutti::parameter_server {
namespace {

// How soon a lost worker is noticed that nobody else says anything about.
constexpr double kLookEvery_s = 0.1;
// More requests than a worker can have under way: a pull ahead, a push, a goodbye.
constexpr size_t kMostQueued = 8;

Rank index_of(const Context& context) {
  return context.node.endpoint().rank() - static_cast<Rank>(context.cluster.workers);
}

Range shard_of(const Context& context, const Config& config) {
  if (context.model.architecture().row_width > 0) return {0, 0};  // its rows go by their keys
  const auto shards =
      make_shards(context.model.architecture(), static_cast<size_t>(config.servers), config.shards);
  return shards[static_cast<size_t>(index_of(context))];
}

}  // namespace

Server::Server(Context& context, const Config& config)
    : context_(context),
      node_(context.node),
      config_(config),
      first_server_(static_cast<Rank>(context.cluster.workers)),
      consistency_(make_consistency(config, context.cluster.workers)),
      timetable_(context.task, context.optimizer, context.data.splits.train.size()),
      shard_(context, shard_of(context, config)),
      pieces_(pieces_of(context.model.architecture(), shard_.range())),
      workers_(static_cast<size_t>(context.cluster.workers)) {
  if (index_of(context) == 0)
    coordinator_ = std::make_unique<Coordinator>(context, config, *consistency_, timetable_);
}

void Server::run() {
  handles_.emplace_back();
  piece_of_.emplace_back();
  heard_s_ = node_.clock().now();
  receive_request();
  while (!over()) {
    wait_for_news();
    look_at_members();
    answer_all();
  }
  for (Worker& worker : workers_)
    for (Handle& handle : worker.sending)
      if (handle.pending()) node_.endpoint().wait(handle, node_.timeout_s());
  if (RowShard* rows = shard_.rows())
    context_.recorder.count("rows_made", static_cast<int64_t>(rows->table().size()));
  if (diverged_) throw DivergedError("the loss of a worker is not a finite number any more");
}

bool Server::over() const {
  bool somebody = false;
  for (const Worker& worker : workers_) {
    if (worker.present && !worker.done) return false;
    somebody = somebody || worker.done;
  }
  if (!somebody && !diverged_)
    throw FabricError(FabricError::Kind::kPeerLost, 0,
                      "every worker is lost or was refused: nobody is left to train");
  return true;
}

void Server::receive_request() {
  handles_[0] = node_.endpoint().receive(kAnyRank, request_tag(),
                                         std::as_writable_bytes(std::span<Request>(&incoming_, 1)));
}

void Server::wait_for_news() {
  PhaseScope scope(context_.watch, Phase::kWait);
  const auto [index, completion] = node_.endpoint().wait_any(handles_, kLookEvery_s);
  scope.change(Phase::kOther);
  if (completion.state != State::kTimedOut) {
    heard_s_ = node_.clock().now();
    return arrived(index, completion);
  }
  if (node_.clock().now() - heard_s_ <= node_.timeout_s()) return;
  throw FabricError(FabricError::Kind::kTimedOut, kAnyRank,
                    fmt::format("no worker sent anything for {} s; if they are only slow, raise "
                                "cluster.timeout",
                                node_.timeout_s()));
}

void Server::look_at_members() {
  const auto workers = static_cast<Rank>(workers_.size());
  bool changed = false;
  while (const std::optional<MemberEvent> event = node_.membership().next_event()) {
    const bool lost = event->kind == MemberEvent::Kind::kLost;
    if (event->rank >= workers && lost)
      throw FabricError(FabricError::Kind::kPeerLost, event->rank,
                        fmt::format("lost rank {}, a server, and nobody has a copy of its "
                                    "parameters",
                                    event->rank));
    if (event->rank >= workers) continue;
    changed = changed_ = true;
    Worker& changing = worker(event->rank);
    if (lost) {
      if (!changing.present) continue;
      context_.log.warn(fmt::format("rank {} is lost; going on without it", event->rank));
      context_.recorder.count("workers_lost");
      remove(event->rank);
    } else {
      const int64_t base = oldest();
      changing = Worker{};
      changing.base = base == kMostBound ? 0 : base;
      context_.recorder.count("workers_joined");
    }
  }
  if (changed) try_to_close();
}

void Server::arrived(size_t index, const Completion& completion) {
  if (index > 0) {
    const Piece piece = piece_of_[index];
    handles_[index] = std::move(handles_.back());
    handles_.pop_back();
    piece_of_[index] = piece_of_.back();
    piece_of_.pop_back();
    return piece_arrived(piece, completion);
  }
  const Request request = incoming_;
  const bool whole = completion.state == State::kDone;
  receive_request();
  look_at_members();  // the sender may have just come back
  if (whole || completion.state == State::kTruncated)
    handle(completion.peer, request, completion.bytes);
}

void Server::piece_arrived(const Piece& piece, const Completion& completion) {
  Worker& sender = worker(piece.worker);
  if (!sender.present || !sender.push) return;
  if (completion.state == State::kPeerLost) return;  // the membership says so too
  if (completion.state != State::kDone || completion.bytes != piece.bytes)
    return expel(piece.worker, fmt::format("a gradient of {} bytes instead of {}", completion.bytes,
                                           piece.bytes));
  if (--sender.push->pieces_left == 0) finish_push(piece.worker);
}

void Server::handle(Rank from, const Request& request, size_t bytes) {
  const RequestLimits limits{static_cast<int>(workers_.size()), first_server_, version_,
                             context_.model.architecture().rows()};
  const std::string fault = fault_of(request, bytes, from, limits);
  const bool from_worker = from >= 0 && from < limits.workers;
  if (!from_worker) {
    if (fault.empty()) return obey(request);
    return context_.log.warn(fmt::format("ignored a message of rank {}: {}", from, fault));
  }
  Worker& sender = worker(from);
  if (!sender.present) return;
  if (!fault.empty()) return expel(from, fault);
  if (request.sequence != sender.sequence + 1)
    return expel(from, fmt::format("request {} after {}", request.sequence, sender.sequence));
  sender.sequence = request.sequence;
  if (sender.queue.size() >= kMostQueued) return expel(from, "more requests than make sense");
  sender.queue.push_back(request);
  process_queue(from);
}

// In the order sent; what comes after a push waits until its gradients are there.
void Server::process_queue(int index) {
  Worker& sender = worker(index);
  while (sender.present && !sender.push && !sender.queue.empty()) {
    const Request request = sender.queue.front();
    sender.queue.pop_front();
    process(index, request);
  }
}

void Server::process(int index, const Request& request) {
  changed_ = true;
  Worker& sender = worker(index);
  if (request.flags & Request::kLeave) {
    diverged_ = true;
    return remove(index);
  }
  if (coordinates()) {
    consistency_->observe(index, request.occupancy, present(true).size());
    try {
      if (request.flags & Request::kEvaluated && !coordinator_->evaluated(index, request.share))
        return expel(index, "an evaluation that nobody asked for");
    } catch (const DivergedError& error) {  // everybody is to hear of it
      context_.log.warn(error.what());
      diverged_ = true;
    }
  }
  if (request.flags & Request::kPull && sender.pull)
    return expel(index, "a second pull before the first was answered");
  if (request.flags & Request::kPush) return begin_push(index, request);
  if (request.flags & Request::kRows) return receive_rows(index, request);
  if (request.flags & Request::kFinal) sender.finished = true;
  if (request.flags & Request::kGoodbye) sender.done = true;
  if (request.flags & Request::kPull) {
    sender.pull = request;
    sender.waited = false;
  }
}

void Server::begin_push(int index, const Request& request) {
  Worker& sender = worker(index);
  if (request.clock < sender.clock) context_.recorder.count("pushes_duplicated");
  if (request.clock != sender.clock || sender.finished)
    return expel(index, fmt::format("push {} after {}", request.clock, sender.clock));
  if (shard_.rows()) return receive_rows(index, request);
  const size_t slot = shard_.take_slot();
  const size_t element = shard_.element_bytes();
  const std::vector<Range> whole{shard_.range()};
  const std::vector<Range>& pieces = request.flags & Request::kInParts ? pieces_ : whole;
  sender.push = Push{request, slot, 0};
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].empty()) continue;
    const size_t bytes = pieces[i].size() * element;
    handles_.push_back(node_.endpoint().receive(
        index, gradient_tag(request.sequence, i),
        shard_.slot(slot).subspan((pieces[i].begin - shard_.range().begin) * element, bytes)));
    piece_of_.push_back({index, bytes});
    ++sender.push->pieces_left;
  }
  if (sender.push->pieces_left == 0) finish_push(index);
}

void Server::obey(const Request& request) {
  if (request.flags & Request::kKeep) {
    to_keep_ = request.share.id;
    keep_at_ = consistency_->collects() ? request.version : 0;
    updated();
    return;
  }
  std::vector<Decided> decided(static_cast<size_t>(request.count));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span<Decided>(decided));
  Handle handle = node_.endpoint().receive(first_server_, decision_tag(request.version), bytes);
  const Completion completion = node_.endpoint().wait(handle, node_.timeout_s());
  if (completion.state != State::kDone || completion.bytes != bytes.size())
    throw FabricError(FabricError::Kind::kProtocol, first_server_,
                      "the first server announced a decision and did not send it");
  decisions_[request.version] = std::move(decided);
  try_to_close();
}

}  // namespace tutti::parameter_server
