#include "fabric/virtual/shared_links.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace tutti::simulation {
namespace {

// Messages that end so close together end together, as in the rest of the simulator.
constexpr double kMoment_s = 1e-9;
// Differences of levels that are nothing but rounding: a sum of some thousand terms is off by less.
constexpr double kRounding = 1e-12;
// How much more than its bandwidth a link may seem to carry: `used` is a sum of changes.
constexpr double kOverfull = 1e-9;

bool differs(double a, double b) { return std::abs(a - b) > kRounding * std::max(a, b); }

}  // namespace

SharedLinks::Link SharedLinks::add_link(double bandwidth) {
  links_.emplace_back().bandwidth = bandwidth;
  return static_cast<Link>(links_.size() - 1);
}

SharedLinks::Index SharedLinks::take_index() {
  if (unused_.empty()) {
    pool_.emplace_back();
    return static_cast<Index>(pool_.size() - 1);
  }
  const Index index = unused_.back();
  unused_.pop_back();
  pool_[index] = {};
  return index;
}

void SharedLinks::start(uint64_t id, const Route& route, double bytes, double now_s) {
  TUTTI_CHECK(route.length > 0 || route.bound > 0);
  const Index index = take_index();
  const bool added = flows_.emplace(id, index).second;
  TUTTI_CHECK(added);
  Flow& flow = pool_[index];
  flow.id = id;
  flow.order = ++started_;
  flow.route = route;
  flow.bytes = bytes;
  flow.moves_s = now_s + route.latency_s;
  flow.end = route.length > 0 ? flow.moves_s : flow.moves_s + bytes / route.bound;
  waiting_.emplace(flow.end, index);
}

double SharedLinks::stop(uint64_t id, double now_s) {
  const auto found = flows_.find(id);
  const Index index = found->second;
  const Flow& flow = pool_[index];
  double left = flow.bytes;
  if (flow.bottleneck != kNowhere)
    left = (flow.end - progress_of(links_[flow.bottleneck], now_s)) * flow.route.weight;
  else if (flow.route.length == 0 && now_s > flow.moves_s)
    left = (flow.end - now_s) * flow.route.bound;
  flows_.erase(found);
  leave(index);
  return std::clamp(left, 0.0, flow.bytes);
}

double SharedLinks::next_s(double now_s) {
  settle(now_s);
  double next_s = kNever;
  if (!waiting_.empty()) next_s = waiting_.begin()->first;
  if (!busy_.empty()) next_s = std::min(next_s, busy_.begin()->first);
  return next_s;
}

std::vector<uint64_t> SharedLinks::advance(double now_s) {
  settle(now_s);
  const double until_s = now_s + kMoment_s;
  std::vector<Index> moving, ended;
  while (!waiting_.empty() && waiting_.begin()->first <= until_s) {
    const Index index = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    (pool_[index].route.length > 0 ? moving : ended).push_back(index);
  }
  while (!busy_.empty() && busy_.begin()->first <= until_s) {
    LinkState& link = links_[busy_.begin()->second];
    ended.push_back(link.ends.begin()->second);
    link.ends.erase(link.ends.begin());
    expect(busy_.begin()->second);
  }
  const auto started_before = [&](Index a, Index b) { return pool_[a].order < pool_[b].order; };
  std::sort(ended.begin(), ended.end(), started_before);
  std::vector<uint64_t> ids;
  for (const Index index : ended) {
    ids.push_back(pool_[index].id);
    flows_.erase(pool_[index].id);
    leave(index);
  }
  for (const Index index : moving) enter(index);
  return ids;
}

double SharedLinks::rate(uint64_t id) const {
  const Flow& flow = pool_[flows_.at(id)];
  return level_of(flow) * flow.route.weight;
}

// Its level, 0 while it does not move.
double SharedLinks::level_of(const Flow& flow) const {
  return flow.bottleneck == kNowhere ? 0 : links_[flow.bottleneck].level;
}

double SharedLinks::progress_of(const LinkState& link, double now_s) const {
  return link.progress + link.level * (now_s - link.since_s);
}

void SharedLinks::enter(Index index) {
  Flow& flow = pool_[index];
  flow.crosses = true;
  for (size_t i = 0; i < flow.route.length; ++i) {
    LinkState& link = links_[flow.route.links[i]];
    flow.places[i] = static_cast<uint32_t>(link.flows.size());
    link.flows.push_back(index);
    touch(flow.route.links[i]);
  }
}

void SharedLinks::leave(Index index) {
  Flow& flow = pool_[index];
  unused_.push_back(index);
  if (!flow.crosses) {
    waiting_.erase({flow.end, index});
    return;
  }
  for (size_t i = 0; i < flow.route.length; ++i) {
    const Link link = flow.route.links[i];
    std::vector<Index>& flows = links_[link].flows;
    flows[flow.places[i]] = flows.back();
    const Route& moved = pool_[flows.back()].route;
    for (size_t k = 0; k < moved.length; ++k)
      if (moved.links[k] == link) pool_[flows.back()].places[k] = flow.places[i];
    flows.pop_back();
    touch(link);
  }
  if (flow.bottleneck == kNowhere) return;
  links_[flow.bottleneck].ends.erase({flow.end, index});
  expect(flow.bottleneck);
}

void SharedLinks::touch(Link link) {
  if (std::exchange(links_[link].solves, true)) return;
  area_.push_back(link);
}

// Solves what has changed, and as much around it as that changes.
void SharedLinks::settle(double now_s) {
  if (area_.empty()) return;
  do {
    open();
    fill();
  } while (spread());
  apply(now_s);
}

// Takes their levels from all flows of the area. What other links leave to them stays.
void SharedLinks::open() {
  for (const Index index : open_) pool_[index].open = false;
  open_.clear();
  limited_.clear();
  for (const Link solved : area_) {
    LinkState& state = links_[solved];
    state.left = state.bandwidth;
    state.weight = 0;
    state.count = static_cast<uint32_t>(state.flows.size());
    for (const Index index : state.flows) {
      Flow& flow = pool_[index];
      state.weight += flow.route.weight;
      if (std::exchange(flow.open, true)) continue;
      flow.limited = false;
      open_.push_back(index);
      Limited limit{kNever, index, kNowhere};
      for (size_t i = 0; i < flow.route.length; ++i) {
        const LinkState& other = links_[flow.route.links[i]];
        if (!other.solves && other.level < limit.level)
          limit = {other.level, index, flow.route.links[i]};
      }
      if (limit.link != kNowhere) limited_.push_back(limit);
    }
  }
  std::sort(limited_.begin(), limited_.end(), [&](const Limited& a, const Limited& b) {
    return a.level != b.level ? a.level < b.level : pool_[a.flow].order < pool_[b.flow].order;
  });
}

void SharedLinks::give(Flow& flow, double level, Link limit) {
  flow.limited = true;
  flow.level = level;
  flow.limit = limit;
  for (size_t i = 0; i < flow.route.length; ++i) {
    LinkState& link = links_[flow.route.links[i]];
    if (!link.solves) continue;
    link.left = std::max(0.0, link.left - level * flow.route.weight);
    link.weight -= flow.route.weight;
    --link.count;
  }
}

// Raises the level of all open flows together (Bertsekas and Gallager, "Data networks", 6.5.2):
// those stop that another link limits, and those of a link that is full.
void SharedLinks::fill() {
  for (size_t next = 0;;) {
    double lowest = kNever;
    for (const Link link : area_)
      if (links_[link].count > 0)
        lowest = std::min(lowest, links_[link].left / links_[link].weight);
    bool stopped = false;
    for (; next < limited_.size() && limited_[next].level <= lowest; ++next) {
      Flow& flow = pool_[limited_[next].flow];
      if (flow.limited) continue;
      give(flow, limited_[next].level, limited_[next].link);
      stopped = true;
    }
    if (stopped) continue;
    if (lowest == kNever) return;
    for (const Link full : area_) {
      const LinkState& link = links_[full];
      if (link.count == 0 || link.left / link.weight > lowest * (1 + kRounding)) continue;
      for (const Index index : link.flows)
        if (!pool_[index].limited) give(pool_[index], lowest, full);
    }
  }
}

// Adds the links that have to be solved with these: bottlenecks whose flows have changed here, and
// those that would be overfull. False: there are none.
bool SharedLinks::spread() {
  beside_.clear();
  const size_t before = area_.size();
  for (const Index index : open_) {
    const Flow& flow = pool_[index];
    const double level = level_of(flow);
    if (!differs(flow.level, level)) continue;
    for (size_t i = 0; i < flow.route.length; ++i) {
      LinkState& link = links_[flow.route.links[i]];
      if (link.solves) continue;
      if (link.level < kNever) {
        touch(flow.route.links[i]);
        continue;
      }
      if (link.more == 0) beside_.push_back(flow.route.links[i]);
      link.more += (flow.level - level) * flow.route.weight;
    }
  }
  for (const Link link : beside_) {
    LinkState& state = links_[link];
    if (!state.solves && state.used + state.more > state.bandwidth * (1 + kOverfull)) touch(link);
    state.more = 0;
  }
  return area_.size() > before;
}

// Makes the solution that of the links: from now on.
void SharedLinks::apply(double now_s) {
  for (const Index index : open_) {
    const Flow& flow = pool_[index];
    const double change = (flow.level - level_of(flow)) * flow.route.weight;
    for (size_t i = 0; i < flow.route.length; ++i)
      if (LinkState& link = links_[flow.route.links[i]]; !link.solves) link.used += change;
  }
  for (const Link link : area_) {
    LinkState& state = links_[link];
    if (state.ends.empty()) continue;
    state.progress = progress_of(state, now_s);
    state.since_s = now_s;
  }
  for (const Index index : open_) move(index, now_s);
  for (const Link link : area_) {
    LinkState& state = links_[link];
    state.solves = false;
    state.used = 0;
    state.level = kNever;
    for (const Index index : state.flows) {
      const Flow& flow = pool_[index];
      state.used += flow.level * flow.route.weight;
      if (flow.bottleneck == link) state.level = flow.level;
    }
    expect(link);
  }
  area_.clear();
}

// To the bottleneck that it has now, with the bytes that it has left.
void SharedLinks::move(Index index, double now_s) {
  Flow& flow = pool_[index];
  if (flow.bottleneck == flow.limit) return;
  double left = flow.bytes / flow.route.weight;
  if (flow.bottleneck != kNowhere) {
    LinkState& before = links_[flow.bottleneck];
    left = flow.end - progress_of(before, now_s);
    before.ends.erase({flow.end, index});
    if (!before.solves) expect(flow.bottleneck);
  }
  LinkState& after = links_[flow.limit];
  if (after.ends.empty()) {
    after.progress = 0;
    after.since_s = now_s;
  }
  flow.bottleneck = flow.limit;
  // A link without a level was no bottleneck until now, and its progress begins here.
  flow.end = left + (after.since_s == now_s ? after.progress : progress_of(after, now_s));
  after.ends.emplace(flow.end, index);
  if (!after.solves) expect(flow.limit);
}

// Says when the next of a link's flows ends.
void SharedLinks::expect(Link link) {
  LinkState& state = links_[link];
  if (state.next_s < kNever) busy_.erase({state.next_s, link});
  state.next_s = kNever;
  if (state.ends.empty()) return;
  state.next_s = state.since_s + (state.ends.begin()->first - state.progress) / state.level;
  busy_.emplace(state.next_s, link);
}

}  // namespace tutti::simulation
