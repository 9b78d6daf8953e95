// The courier against a peer that does not keep to the protocol: what it sends comes over a
// network.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "fabric/process/courier.h"
#include "fabric/process/courier_protocol.h"
#include "fabric/process/ucx_request.h"

namespace tutti::process {
namespace {

// A courier that pulls a large message, and beside it the bare UCX channel of its sender.
class PulledByACourier : public testing::Test {
 protected:
  PulledByACourier() {
    courier_.open(ours_);
    ours_.connect(theirs_.address());
    theirs_.connect(ours_.address());
    operation_.data = buffer_.data();
    operation_.bytes = kRoom;
    operation_.notice = kNoticeFlag | uint64_t{1} << kSerialShift;
    courier_.pull(operation_, ours_);
  }
  ~PulledByACourier() override {
    ours_.close();  // UCX calls back for what the courier has asked for
    courier_.forget(ours_);
    ours_.abandon();
  }

  void send(uint64_t tag, const void* data, size_t bytes) {
    ucp_request_param_t param{};
    void* request =
        ucp_tag_send_nbx(theirs_.endpoint(), data, bytes, tag | operation_.notice, &param);
    ASSERT_FALSE(UCS_PTR_IS_ERR(request));
    if (!request) return;
    ASSERT_TRUE(
        progress_until([&] { return ucp_request_check_status(request) != UCS_INPROGRESS; }));
    ucp_request_free(request);
  }

  bool progress_until(const std::function<bool()>& done) {
    for (int i = 0; i < 1'000'000 && !done(); ++i) {
      ucp_worker_progress(theirs_.worker());
      ours_.progress();
      courier_.progress();
    }
    return done();
  }

  // Of what may be written to, and of what may not.
  bool untouched(size_t from) const {
    return std::all_of(buffer_.begin() + static_cast<std::ptrdiff_t>(from), buffer_.end(),
                       [](std::byte byte) { return byte == std::byte{0xee}; });
  }

  static constexpr size_t kRoom = size_t{130} << 10;
  UcxContext context_{"lo"};
  Channel ours_{context_, 1, 0};
  Channel theirs_{context_, 0, 0};
  std::vector<std::byte> buffer_ = std::vector<std::byte>(size_t{512} << 10, std::byte{0xee});
  Operation operation_;
  int matched_again_ = 0;
  Courier courier_{[this](Operation&) { ++matched_again_; }};
};

TEST_F(PulledByACourier, TakesWhatWasAnnounced) {
  const std::vector<std::byte> piece(kPieceBytes, std::byte{1});
  const uint64_t announced = kRoom;
  send(kSizeTag, &announced, sizeof announced);
  send(kPieceTag, piece.data(), kPieceBytes);
  send(kPieceTag, piece.data(), kRoom - kPieceBytes);
  ASSERT_TRUE(progress_until([&] { return !operation_.pending(); }));
  EXPECT_EQ(operation_.result.state, State::kDone);
  EXPECT_EQ(buffer_[kRoom - 1], std::byte{1});
  EXPECT_TRUE(untouched(kRoom));
}

TEST_F(PulledByACourier, TakesNotMoreThanWasAnnounced) {
  const std::vector<std::byte> piece(kPieceBytes, std::byte{1});
  const uint64_t announced = kRoom;
  send(kSizeTag, &announced, sizeof announced);
  send(kPieceTag, piece.data(), kPieceBytes);
  send(kPieceTag, piece.data(), kPieceBytes);
  ASSERT_TRUE(progress_until([&] { return !operation_.pending(); })) << "it waits for its deadline";
  EXPECT_EQ(operation_.result.state, State::kTruncated);
  EXPECT_TRUE(untouched(kRoom));
}

TEST_F(PulledByACourier, TakesNothingThatDoesNotFit) {
  const uint64_t announced = kRoom + 1;
  send(kSizeTag, &announced, sizeof announced);
  ASSERT_TRUE(progress_until([&] { return !operation_.pending(); }));
  EXPECT_EQ(operation_.result.state, State::kTruncated);
  EXPECT_TRUE(untouched(0));
}

TEST_F(PulledByACourier, TakesHalfASizeForNone) {
  const uint32_t announced = kRoom;
  send(kSizeTag, &announced, sizeof announced);
  ASSERT_TRUE(progress_until([&] { return matched_again_ > 0; }));
  EXPECT_TRUE(operation_.pending());
  EXPECT_TRUE(untouched(0));
}

}  // namespace
}  // namespace tutti::process
