#include "fabric/virtual/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"

namespace tutti::simulation {
namespace {

// What ends so close together ends together, as in the rest of the simulator.
constexpr double kMoment_s = 1e-9;
constexpr double kRounding = 1e-12;

bool differs(double a, double b) { return std::abs(a - b) > kRounding * std::max(a, b); }

}  // namespace

Network::Link Network::add_link(double bandwidth) {
  links_.emplace_back().bandwidth = bandwidth;
  return static_cast<Link>(links_.size() - 1);
}

void Network::start(uint64_t id, const Route& route, double bytes, double now_s) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<Index>(pool_.size()));
    pool_.emplace_back();
  }
  const Index index = unused_.back();
  unused_.pop_back();
  const bool added = flows_.emplace(id, index).second;
  TUTTI_CHECK(added && (!route.links.empty() || std::isfinite(route.bound)));
  Flow& flow = pool_[index];
  flow = {};
  flow.id = id;
  flow.order = ++started_;
  flow.links = route.links;
  flow.weight = 1 / route.penalty;
  flow.bound = route.bound;
  flow.bytes = bytes;
  flow.since_s = now_s;
  flow.next_s = now_s + route.latency_s;
  push(index);
}

double Network::left_of(const Flow& flow, double now_s) const {
  return std::max(0.0, flow.bytes - flow.rate * (now_s - flow.since_s));
}

double Network::stop(uint64_t id, double now_s) {
  const auto found = flows_.find(id);
  const Index index = found->second;
  const double left = left_of(pool_[index], now_s);
  flows_.erase(found);
  pop(index);
  leave(index);
  return left;
}

double Network::next_s(double now_s) {
  settle(now_s);
  return heap_.empty() ? kNever : pool_[heap_.front()].next_s;
}

std::vector<uint64_t> Network::advance(double now_s) {
  std::vector<uint64_t> ended;
  settle(now_s);
  while (!heap_.empty() && pool_[heap_.front()].next_s <= now_s + kMoment_s) {
    const Index index = heap_.front();
    Flow& flow = pool_[index];
    pop(index);
    if (!flow.moves) {
      enter(index, now_s);
      continue;
    }
    ended.push_back(flow.id);
    flows_.erase(flow.id);
    leave(index);
  }
  return ended;
}

double Network::rate(uint64_t id) const { return pool_[flows_.at(id)].rate; }

void Network::enter(Index index, double now_s) {
  Flow& flow = pool_[index];
  flow.moves = true;
  flow.since_s = now_s;
  flow.next_s = kNever;
  for (const Link link : flow.links) {
    flow.places.push_back(static_cast<uint32_t>(links_[link].flows.size()));
    links_[link].flows.push_back(index);
    touch(link);
  }
  if (flow.links.empty()) {
    flow.rate = flow.bound;
    flow.next_s = now_s + flow.bytes / flow.rate;
  }
  push(index);
}

void Network::leave(Index index) {
  Flow& flow = pool_[index];
  for (size_t i = 0; i < flow.places.size(); ++i) {
    LinkState& link = links_[flow.links[i]];
    const Index last = link.flows.back();
    link.flows[flow.places[i]] = last;
    link.flows.pop_back();
    Flow& moved = pool_[last];
    for (size_t k = 0; k < moved.links.size(); ++k)
      if (moved.links[k] == flow.links[i]) moved.places[k] = flow.places[i];
    touch(flow.links[i]);
  }
  flow.places.clear();
  unused_.push_back(index);
}

void Network::touch(Link link) {
  if (std::exchange(links_[link].solves, true)) return;
  area_.push_back(link);
}

// Solves what has changed, and as much around it as that changes.
void Network::settle(double now_s) {
  if (area_.empty()) return;
  do fill();
  while (spread());
  apply(now_s);
}

// The lowest level of other bottlenecks on its way.
double Network::cap_of(const Flow& flow) const {
  double level = flow.bound / flow.weight;
  for (const Link link : flow.links)
    if (!links_[link].solves) level = std::min(level, links_[link].level);
  return level;
}

void Network::freeze(Flow& flow, double level) {
  flow.frozen = true;
  flow.solved = level * flow.weight;
  for (const Link link : flow.links) {
    LinkState& state = links_[link];
    if (!state.solves) continue;
    state.left = std::max(0.0, state.left - flow.solved);
    state.weight -= flow.weight;
    --state.count;
  }
}

// Raises the level of all flows of the area together; those stop whose cap is reached, and those of
// a link that is full.
void Network::fill() {
  for (const Index index : free_) pool_[index].free = false;
  free_.clear();
  capped_.clear();
  for (const Link link : area_) {
    LinkState& state = links_[link];
    state.left = state.bandwidth;
    state.weight = 0;
    state.count = static_cast<uint32_t>(state.flows.size());
    state.level = kNever;
    for (const Index index : state.flows) {
      Flow& flow = pool_[index];
      state.weight += flow.weight;
      if (std::exchange(flow.free, true)) continue;
      flow.frozen = false;
      free_.push_back(index);
      const double cap = cap_of(flow);
      if (cap < kNever) capped_.push_back({cap, index});
    }
  }
  std::sort(capped_.begin(), capped_.end(), [&](const Capped& a, const Capped& b) {
    return a.level != b.level ? a.level < b.level : pool_[a.flow].order < pool_[b.flow].order;
  });
  for (size_t next = 0;;) {
    double lowest = kNever;
    for (const Link link : area_)
      if (links_[link].count > 0)
        lowest = std::min(lowest, links_[link].left / links_[link].weight);
    bool stopped = false;
    for (; next < capped_.size() && capped_[next].level <= lowest; ++next) {
      Flow& flow = pool_[capped_[next].flow];
      if (flow.frozen) continue;
      freeze(flow, capped_[next].level);
      stopped = true;
    }
    if (stopped) continue;
    if (lowest == kNever) return;
    for (const Link link : area_) {
      LinkState& state = links_[link];
      if (state.count == 0 || state.left / state.weight > lowest * (1 + kRounding)) continue;
      state.level = lowest;
      for (const Index index : state.flows)
        if (!pool_[index].frozen) freeze(pool_[index], lowest);
    }
  }
}

// Other links that have to be solved with these: bottlenecks whose flows have changed here, and
// those that would be overfull. False: there are none.
bool Network::spread() {
  beside_.clear();
  const size_t before = area_.size();
  for (const Index index : free_) {
    const Flow& flow = pool_[index];
    if (!differs(flow.solved, flow.rate)) continue;
    for (const Link link : flow.links) {
      LinkState& state = links_[link];
      if (state.solves) continue;
      if (state.level < kNever) {
        touch(link);
        continue;
      }
      beside_.push_back(link);
      state.more += flow.solved - flow.rate;
    }
  }
  for (const Link link : beside_) {
    LinkState& state = links_[link];
    if (!state.solves && state.used + state.more > state.bandwidth * (1 + 1e-9)) touch(link);
  }
  for (const Link link : beside_) links_[link].more = 0;
  return area_.size() > before;
}

void Network::apply(double now_s) {
  for (const Index index : free_) {
    Flow& flow = pool_[index];
    flow.free = false;
    if (!differs(flow.solved, flow.rate)) continue;
    flow.bytes = left_of(flow, now_s);
    flow.since_s = now_s;
    for (const Link link : flow.links) links_[link].used += flow.solved - flow.rate;
    flow.rate = flow.solved;
    flow.next_s = now_s + flow.bytes / flow.rate;
    sift(flow.in_heap);
  }
  free_.clear();
  for (const Link link : area_) {
    LinkState& state = links_[link];
    state.solves = false;
    state.used = 0;
    for (const Index index : state.flows) state.used += pool_[index].rate;
  }
  area_.clear();
}

bool Network::earlier(Index a, Index b) const {
  const Flow &x = pool_[a], &y = pool_[b];
  return x.next_s != y.next_s ? x.next_s < y.next_s : x.order < y.order;
}

void Network::put(size_t place, Index index) {
  heap_[place] = index;
  pool_[index].in_heap = place;
}

void Network::push(Index index) {
  heap_.push_back(index);
  pool_[index].in_heap = heap_.size() - 1;
  sift(heap_.size() - 1);
}

void Network::pop(Index index) {
  const size_t place = pool_[index].in_heap;
  const Index last = heap_.back();
  heap_.pop_back();
  if (last == index) return;
  put(place, last);
  sift(place);
}

// Up or down, to where the flow at this place belongs.
void Network::sift(size_t place) {
  const Index index = heap_[place];
  for (; place > 0 && earlier(index, heap_[(place - 1) / 2]); place = (place - 1) / 2)
    put(place, heap_[(place - 1) / 2]);
  for (;;) {
    size_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && earlier(heap_[child + 1], heap_[child])) ++child;
    if (!earlier(heap_[child], index)) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, index);
}

}  // namespace tutti::simulation
