#include "fabric/process/control_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "fabric/process/process_clock.h"

namespace tutti::process {
namespace {

// More descriptors at once than this, and somebody is not speaking our protocol.
constexpr size_t kMaxDescriptors = 16;
constexpr size_t kFillBytes = size_t{1} << 20;
constexpr int kDrainRoundMs = 50;  // how soon a stop is noticed that interrupts no system call

union DescriptorSpace {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> bytes;
};

}  // namespace

void FileDescriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void ControlSocket::post(const ControlMessage& message, std::shared_ptr<FileDescriptor> attached) {
  queue_.push_back({encode(message), std::move(attached)});
  flush();
}

bool ControlSocket::send_some(Outgoing& item) {
  iovec part{item.bytes.data() + item.sent, item.bytes.size() - item.sent};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  DescriptorSpace space{};
  if (item.attached) {
    header.msg_control = &space;
    header.msg_controllen = CMSG_SPACE(sizeof(int));
    cmsghdr* control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = item.attached->get();
    std::memcpy(CMSG_DATA(control), &fd, sizeof fd);
  }
  const ssize_t sent = sendmsg(fd(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (sent < 0 && errno == EINTR) return true;
  if (sent < 0) {
    // The other side is gone. Whoever watches it will say so; here nothing is left to send.
    item.sent = item.bytes.size();
    return true;
  }
  item.attached.reset();
  item.sent += static_cast<size_t>(sent);
  return true;
}

bool ControlSocket::flush() {
  while (!queue_.empty()) {
    if (fd() >= 0 && !send_some(queue_.front())) return false;
    if (fd() < 0 || queue_.front().sent == queue_.front().bytes.size()) queue_.pop_front();
  }
  return true;
}

bool ControlSocket::drain(double timeout_s, const std::atomic<bool>* stop) {
  const int64_t deadline_ns = deadline_after(timeout_s);
  while (!flush()) {
    if ((stop && stop->load()) || monotonic_ns() >= deadline_ns) return false;
    pollfd wait{fd(), POLLOUT, 0};
    poll(&wait, 1, kDrainRoundMs);
  }
  return true;
}

bool ControlSocket::fill() {
  std::array<char, 65536> chunk;
  more_ = false;
  for (size_t total = 0; fd() >= 0;) {
    if (total >= kFillBytes) return more_ = true;
    iovec part{chunk.data(), chunk.size()};
    DescriptorSpace space{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = &space;
    header.msg_controllen = sizeof space;
    const ssize_t got = recvmsg(fd(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int received;
        std::memcpy(&received, CMSG_DATA(c) + i * sizeof(int), sizeof received);
        descriptors_.emplace_back(received);
      }
    }
    if (got == 0) return false;
    reader_.append({chunk.data(), static_cast<size_t>(got)});
    total += static_cast<size_t>(got);
  }
  return false;
}

FileDescriptor ControlSocket::take_descriptor() {
  if (descriptors_.empty()) throw DataError("a window came without its file descriptor");
  FileDescriptor first = std::move(descriptors_.front());
  descriptors_.pop_front();
  return first;
}

std::pair<FileDescriptor, FileDescriptor> control_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) < 0)
    throw Error(std::string("cannot make a control connection: ") + std::strerror(errno));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace tutti::process
