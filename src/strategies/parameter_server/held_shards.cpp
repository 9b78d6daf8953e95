#include "strategies/parameter_server/held_shards.h"

#include <algorithm>
#include <utility>

#include "strategies/parameter_server/layout.h"

namespace tutti::parameter_server {
namespace {

// How long it takes at most until everybody has heard of a chain that was changed before all that
// are known to be in it were lost.
constexpr double kNews_s = 2;

}  // namespace

HeldShards::HeldShards(Context& context, const Config& config, const Ring& ring, Inbox& inbox,
                       bool joins_late, Server::Publish publish, Replication::Tell tell)
    : context_(context),
      config_(config),
      ring_(ring),
      inbox_(inbox),
      publish_(std::move(publish)),
      tell_(std::move(tell)) {
  const Rank self = context.node.endpoint().rank();
  for (const Range range : detail_of<ServerDetail>(context.plan).shards)
    sizes_.push_back(range.size());
  for (int shard = 0; shard < ring.shards(); ++shard) {
    const Order& order = known_.emplace_back(ring.first_order(shard));
    const bool has_part = std::any_of(order.members.begin(), order.members.end(),
                                      [&](const Member& member) { return member.rank == self; });
    if (has_part && !(joins_late && config.replicas > 0)) add(shard, order);
  }
  if (joins_late) aim();
}

Server& HeldShards::add(int shard, Order order) {
  servers_[shard] = std::make_unique<Own>();
  Own& added = *servers_[shard];
  Recorder& counts = config_.replicas > 0 ? added.recorder : context_.recorder;
  added.context.reset(new Context{context_.node, context_.plan, context_.task, context_.cluster,
                                  context_.optimizer, context_.data, context_.model,
                                  context_.window, context_.watch, counts, context_.log,
                                  context_.members, context_.folder});
  added.server = std::make_unique<Server>(*added.context, context_.recorder, config_, ring_, shard,
                                          std::move(order), inbox_, publish_, tell_);
  return *added.server;
}

Server* HeldShards::find(int shard) {
  const auto found = servers_.find(shard);
  return found == servers_.end() ? nullptr : found->second->server.get();
}

std::vector<Server*> HeldShards::all() const {
  std::vector<Server*> servers;
  for (const auto& [shard, own] : servers_) servers.push_back(own->server.get());
  return servers;
}

bool HeldShards::all_join() const {
  return std::all_of(servers_.begin(), servers_.end(), [](const auto& each) {
    return each.second->server->replication().is_joining();
  });
}

std::vector<Member> HeldShards::holders(int shard) {
  const Server* server = find(shard);
  const bool has_part = server && server->replication().has_part();
  return ring_.left_of(has_part ? server->replication().chain().order().members
                                : known_[static_cast<size_t>(shard)].members);
}

void HeldShards::learn(const Notice& notice) {
  Order& known = known_[static_cast<size_t>(notice.shard)];
  if (notice.epoch >= known.epoch) known = notice.order();
}

void HeldShards::rebalance() {
  if (target_.empty()) return;  // nobody was ever lost
  for (size_t shard = 0; shard < target_.size(); ++shard)
    if (Server* server = find(static_cast<int>(shard))) server->rebalance(target_[shard]);
  // A chain may have been changed by members that are lost now, and its news be on the way.
  const double now_s = context_.node.clock().now();
  bool all_held = true;
  for (int shard = 0; shard < ring_.shards(); ++shard)
    if (holders(shard).empty()) {
      all_held = false;
      if (unheld_since_s_ >= 0 && now_s - unheld_since_s_ > kNews_s)
        throw_all_lost(ring_.first_order(shard).members.front().rank);
    }
  if (all_held)
    unheld_since_s_ = -1;
  else if (unheld_since_s_ < 0)
    unheld_since_s_ = now_s;
}

void HeldShards::remove_retired() {
  for (auto it = servers_.begin(); it != servers_.end();) {
    const Replication& replication = it->second->server->replication();
    if (replication.has_part() || replication.is_joining()) {
      ++it;
      continue;
    }
    known_[static_cast<size_t>(it->first)] = replication.chain().order();
    const int shard = it->first;
    inbox_.forget([&](const Arrival& arrival) { return arrival.shard == shard; });
    it = servers_.erase(it);
  }
}

void HeldShards::report() {
  if (config_.replicas == 0) return;
  for (const auto& [shard, own] : servers_) {
    if (!own->server->replication().leads()) continue;
    context_.recorder.count("shards_served");
    context_.recorder.count("parameters_served", static_cast<int64_t>(elements(shard)));
    for (const auto& [name, count] : own->recorder.counters()) context_.recorder.count(name, count);
    for (const EvaluationRow& row : own->recorder.evaluations()) context_.recorder.keep(row);
  }
}

}  // namespace tutti::parameter_server
