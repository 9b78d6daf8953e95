#include "strategies/federated_averaging/workforce.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace tutti::federated_averaging {
namespace {

// How soon a lost worker is noticed that nobody else says anything about.
constexpr double kLookEvery_s = 0.1;

}  // namespace

Workforce::Workforce(Context& context, size_t size, Aggregation& aggregation, Listener& listener)
    : context_(context),
      node_(context.node),
      size_(size),
      aggregation_(aggregation),
      listener_(listener),
      workers_(static_cast<size_t>(context.cluster.workers)) {}

void Workforce::listen() {
  handles_.emplace_back();
  owner_of_.push_back(kAnyRank);
  receive_report();
}

void Workforce::end_round() {
  for (Worker& worker : workers_) worker.work.place.reset();
}

std::vector<Rank> Workforce::idle() const {
  std::vector<Rank> ranks;
  for (size_t i = 0; i < workers_.size(); ++i)
    if (workers_[i].state == kIdle) ranks.push_back(static_cast<Rank>(i));
  return ranks;
}

bool Workforce::any(std::initializer_list<Standing> states) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
    return std::find(states.begin(), states.end(), worker.state) != states.end();
  });
}

size_t Workforce::count_present() const {
  return static_cast<size_t>(
      std::count_if(workers_.begin(), workers_.end(), [](const Worker& worker) {
        return worker.state == kIdle || worker.state == kBusy;
      }));
}

void Workforce::receive_report() {
  handles_[0] = node_.endpoint().receive(kAnyRank, report_tag(),
                                         std::as_writable_bytes(std::span<Report>(&incoming_, 1)));
}

void Workforce::wait_for_news(double until_s) {
  PhaseScope scope(context_.watch, Phase::kWait);
  const double timeout_s = std::clamp(until_s - node_.clock().now(), 0.0, kLookEvery_s);
  const auto [index, completion] = node_.endpoint().wait_any(handles_, timeout_s);
  scope.change(Phase::kCommunicate);
  if (completion.state != State::kTimedOut) {
    silent_s_ = 0;
    if (index > 0) {
      part_arrived(index, completion);
    } else {
      const Report report = incoming_;
      receive_report();
      look_at_members();  // the sender may have just come back
      if (completion.state == State::kDone || completion.state == State::kTruncated)
        handle(completion.peer, report, completion.bytes);
    }
  } else if (!any({kAbsent, kIdle, kBusy, kDone})) {
    // Only now: what they had said before they went is heard first.
    throw FabricError(FabricError::Kind::kPeerLost, 0,
                      "every worker is lost or was refused: nobody is left to train");
  } else if ((silent_s_ += timeout_s) > node_.timeout_s()) {
    throw FabricError(FabricError::Kind::kTimedOut, kAnyRank,
                      fmt::format("no worker sent anything for {} s; if clients only take long, "
                                  "raise cluster.timeout",
                                  node_.timeout_s()));
  }
  look_at_members();
}

void Workforce::look_at_members() {
  while (const std::optional<MemberEvent> event = node_.membership().next_event()) {
    if (event->rank < 0 || event->rank >= static_cast<Rank>(workers_.size())) continue;
    if (event->kind == MemberEvent::Kind::kJoined) {
      remove(event->rank);  // its predecessor, should nobody have said that it is gone
      worker(event->rank) = Worker{};
      context_.recorder.count("workers_joined");
    } else if (worker(event->rank).state != kGone &&
               worker(event->rank).state != kDone) {
      remove(event->rank);
      context_.log.warn(fmt::format("rank {} is lost; going on without it", event->rank));
      context_.recorder.count("workers_lost");
    }
  }
}

void Workforce::handle(Rank from, const Report& report, size_t bytes) {
  if (from < 0 || from >= static_cast<Rank>(workers_.size()))
    return context_.log.warn(fmt::format("ignored a message of rank {}: not a worker", from));
  Worker& sender = worker(from);
  if (sender.state == kDone) return;
  if (sender.state == kGone) {  // it may have said why before it went
    const bool why = report.kind == Report::kDiverged && bytes == sizeof(Report);
    if (why && fault_of(report, bytes, sender.order).empty()) listener_.on_diverged();
    return;
  }
  if (sender.state == kAbsent && bytes == sizeof(Report) && report.magic == kMagic &&
      report.kind == Report::kReady) {
    sender.state = kIdle;
    return;
  }
  std::string fault = fault_of(report, bytes, sender.order);
  if (sender.state != kBusy || sender.slot) fault = "a report that nobody waits for";
  if (!fault.empty()) return expel(from, fault);
  sender.report = report;
  if (report.kind == Report::kTrained) return receive_update(from);
  sender.state = kIdle;
  switch (report.kind) {
    case Report::kDropped:
      listener_.on_dropped(sender.work, report);
      sender.work.place.reset();
      break;
    case Report::kEvaluated:
      if (!listener_.on_evaluated(from, report.share))
        expel(from, "an evaluation that nobody asked for");
      break;
    case Report::kDiverged:
      listener_.on_diverged();
      sender.state = kDone;
      break;
    default:
      sender.state = kDone;
  }
}

void Workforce::receive_update(Rank from) {
  Worker& sender = worker(from);
  sender.slot = aggregation_.take_slot();
  const std::span<float> slot = aggregation_.slot(*sender.slot);
  for (size_t part = 0; part < slot.size() / size_; ++part) {
    handles_.push_back(
        node_.endpoint().receive(from, update_tag(sender.order.sequence, part),
                                 writable_bytes_of(slot.subspan(part * size_, size_))));
    owner_of_.push_back(from);
    ++sender.parts_left;
  }
}

void Workforce::part_arrived(size_t index, const Completion& completion) {
  const Rank from = owner_of_[index];
  handles_[index] = std::move(handles_.back());
  handles_.pop_back();
  owner_of_[index] = owner_of_.back();
  owner_of_.pop_back();
  Worker& sender = worker(from);
  if (completion.state == State::kPeerLost || !sender.slot) return;  // the membership says so too
  const size_t bytes = size_ * sizeof(float);
  if (completion.state != State::kDone || completion.bytes != bytes)
    return expel(from, fmt::format("an update of {} bytes instead of {}", completion.bytes, bytes));
  if (--sender.parts_left == 0) update_arrived(from);
}

void Workforce::update_arrived(Rank from) {
  Worker& sender = worker(from);
  const size_t slot = *sender.slot;
  sender.slot.reset();
  sender.state = kIdle;
  listener_.on_update(sender.work, sender.report, slot);
  sender.work.place.reset();
}

void Workforce::order(Rank to, Order order, const Parameters& parameters, Buffer<float> more) {
  Worker& receiver = worker(to);
  while (!receiver.sent.empty()) {  // what has arrived
    auto& handles = receiver.sent.front().handles;
    std::erase_if(handles, [&](Handle& h) { return !h.pending() || node_.endpoint().test(h); });
    if (!handles.empty()) break;
    receiver.sent.pop_front();
  }
  receiver.sent.emplace_back();
  Sent& sent = receiver.sent.back();
  if (parameters) {
    order.sequence = ++receiver.sequence;
    order.elements = parameters->size();
    receiver.order = order;
    receiver.state = kBusy;
    receiver.work.ordered_s = node_.clock().now();
    sent.parameters = parameters;
    sent.more = std::move(more);
  }
  sent.order = order;
  sent.handles.push_back(node_.endpoint().send(
      to, order_tag(), std::as_bytes(std::span<const Order>(&sent.order, 1))));
  if (!parameters) return;
  const std::span<const float> parts[2] = {std::as_const(*sent.parameters).span(),
                                           std::as_const(sent.more).span()};
  for (size_t part = 0; part < 2; ++part)
    if (!parts[part].empty())
      sent.handles.push_back(
          node_.endpoint().send(to, parameters_tag(order.sequence, part), bytes_of(parts[part])));
}

void Workforce::expel(Rank rank, const std::string& why) {
  context_.log.warn(fmt::format("rank {} is refused: {}", rank, why));
  context_.recorder.count("workers_refused");
  remove(rank);
  Order refused;
  refused.kind = Order::kRefused;
  order(rank, refused);
}

void Workforce::remove(Rank rank) {
  Worker& leaving = worker(rank);
  if (leaving.state == kGone) return;
  leaving.state = kGone;
  listener_.on_gone(rank, leaving.work);
  leaving.work.place.reset();
  // The handle of a receive that is under way owns its slot's memory until it ends.
  for (size_t i = handles_.size() - 1; i > 0; --i)
    if (owner_of_[i] == rank) {
      handles_.erase(handles_.begin() + static_cast<std::ptrdiff_t>(i));
      owner_of_.erase(owner_of_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  if (leaving.slot) aggregation_.give_back(*leaving.slot);
  leaving.slot.reset();
  leaving.parts_left = 0;
}

}  // namespace tutti::federated_averaging
