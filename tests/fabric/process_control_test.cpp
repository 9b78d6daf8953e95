// The control protocol: what it carries, and that nothing a peer sends can hurt its reader.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

#include "core/error.h"
#include "core/random.h"
#include "fabric/process/control.h"
#include "fabric/process/control_socket.h"
#include "fabric/process/lobby.h"

namespace tutti::process {
namespace {

using Type = ControlMessage::Type;

Invitation invitation() {
  return {{"worker", "worker", "server"}, {0, 0, 1}, 60, "[task]\nmodel = \"logistic\"\n"};
}

std::vector<ControlMessage> samples() {
  NodeOutcome outcome;
  outcome.kind = NodeOutcome::Kind::kFailed;
  outcome.error = "lost rank 3";
  outcome.result = std::string("\0bytes\xff", 7);
  outcome.exit_code = 4;
  outcome.lost_peer = 3;
  return {{Type::kHello, 1, 2, 0, {}},
          {Type::kWelcome, 0, 0, 7, encode_roster({{true, 0}, {false, 3}})},
          {Type::kAddress, 65535, 1, 0, seal_address(std::string(300, 'a'))},
          {Type::kLost, 5, 4'000'000'000, 0, {}},
          {Type::kWindow, 0, 0, ~uint64_t{0}, {}},
          {Type::kResult, kAnyRank, 0, 0, encode_outcome(outcome)},
          {Type::kJoin, kAnyRank, 0, kProtocol, std::string(32, 'f')},
          {Type::kAccepted, 2, 0, 0, encode_invitation(invitation())},
          {Type::kRefused, kAnyRank, 0, kProtocol, "all places are taken"},
          {Type::kBye, 0, 0, 0, {}}};
}

TEST(ProcessControl, MessagesSurviveAnyCutting) {
  std::string stream;
  for (const ControlMessage& message : samples()) stream += encode(message);
  for (size_t piece = 1; piece < 100; ++piece) {
    FrameReader reader;
    std::vector<ControlMessage> received;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.append(std::string_view(stream).substr(at, piece));
      while (const auto message = reader.next()) received.push_back(*message);
    }
    EXPECT_EQ(received, samples()) << "in pieces of " << piece;
    EXPECT_TRUE(reader.empty());
  }
}

TEST(ProcessControl, OutcomesAndRostersSurvive) {
  const auto outcome = decode_outcome(samples()[5].body);
  EXPECT_EQ(outcome.kind, NodeOutcome::Kind::kFailed);
  EXPECT_EQ(outcome.error, "lost rank 3");
  EXPECT_EQ(outcome.result, std::string("\0bytes\xff", 7));
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.lost_peer, 3);
  const std::vector<Member> members{{true, 0}, {false, 3}};
  EXPECT_EQ(decode_roster(encode_roster(members)), members);
  EXPECT_EQ(decode_invitation(encode_invitation(invitation())), invitation());
}

// A guest's error is printed on the launcher's terminal, which must not obey escapes in it.
TEST(ProcessControl, ErrorsOfGuestsAreShownNotObeyed) {
  const NodeOutcome guest{NodeOutcome::Kind::kFailed, "\x1b", "\x1b[2Jgone\r", 1, kAnyRank};
  const NodeOutcome read = decode_outcome(encode_outcome(guest));
  EXPECT_EQ(read.error, "\\x1b[2Jgone\\x0d");
  EXPECT_EQ(read.result, "\x1b") << "which is parsed, not printed";
}

TEST(ProcessControl, OutcomesThatNoNodeCanHaveAreRefused) {
  using Kind = NodeOutcome::Kind;
  const auto may_be = [](Kind kind, int exit_code, Rank lost_peer = kAnyRank) {
    try {
      decode_outcome(encode_outcome({kind, "result", "error", exit_code, lost_peer}));
      return true;
    } catch (const DataError&) {
      return false;
    }
  };
  for (const int code : {-1, 0, 1, 2, 3, 4, 5, 99, 130, 131, 1 << 30}) {
    EXPECT_EQ(may_be(Kind::kDone, code), code == 0) << code;
    EXPECT_EQ(may_be(Kind::kFailed, code), code >= 1 && code <= 4) << code;
    EXPECT_EQ(may_be(Kind::kLost, code), code == 4) << code;
    EXPECT_EQ(may_be(Kind::kInterrupted, code), code == 130) << code;
  }
  EXPECT_TRUE(may_be(Kind::kFailed, 4, kMaxRank));
  EXPECT_FALSE(may_be(Kind::kFailed, 4, kMaxRank + 1));
  EXPECT_FALSE(may_be(Kind::kFailed, 4, kAnyRank - 1));
}

// Any single byte that changes, and any cut: UCX never sees the difference.
TEST(ProcessControl, AddressesAreSealed) {
  std::string address;
  for (int i = 0; i < 300; ++i) address += static_cast<char>(i * 7);
  const std::string sealed = seal_address(address);
  EXPECT_EQ(open_address(sealed), address);
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string damaged = sealed;
    damaged[i] ^= static_cast<char>(1 << i % 8);
    EXPECT_THROW(open_address(damaged), DataError) << i;
    EXPECT_THROW(open_address(std::string_view(sealed).substr(0, i)), DataError) << i;
  }
  EXPECT_THROW(open_address(sealed + '\0'), DataError);
  EXPECT_THROW(open_address(std::string(200, '\xff')), DataError);
  EXPECT_THROW(open_address(seal_address("")), DataError);
}

// A header may promise anything; memory is only taken for bytes that came.
TEST(ProcessControl, SizesAreCheckedBeforeMemoryIsTaken) {
  std::string frame = encode({Type::kLost, 1, 0, 0, {}});
  frame[3] = '\x7f';  // two gigabytes of body
  FrameReader reader;
  reader.append(frame);
  EXPECT_THROW(reader.next(), DataError);

  std::string result = encode({Type::kResult, 1, 0, 0, {}});
  result[3] = '\x3f';  // within the limit of a result: waits for it, holding nothing
  FrameReader patient;
  patient.append(result);
  EXPECT_FALSE(patient.next());
}

TEST(ProcessControl, DamagedStreamsEndInAnErrorOrInMessages) {
  std::string stream;
  for (const ControlMessage& message : samples()) stream += encode(message);
  Random random(1, Stream::kTest);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = stream.substr(0, random.below(stream.size() + 1));
    const uint64_t flips = random.below(8);
    for (uint64_t i = 0; i < flips && !damaged.empty(); ++i)
      damaged[random.below(damaged.size())] ^= static_cast<char>(1u << random.below(8));
    if (round % 4 == 0)
      for (char& byte : damaged) byte = static_cast<char>(random.next_u32());
    FrameReader reader;
    reader.append(damaged);
    try {
      while (const auto message = reader.next()) {
        ASSERT_LE(message->body.size(), damaged.size());
        if (message->type == Type::kResult) decode_outcome(message->body);
        if (message->type == Type::kWelcome) decode_roster(message->body);
        if (message->type == Type::kAccepted) decode_invitation(message->body);
      }
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

// Dials, says something, and returns whatever the lobby answers before it hangs up.
std::string answer_to(Lobby& lobby, const std::string& said, std::vector<Lobby::Guest>& guests) {
  const FileDescriptor socket = dial(parse_host_port(lobby.address(), "test"), 5);
  EXPECT_EQ(send(socket.get(), said.data(), said.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(said.size()));
  shutdown(socket.get(), SHUT_WR);
  std::string heard;
  for (int round = 0; round < 1000; ++round) {
    for (Lobby::Guest& guest : lobby.serve()) guests.push_back(std::move(guest));
    std::array<char, 4096> chunk;
    const ssize_t got = recv(socket.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got > 0) heard.append(chunk.data(), static_cast<size_t>(got));
    if (got == 0 || (got < 0 && errno != EAGAIN) || !guests.empty()) break;
    usleep(1000);
  }
  return heard;
}

TEST(ProcessLobby, OnlyTheTokenOpensIt) {
  Lobby lobby(parse_host_port("127.0.0.1:0", "test"));
  EXPECT_EQ(lobby.token().size(), 32u);
  EXPECT_NE(lobby.token(), Lobby(parse_host_port("127.0.0.1:0", "test")).token());
  std::vector<Lobby::Guest> guests;
  const auto refusal = [&](const ControlMessage& said) {
    FrameReader reader;
    reader.append(answer_to(lobby, encode(said), guests));
    const auto message = reader.next();
    return message && message->type == Type::kRefused ? message->body : "no refusal";
  };
  const ControlMessage right{Type::kJoin, kAnyRank, 0, kProtocol, lobby.token()};
  ControlMessage wrong = right;
  wrong.body.back() = wrong.body.back() == '0' ? '1' : '0';
  EXPECT_NE(refusal(wrong).find("token"), std::string::npos);
  wrong.body.pop_back();
  EXPECT_NE(refusal(wrong).find("token"), std::string::npos);
  ControlMessage newer = right;
  newer.number = kProtocol + 1;
  EXPECT_NE(refusal(newer).find("same version"), std::string::npos);
  EXPECT_NE(refusal({Type::kHello, 0, 0, 0, {}}).find("join"), std::string::npos);
  EXPECT_TRUE(guests.empty());
  answer_to(lobby, encode(right), guests);
  ASSERT_EQ(guests.size(), 1u);
  EXPECT_EQ(guests[0].interface, "lo");
}

// Whatever strangers say, and however much of it: the lobby stays open for those with the token.
TEST(ProcessLobby, NonsenseEndsOneConnectionAndNothingElse) {
  Lobby lobby(parse_host_port("127.0.0.1:0", "test"));
  const std::string right = encode({Type::kJoin, kAnyRank, 0, kProtocol, lobby.token()});
  Random random(2, Stream::kTest);
  std::vector<Lobby::Guest> guests;
  for (int round = 0; round < 300; ++round) {
    std::string said = right.substr(0, random.below(right.size()));
    if (round % 3 == 0) {
      said = right;
      said[kFrameHeaderBytes + random.below(lobby.token().size())] ^= '\x40';
    }
    if (round % 3 == 1) said.assign(random.below(5000), '\0');
    if (round % 6 == 1)
      for (char& byte : said) byte = static_cast<char>(random.next_u32());
    if (said.empty()) continue;
    answer_to(lobby, said, guests);
  }
  EXPECT_TRUE(guests.empty());
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(dial(parse_host_port(lobby.address(), "test"), 5));
    EXPECT_TRUE(lobby.serve().empty());
  }
  answer_to(lobby, right, guests);
  EXPECT_EQ(guests.size(), 1u);
}

TEST(ProcessControl, SocketsCarryMessagesAndDescriptors) {
  auto [left, right] = control_pair();
  ControlSocket sender(std::move(left)), receiver(std::move(right));
  auto [a, b] = control_pair();
  const auto passed = std::make_shared<FileDescriptor>(std::move(a));
  sender.post({Type::kHello, 1, 0, 0, {}});
  sender.post({Type::kWindow, 1, 0, 4096, {}}, passed);
  sender.post({Type::kBye, 1, 0, 0, {}});
  ASSERT_TRUE(receiver.fill());
  EXPECT_EQ(receiver.next()->type, Type::kHello);
  const auto window = receiver.next();
  ASSERT_TRUE(window && window->type == Type::kWindow && window->number == 4096);
  const FileDescriptor descriptor = receiver.take_descriptor();
  EXPECT_GE(descriptor.get(), 0);
  EXPECT_NE(descriptor.get(), passed->get());
  EXPECT_EQ(receiver.next()->type, Type::kBye);
  EXPECT_THROW(receiver.take_descriptor(), DataError);
  sender.close();
  EXPECT_FALSE(receiver.fill());
}

// The launcher must not block on a node that computes and does not read.
TEST(ProcessControl, APostNeverBlocks) {
  auto [left, right] = control_pair();
  ControlSocket sender(std::move(left)), receiver(std::move(right));
  const ControlMessage large{Type::kResult, 1, 0, 0, std::string(1'000'000, 'x')};
  for (int i = 0; i < 10; ++i) sender.post(large);
  EXPECT_FALSE(sender.flush());
  int received = 0;
  for (int round = 0; round < 1000 && received < 10; ++round) {
    ASSERT_TRUE(receiver.fill());
    while (const auto message = receiver.next()) {
      EXPECT_EQ(*message, large);
      ++received;
    }
    sender.flush();
  }
  EXPECT_EQ(received, 10);
  EXPECT_TRUE(sender.flush());
}

// Who sends much is looked at after a megabyte, and others get their turn.
TEST(ProcessControl, AFillTakesAMegabyteAtMost) {
  constexpr size_t kPings = 2048, kMost = (size_t{1} << 20) / kFrameHeaderBytes + kPings;
  auto [left, right] = control_pair();
  const int room = 64 << 20;
  setsockopt(left.get(), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
  std::string chunk;
  for (size_t i = 0; i < kPings; ++i) chunk += encode({Type::kPing, 0, 0, 0, {}});
  size_t sent = 0;
  while (sent < 64 && send(left.get(), chunk.data(), chunk.size(), MSG_DONTWAIT) > 0) ++sent;
  if (sent < 64) GTEST_SKIP() << "the system does not let this user queue 4 MiB";
  ControlSocket receiver(std::move(right));
  size_t received = 0;
  for (size_t fills = 0; fills < 4; ++fills) {
    ASSERT_TRUE(receiver.fill());
    EXPECT_TRUE(receiver.more());
    const size_t before = received;
    while (receiver.next()) ++received;
    EXPECT_LE(received - before, kMost);
  }
  ASSERT_TRUE(receiver.fill());
  EXPECT_FALSE(receiver.more());
  while (receiver.next()) ++received;
  EXPECT_EQ(received, sent * kPings);
}

TEST(ProcessControl, WhatIsLeftOverIsReadByTheNextFill) {
  auto [left, right] = control_pair();
  ControlSocket sender(std::move(left)), receiver(std::move(right));
  const ControlMessage large{Type::kResult, 1, 0, 0, std::string(5'000'000, 'x')};
  sender.post(large);
  std::optional<ControlMessage> received;
  for (int round = 0; round < 10000 && !received; ++round) {
    sender.flush();
    ASSERT_TRUE(receiver.fill());
    received = receiver.next();
  }
  EXPECT_EQ(received, large);
}

TEST(ProcessControl, DrainingEndsWhenNobodyReads) {
  auto [left, right] = control_pair();
  ControlSocket sender(std::move(left)), receiver(std::move(right));
  sender.post({Type::kResult, 1, 0, 0, std::string(8'000'000, 'x')});
  EXPECT_FALSE(sender.drain(0.05));
  const std::atomic<bool> stop{true};
  EXPECT_FALSE(sender.drain(1e9, &stop));
  receiver.close();
  EXPECT_TRUE(sender.drain(1e9, &stop)) << "nobody is left to send it to";
}

// Dials a host that does not answer: the queue of those who knock is full, and more are not heard.
TEST(ProcessTcp, DiallingCanBeInterrupted) {
  const FileDescriptor deaf = listen_on({"127.0.0.1", 0});
  ASSERT_EQ(listen(deaf.get(), 0), 0);
  const HostPort where = local_address(deaf);
  const FileDescriptor queued = dial(where, 5);
  try {
    dial(where, 0.05);
    FAIL() << "somebody answered";
  } catch (const FabricError& error) {
    EXPECT_NE(std::string(error.what()).find("timed out"), std::string::npos) << error.what();
  }
  std::atomic<bool> stop{false};
  std::thread raiser([&] {
    usleep(100'000);
    stop = true;
  });
  EXPECT_THROW(dial(where, 1e9, &stop), InterruptedError);
  raiser.join();
}

}  // namespace
}  // namespace tutti::process
