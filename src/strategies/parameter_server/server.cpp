#include "strategies/parameter_server/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.h"
#include "strategies/parameter_server/layout.h"

namespace tutti::parameter_server {
namespace {

Range range_of(const Context& context, int shard) {
  if (context.model.architecture().row_width > 0) return {0, 0};  // its rows go by their keys
  const auto& shards = detail_of<ServerDetail>(context.plan).shards;
  return shards[static_cast<size_t>(shard)];
}

StateSettings settings_of(const Context& context, const Config& config, int shard) {
  return {.config = config,
          .task = context.task,
          .optimizer = context.optimizer,
          .shard = shard,
          .workers = static_cast<int>(context.cluster.workers),
          .elements = range_of(context, shard).size(),
          .row_width = context.model.architecture().row_width,
          .training = context.data.splits.train.size(),
          .validation = context.data.splits.validation.size(),
          .classification = context.model.architecture().classification,
          .arithmetic = context.arithmetic(),
          .started_s = context.node.clock().now()};
}

}  // namespace

Server::Server(Context& context, Recorder& local, const Config& config, const Ring& ring, int shard,
               Order order, Inbox& inbox, Publish publish, Replication::Tell tell)
    : context_(context),
      local_(local),
      publish_(std::move(publish)),
      state_(settings_of(context, config, shard)),
      shard_(context, range_of(context, shard)),
      held_(shard_, state_.workers().size()),
      updates_(context, shard_, held_),
      snapshots_(context, local, config, ring.shards(), state_, shard_),
      replier_(context, ring, shard, inbox, shard_, state_.consistency().lockstep()),
      replication_(context.node, local, ring, shard, std::move(order), inbox, *this,
                   std::move(tell)),
      receiver_(context, local, ring, inbox, {state_, shard_, held_, replier_, replication_}) {
  if (!config.resume.empty() && !replication_.is_joining()) snapshots_.resume();
}

// Carries out what one input has brought about.
struct Server::Performer {
  Server& server;
  Chain::Item& item;
  bool replayed;

  bool passes_on() const { return server.replication_.chain().has_successor(); }
  void operator()(const output::Update& update) {
    if (replayed) return server.updates_.follow(update, item);
    item.entry.updated = 1;
    server.updates_.update(update, item, passes_on());
  }
  void operator()(const output::Revise& revision) {
    if (replayed) return server.updates_.follow(revision, item);
    item.entry.updated = 1;
    server.updates_.revise(revision, item, passes_on());
  }
  void operator()(const output::Applied& applied) {
    if (replayed) return;
    server.local_.applied({.round = applied.round,
                           .staleness = applied.staleness,
                           .age_s = server.context_.node.clock().now() - applied.read_s});
  }
  void operator()(const output::Discard& discard) { server.held_.discard(discard.gradient); }
  void operator()(const output::Secure& secure) { server.held_.secure(secure.worker); }
  void operator()(const output::TakeKeys& take) {
    const std::optional<size_t> slot = server.held_.slot_of(take.keys);
    if (!slot) return;
    server.replier_.take_keys(take.keys.worker, server.shard_.rows()->keys(*slot));
    server.held_.discard(take.keys);
  }
  void operator()(output::Send& send) {
    if (send.reply.kind == Reply::kRefused) {  // it may wait for the answer to a later request
      server.replier_.hear(send.worker, !replayed);
      send.reply.sequence =
          std::max(send.reply.sequence, server.receiver_.last_sequence(send.worker));
    }
    server.replier_.send(send, server.replication_.chain().last());
  }
  void operator()(const output::Keep&) { server.shard_.keep(); }
  void operator()(const output::Snapshot& due) {
    if (server.replication_.leads()) server.snapshots_.write(due);
  }
  void operator()(const output::Count& count) {
    server.context_.recorder.count(count.name, count.times);
  }
  void operator()(const output::Measured& measured) {
    server.context_.recorder.keep(measured.row);
    if (!replayed) server.tell_measured();
  }
  void operator()(const output::Abandon& abandon) { server.receiver_.abandon(abandon.worker); }
  void operator()(const output::Welcome& welcome) {
    server.receiver_.forget(welcome.worker);
    server.replier_.forget(welcome.worker);
  }
  void operator()(const output::Warn& warning) { server.context_.log.warn(warning.text); }
};

void Server::execute(Chain::Item& item, bool replayed) {
  const Entry& entry = item.entry;
  if (entry.kind == Entry::kRequest) {
    const uint64_t sequence = entry.request.sequence;
    if (!replayed)
      if (const std::optional<size_t> slot = receiver_.take_slot(entry.worker, sequence))
        held_.hold({entry.worker, sequence}, *slot);
    if (entry.request.flags & Request::kPull) replier_.hear(entry.worker, !replayed);
  }
  RowShard* const rows = shard_.rows();
  std::vector<Output> outputs =
      state_.apply({.entry = entry,
                    .decided = item.decided,
                    .now_s = context_.node.clock().now(),
                    .replayed = replayed,
                    .absent = held_.absent(),
                    .rows = rows ? static_cast<int64_t>(rows->table().size()) : 0});
  Performer performer{*this, item, replayed};
  for (Output& output : outputs) std::visit(performer, output);
}

bool Server::over() const {
  bool somebody = false;
  for (const WorkerRecord& worker : state_.workers()) {
    if (worker.present && !worker.done) return false;
    somebody = somebody || worker.done;
  }
  if (!somebody && !diverged())
    throw FabricError(FabricError::Kind::kPeerLost, 0,
                      "every worker is lost or was refused: nobody is left to train");
  return true;
}

// A worker that has not asked this server since it took over may not have been answered.
bool Server::settled() const {
  return over() && replication_.is_settled() && receiver_.has_heard_everybody();
}

std::vector<int> Server::latecomers() const {
  std::vector<int> late;
  if (!replication_.leads()) return late;
  const Membership& members = context_.node.membership();
  for (int index = 0; index < state_.workers().size(); ++index) {
    const WorkerRecord& worker = state_.workers()[index];
    if (members.alive(index) &&
        (!worker.present || !worker.done || worker.incarnation != members.incarnation(index)))
      late.push_back(index);
  }
  return late;
}

void Server::release(uint64_t acknowledged) {
  replier_.release(acknowledged);
  if (!replication_.leads()) return;
  for (const Bulletin& bulletin : state_.versions().bulletins())
    if (bulletin.index > published_ && bulletin.index <= acknowledged)
      publish_(bulletin.request, bulletin.decided);
  published_ = std::max(published_, acknowledged);
}

void Server::publish_again() {
  published_ = 0;
  replication_.release();
}

void Server::rebalance(const std::vector<Member>& target) {
  // Near the end nobody gains by it, and some have left.
  const bool ends = std::any_of(state_.workers().begin(), state_.workers().end(),
                                [](const WorkerRecord& worker) { return worker.finished; });
  if (ends || closed() || diverged()) return;
  // Gradients of an open step would have to be sent once more to another head.
  replication_.rebalance(target, !state_.versions().gathered().empty());
}

void Server::piece_sent(const Arrival& arrival, const Completion& completion) {
  replier_.piece_sent(arrival, completion, state_.workers()[arrival.peer].present);
}

// It is in the state of the head before, up to the last entry that reached it; what came after that
// nobody has seen the effect of. It lacks two things that only the head had: gradients that were
// gathered for a step that is open, and connections. Workers notice the loss by themselves and say
// again what was not answered.
void Server::take_over() {
  context_.log.warn(fmt::format("takes over shard {} at version {}", state_.settings().shard,
                                state_.versions().version()));
  std::vector<GradientName> names;
  for (const Gathered& gathered : state_.versions().gathered()) names.push_back(gathered.name());
  held_.lack(std::move(names));
  receiver_.take_over();
  tell_measured();  // the head before may not have come to it
}

void Server::tell_measured() {
  const std::vector<EvaluationRow>& rows = context_.recorder.evaluations();
  for (; told_ < rows.size(); ++told_) local_.tell(rows[told_]);
}

void Server::hand_over() {
  context_.log.info(fmt::format("hands over shard {} at version {}", state_.settings().shard,
                                state_.versions().version()));
  receiver_.hand_over();
  replier_.hand_over();
  held_.discard_all();
}

Buffer<float> Server::save(Archive& archive) {
  state_.archive(archive);
  archive_books(archive);
  return updates_.save(archive);
}

void Server::restore(Archive& archive, std::span<const float> values) {
  state_.archive(archive);
  archive_books(archive);
  updates_.restore(archive, values);
  context_.log.info(fmt::format("has shard {} from version {} on", state_.settings().shard,
                                state_.versions().version()));
}

// What every replica counts alike.
void Server::archive_books(Archive& archive) {
  std::map<std::string, int64_t> counters = context_.recorder.counters();
  std::vector<EvaluationRow> evaluations = context_.recorder.evaluations();
  archive(counters, evaluations);
  if (!archive.reading()) return;
  context_.recorder = Recorder();
  for (const auto& [name, count] : counters) context_.recorder.count(name, count);
  for (const EvaluationRow& row : evaluations) context_.recorder.keep(row);
}

void Server::finish_sending() {
  replier_.finish_sending();
  replication_.finish_sending();
}

}  // namespace tutti::parameter_server
