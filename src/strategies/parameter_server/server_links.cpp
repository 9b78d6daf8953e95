#include "strategies/parameter_server/server_links.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "core/error.h"
#include "strategies/parameter_server/layout.h"

namespace tutti::parameter_server {
namespace {

// All servers that owe a reply are named, because none of the replies came.
template <class Links>
[[noreturn]] void throw_late(const Links& links, double timeout_s) {
  std::string late;
  Rank first = kAnyRank;
  for (const Link& link : links) {
    if (!link.awaits()) continue;
    late += fmt::format("{}rank {}", late.empty() ? "" : ", ", link.server());
    if (first == kAnyRank) first = link.server();
  }
  throw FabricError(FabricError::Kind::kTimedOut, first,
                    fmt::format("no reply of a server for {} s ({}); if it is only slow, raise "
                                "cluster.timeout",
                                timeout_s, late));
}

}  // namespace

ServerLinks::ServerLinks(Context& context, const Config& config, std::span<float> incoming,
                         StepRows& rows, Repeat repeat)
    : context_(context),
      ring_(context.node, static_cast<Rank>(context.cluster.workers), config),
      rows_(rows),
      repeat_(std::move(repeat)) {
  auto shards = detail_of<ServerDetail>(context.plan).shards;
  // Rows go by their keys.
  if (context.model.architecture().row_width > 0) shards.assign(shards.size(), {0, 0});
  for (size_t i = 0; i < shards.size(); ++i)
    links_.emplace_back(context, config, ring_, static_cast<int>(i), shards[i], incoming);
}

void ServerLinks::finish_sending() {
  for (Link& link : links_) link.finish_sending();
}

void ServerLinks::read() {
  context_.arithmetic().perform([&] {
    for (const Link& link : links_) link.read(context_.model.parameters());
  });
}

void ServerLinks::leave() {
  try {
    for (Link& link : links_) {
      Request leaving;
      leaving.flags = Request::kLeave;
      link.request(leaving);
    }
    finish_sending();
  } catch (const FabricError& error) {  // the reason to leave is the other one
    context_.log.warn(error.what());
  }
}

// With replicas it wants an answer: a server that takes over must know of it as well.
void ServerLinks::say_goodbye(bool answered) {
  Request goodbye;
  goodbye.flags = Request::kGoodbye;
  if (answered) goodbye.flags |= Request::kPull | Request::kHeaderOnly;
  for (Link& link : links_) link.request(goodbye);
  if (!answered) return finish_sending();
  // Nothing depends on it any more: whose end is not heard of is left behind.
  constexpr double kFarewell_s = 2;
  try {
    await(kFarewell_s);
  } catch (const FabricError& error) {
    context_.log.warn(error.what());
  }
}

// With `headers_only` the parameters may come later.
void ServerLinks::await(double timeout_s, bool headers_only) {
  struct Owner {
    Link* link;
    size_t index;
  };
  constexpr size_t kNotice = SIZE_MAX;  // not a reply, but what servers say about the chain
  std::vector<Handle> handles;
  std::vector<Owner> owners;
  const auto add = [&](Link& link) {
    for (size_t i = 0; i < link.handles().size(); ++i) {
      if (!link.handles()[i].pending() || (headers_only && i > 0)) continue;
      handles.push_back(std::move(link.handles()[i]));
      owners.push_back({&link, i});
    }
  };
  const auto drop = [&](const Link& link) {  // replies that will not come
    for (size_t i = 0; i < handles.size(); ++i)
      if (owners[i].link == &link && owners[i].index != kNotice && handles[i].pending())
        handles[i] = Handle();
  };
  const auto swap_notices = [&] {  // with the links, which use them when they talk to others
    for (size_t i = 0; i < handles.size(); ++i)
      if (owners[i].index == kNotice) std::swap(handles[i], owners[i].link->notice());
  };
  size_t awaited = 0;
  for (Link& link : links_)
    if (headers_only ? link.awaits_header() : link.awaits()) {
      add(link);
      if (link.has_heirs()) {
        handles.emplace_back();
        owners.push_back({&link, kNotice});
      }
      ++awaited;
    }
  swap_notices();
  PhaseScope scope(context_.watch, Phase::kWait);
  while (awaited > 0) {
    const auto [i, completion] = context_.node.endpoint().wait_any(handles, timeout_s);
    if (completion.state == State::kTimedOut) throw_late(links_, timeout_s);
    scope.change(Phase::kCommunicate);
    Link& link = *owners[i].link;
    if (owners[i].index == kNotice) {
      const bool turned = link.noticed(completion);
      std::swap(handles[i], link.notice());
      if (!turned || !link.awaits()) continue;
      drop(link);
      add(link);
      continue;
    }
    const bool lost = completion.state == State::kPeerLost && link.has_heirs();
    if (!lost && !link.ended(owners[i].index, completion) && !headers_only) continue;
    drop(link);
    if (!lost && link.reply().kind != Reply::kRepeat) {
      --awaited;
      continue;
    }
    swap_notices();
    lost ? link.turn_to_heir(completion.peer) : repeat_(link);
    swap_notices();
    add(link);
  }
  swap_notices();
  rows_.record(coordinator().reply().samples);
}

}  // namespace tutti::parameter_server
