#include "tests/strategies/parameter_server/shard_world.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti::parameter_server {
namespace {

bool has(const std::vector<GradientName>& names, const GradientName& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

int64_t count_of(const std::vector<GradientName>& names, int worker) {
  return std::count_if(names.begin(), names.end(),
                       [&](const GradientName& name) { return name.worker == worker; });
}

}  // namespace

StateSettings state_settings(const WorldSettings& world, int shard) {
  StateSettings settings;
  settings.config.servers = world.shards;
  settings.config.replicas = 1;
  settings.config.consistency = value_of(world.consistency, settings.config.consistency);
  settings.config.staleness = world.staleness;
  settings.config.backup = 1;
  settings.task.global_batch = 2 * world.workers;
  settings.task.epochs = 2;
  settings.task.max_steps = world.steps;
  settings.training = static_cast<size_t>(4 * world.workers);
  settings.validation = world.validation;
  settings.workers = world.workers;
  settings.shard = shard;
  settings.elements = 1;
  return settings;
}

std::vector<std::byte> bytes_of(ShardState& state) {
  Archive archive;
  state.archive(archive);
  return archive.take();
}

ShardWorld::ShardWorld(const WorldSettings& settings)
    : settings_(settings), shards_(static_cast<size_t>(settings.shards)) {
  bool collects = false;
  workers_.reserve(static_cast<size_t>(settings.workers));
  for (int index = 0; index < settings.shards; ++index) {
    Shard& shard = at(index);
    shard.state = std::make_unique<ShardState>(state_settings(settings, index));
    shard.copy.emplace();
    shard.copy->state = std::make_unique<ShardState>(state_settings(settings, index));
    shard.heard.assign(static_cast<size_t>(settings.workers), false);
    shard.replies.resize(static_cast<size_t>(settings.workers));
    collects = shard.state->consistency().collects();
  }
  for (int i = 0; i < settings.workers; ++i) {
    workers_.emplace_back(settings.shards, collects);
    workers_.back().begin();
  }
}

std::vector<Event> ShardWorld::events() const {
  std::vector<Event> events;
  for (int s = 0; s < settings_.shards; ++s) {
    const Shard& shard = at(s);
    if (shard.copy && !shard.items.empty()) events.push_back({Event::kReplicate, s, 0});
    if (!shard.bulletins.empty()) events.push_back({Event::kBulletin, s, 0});
    for (int w = 0; w < settings_.workers; ++w) {
      const bool present = shard.state->workers()[w].present;
      if (present && !worker(w).link(s).way.empty()) events.push_back({Event::kRequest, s, w});
      if (worker(w).alive() && !shard.replies[static_cast<size_t>(w)].empty())
        events.push_back({Event::kReply, s, w});
      if (present && !worker(w).alive()) events.push_back({Event::kNotice, s, w});
    }
  }
  return events;
}

bool ShardWorld::may_lose_worker() const { return !lost_worker_ && settings_.workers > 1; }

void ShardWorld::fail(const std::string& what) {
  if (broken_.empty()) broken_ = what;
}

void ShardWorld::happen(const Event& event) {
  try {
    if (event.kind == Event::kRequest) request(event.shard, event.worker);
    if (event.kind == Event::kReplicate) replicate(event.shard);
    if (event.kind == Event::kLoseServer) lose_server(event.shard);
    if (event.kind == Event::kReply) {
      std::deque<Reply>& replies = at(event.shard).replies[static_cast<size_t>(event.worker)];
      const Reply reply = replies.front();
      replies.pop_front();
      const std::string wrong = worker(event.worker).take(event.shard, reply);
      if (!wrong.empty()) fail(wrong);
    }
    if (event.kind == Event::kBulletin) {
      const Bulletin bulletin = at(event.shard).bulletins.front();
      at(event.shard).bulletins.pop_front();
      input(event.shard, {.kind = Entry::kBulletin, .request = bulletin.request},
            bulletin.decided);
    }
    if (event.kind == Event::kLoseWorker) {
      lost_worker_ = true;
      worker(event.worker).stop();
    }
    if (event.kind == Event::kNotice) {
      input(event.shard, {.kind = Entry::kLost, .worker = event.worker});
      worker(event.worker).link(event.shard).way.clear();
      take_over(event.shard);  // gradients that nobody will send again
    }
  } catch (const std::exception& error) {
    fail(error.what());
  }
}

void ShardWorld::request(int index, int w) {
  Shard& shard = at(index);
  ModelLink& link = worker(w).link(index);
  const Request request = link.way.front();
  link.way.pop_front();
  if (shard.state->has_executed(w, request.sequence) && !settings_.executes_again)
    return say_again(index, w, request);
  if (request.flags & Request::kPush) shard.held.push_back({w, request.sequence});
  if (request.flags & Request::kPull) shard.heard[static_cast<size_t>(w)] = true;
  input(index, {.kind = Entry::kRequest, .worker = w, .request = request});
}

// As receiver.cpp does.
void ShardWorld::say_again(int index, int w, const Request& request) {
  Shard& shard = at(index);
  const GradientName name{w, request.sequence};
  if (request.flags & Request::kPull) {
    const std::optional<Request>& pull = shard.state->workers()[w].pull;
    if (pull && pull->sequence == request.sequence) shard.heard[static_cast<size_t>(w)] = true;
    if (const auto send = shard.state->answer_again(w, request)) {
      shard.heard[static_cast<size_t>(w)] = true;
      check_bound(index, *send);
      shard.waiting.push_back({shard.last, *send});
      release(index);
    }
  }
  if (!(request.flags & Request::kPush)) return;
  ++resent_;
  if (!has(shard.absent, name)) return;
  std::erase(shard.absent, name);
  shard.held.push_back(name);
  input(index, {.kind = Entry::kDelivered, .worker = w});
}

void ShardWorld::input(int index, Entry entry, const std::vector<Decided>& decided) {
  Shard& shard = at(index);
  entry.shard = index;
  entry.index = ++shard.last;
  Item item{entry, decided, {}, {}};
  const auto outputs = shard.state->apply({.entry = item.entry,
                                           .decided = item.decided,
                                           .absent = shard.absent});
  perform(index, outputs, item);
  check_books(index, shard);
  if (settings_.keeps_inputs) shard.inputs.push_back({item.entry, decided});
  if (shard.copy) {
    if (settings_.compares_copies) item.state = bytes_of(*shard.state);
    shard.items.push_back(std::move(item));
  }
  release(index);
}

void ShardWorld::update(Memory& memory, const Output& output,
                        const std::vector<GradientName>& gradients) {
  if (const auto* update = std::get_if<output::Update>(&output)) {
    ++memory.updates;
    if (update->gradients != gradients) fail("an update of other gradients than at the head");
    for (const GradientName& name : gradients) {
      if (has(memory.applied, name) || has(memory.dropped, name))
        fail(fmt::format("push {} of worker {} is applied twice", name.sequence, name.worker));
      memory.applied.push_back(name);
    }
  }
  if (const auto* discard = std::get_if<output::Discard>(&output))
    if (!has(memory.applied, discard->gradient)) memory.dropped.push_back(discard->gradient);
}

void ShardWorld::perform(int index, const std::vector<Output>& outputs, Item& item) {
  Shard& shard = at(index);
  for (const Output& output : outputs) {
    if (const auto* done = std::get_if<output::Update>(&output)) {
      item.entry.updated = 1;
      item.update = done->gradients;
      for (const GradientName& name : done->gradients)
        if (!has(shard.held, name)) fail("an update of a gradient that is not here");
    }
    update(shard.memory, output, item.update);
    if (const auto* discard = std::get_if<output::Discard>(&output)) {
      std::erase(shard.held, discard->gradient);
      std::erase(shard.absent, discard->gradient);
    }
    const auto* send = std::get_if<output::Send>(&output);
    if (!send) continue;
    check_bound(index, *send);
    if (shard.heard[static_cast<size_t>(send->worker)])
      shard.waiting.push_back({shard.last, *send});
  }
}

void ShardWorld::replicate(int index) {
  Shard& shard = at(index);
  const Item item = std::move(shard.items.front());
  shard.items.pop_front();
  const auto outputs = shard.copy->state->apply(
      {.entry = item.entry, .decided = item.decided, .replayed = true});
  for (const Output& output : outputs) update(shard.copy->memory, output, item.update);
  check_books(index, *shard.copy);
  if (settings_.compares_copies && bytes_of(*shard.copy->state) != item.state)
    fail("a copy differs from its head after the same entries");
  shard.acknowledged = item.entry.index;
  release(index);
}

void ShardWorld::release(int index) {
  Shard& shard = at(index);
  if (!shard.copy) shard.acknowledged = shard.last;
  while (!shard.waiting.empty() && shard.waiting.front().index <= shard.acknowledged) {
    const output::Send& send = shard.waiting.front().send;
    if (worker(send.worker).alive())
      shard.replies[static_cast<size_t>(send.worker)].push_back(send.reply);
    shard.waiting.pop_front();
  }
  for (const Bulletin& bulletin : shard.state->versions().bulletins())
    if (bulletin.index > shard.published && bulletin.index <= shard.acknowledged)
      for (int other = 1; other < settings_.shards; ++other)
        at(other).bulletins.push_back(bulletin);
  shard.published = std::max(shard.published, shard.acknowledged);
}

void ShardWorld::lose_server(int home) {
  lost_server_ = true;
  Shard& shard = at(home);
  static_cast<Copy&>(shard) = std::move(*shard.copy);
  shard.copy.reset();
  shard.last = shard.acknowledged;
  if (settings_.keeps_inputs) shard.inputs.resize(shard.last);
  shard.items.clear();
  shard.waiting.clear();
  shard.held.clear();
  shard.absent.clear();
  shard.bulletins.clear();
  shard.heard.assign(shard.heard.size(), false);
  for (std::deque<Reply>& replies : shard.replies) replies.clear();
  for (const Gathered& gathered : shard.state->versions().gathered())
    shard.absent.push_back(gathered.name());
  for (ModelWorker& each : workers_)
    if (each.alive())
      each.turn(home);
    else
      each.link(home).way.clear();
  const int before = (home + settings_.shards - 1) % settings_.shards;
  if (before != home) {
    at(before).copy.reset();
    at(before).items.clear();
    release(before);
  }
  at(0).published = 0;  // a bulletin may have been lost with the server it was sent to
  release(0);
  take_over(home);
}

// Gradients that the head before had received from workers that are gone.
void ShardWorld::take_over(int index) {
  const std::vector<GradientName> absent = at(index).absent;
  for (const GradientName& name : absent) {
    if (at(index).state->workers()[name.worker].present) continue;
    Request push;
    push.sequence = name.sequence;
    input(index, {.kind = Entry::kForgotten, .worker = name.worker, .request = push});
  }
}

// Every push that was executed is applied, dropped or gathered, and only one of these.
void ShardWorld::check_books(int index, const Copy& copy) {
  const ShardState& state = *copy.state;
  for (int w = 0; w < settings_.workers; ++w) {
    const auto& gathered = state.versions().gathered();
    const int64_t open = std::count_if(gathered.begin(), gathered.end(),
                                       [&](const Gathered& one) { return one.worker == w; });
    const int64_t known =
        count_of(copy.memory.applied, w) + count_of(copy.memory.dropped, w) + open;
    if (known != state.workers()[w].clock)
      fail(fmt::format("shard {} knows {} pushes of worker {} and accounts for {}", index,
                       state.workers()[w].clock, w, known));
    if (state.workers()[w].clock > worker(w).link(index).pushes)
      fail(fmt::format("shard {} has more pushes of worker {} than it made", index, w));
  }
  if (copy.memory.updates != state.versions().version())
    fail(fmt::format("{} updates make version {}", copy.memory.updates,
                     state.versions().version()));
}

// Nobody reads parameters that lack more pushes of anybody than the bound allows.
void ShardWorld::check_bound(int index, const output::Send& send) {
  if (settings_.consistency != "ssp" || send.source != output::Send::kCurrent ||
      send.flags & Request::kFinal)
    return;
  const Shard& shard = at(index);
  const int64_t own = count_of(shard.memory.applied, send.worker);
  for (int w = 0; w < settings_.workers; ++w) {
    const WorkerRecord& other = shard.state->workers()[w];
    if (!other.present || other.finished) continue;
    if (own - count_of(shard.memory.applied, w) > settings_.staleness)
      fail(fmt::format("worker {} reads {} pushes ahead of worker {}", send.worker,
                       own - count_of(shard.memory.applied, w), w));
  }
}

std::string ShardWorld::broken_at_the_end() const {
  if (!broken_.empty()) return broken_;
  for (int w = 0; w < settings_.workers; ++w) {
    if (!worker(w).alive()) continue;
    if (!worker(w).done()) return fmt::format("worker {} waits forever", w);
    for (int s = 0; s < settings_.shards; ++s) {
      const Memory& memory = at(s).memory;
      const int64_t accounted = count_of(memory.applied, w) + count_of(memory.dropped, w);
      if (accounted != worker(w).link(s).pushes)
        return fmt::format("worker {} made {} pushes, {} of them count", w,
                           worker(w).link(s).pushes, accounted);
    }
  }
  // A step that does without late workers may also do without a lost one, or come once more.
  if (settings_.consistency != "bsp" &&
      (settings_.consistency != "backup" || lost_server_ || lost_worker_))
    return "";
  for (int s = 0; s < settings_.shards; ++s)
    if (at(s).state->versions().version() != settings_.steps)
      return fmt::format("shard {} ends with {} of {} steps", s,
                         at(s).state->versions().version(), settings_.steps);
  return "";
}

}  // namespace tutti::parameter_server
