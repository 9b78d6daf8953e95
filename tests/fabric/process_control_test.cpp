// The control protocol: what it carries, and that nothing a peer sends can hurt its reader.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/random.h"
#include "fabric/process/control.h"
#include "fabric/process/control_socket.h"

namespace tutti::process {
namespace {

using Type = ControlMessage::Type;

std::vector<ControlMessage> samples() {
  NodeOutcome outcome;
  outcome.kind = NodeOutcome::Kind::kFailed;
  outcome.error = "lost rank 3";
  outcome.result = std::string("\0bytes\xff", 7);
  outcome.exit_code = 4;
  outcome.lost_peer = 3;
  return {{Type::kHello, 1, 2, 0, {}},
          {Type::kWelcome, 0, 0, 7, encode_roster({{true, 0}, {false, 3}})},
          {Type::kAddress, 65535, 1, 0, std::string(300, 'a')},
          {Type::kLost, 5, 4'000'000'000, 0, {}},
          {Type::kWindow, 0, 0, ~uint64_t{0}, {}},
          {Type::kResult, kAnyRank, 0, 0, encode_outcome(outcome)},
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
      }
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
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

}  // namespace
}  // namespace tutti::process
