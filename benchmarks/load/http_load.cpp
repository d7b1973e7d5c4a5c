// Requests over HTTP on one thread, as cheap as can be: what a client takes of the cores counts as the server's.
//
//   http_load PORT MESSAGE busy CONNECTIONS SECONDS          so many connections that always have a request
//   http_load PORT MESSAGE evenly|random RATE SECONDS        requests at a rate, whatever becomes of those before
//
// MESSAGE is a file with one whole request. Prints JSON: seconds from the first to when each came, and how many each
// took from its sending to the end of its answer, by whether it was answered or refused, and how many were answered
// after the time; at a rate also of requests for health, of which one begins 20 ms after the last was answered.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/time_slices.h"

namespace {

constexpr int64_t kSecondNs = 1'000'000'000, kHealthEveryNs = 20'000'000;
constexpr std::string_view kHealth = "GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n";

int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kSecondNs + time.tv_nsec;
}

int checked(int result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  return result;
}

/// A connection with at most one request on its way.
struct Connection {
  int socket = -1;
  std::string_view request;  // what is not sent of it
  std::string answer;
  size_t length = 0;  // of the answer, once its head is there
  int64_t begun_ns = 0;
  bool asks_health = false, waits = false;
};

class Load {
 public:
  Load(uint16_t port, std::string message)
      : port_(port),
        message_(std::move(message)),
        poll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
        timer_(checked(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), "timerfd_create")) {
    watch(timer_, nullptr, EPOLLIN, EPOLL_CTL_ADD);
  }

  void busy(int connections, double seconds) {
    ends_ns_ = now_ns() + static_cast<int64_t>(seconds * kSecondNs);
    for (int k = 0; k < connections; ++k) ask(message_);
    while (asked_ > 0)
      wait([&](Connection& done) {
        if (now_ns() < ends_ns_) begin(done, message_);
      });
  }

  void at_rate(double rate, double seconds, bool evenly) {
    std::mt19937_64 random(0);
    std::exponential_distribution<double> gap(rate);
    const int64_t begun_ns = now_ns();
    ends_ns_ = begun_ns + static_cast<int64_t>(seconds * kSecondNs);
    double due_s = evenly ? 1 / rate : gap(random);
    int64_t health_ns = begun_ns;
    bool looks = false;
    while (true) {
      int64_t due_ns = begun_ns + static_cast<int64_t>(due_s * kSecondNs);
      const int64_t now = now_ns();
      for (; due_ns <= now && due_ns < ends_ns_; due_ns = begun_ns + static_cast<int64_t>(due_s * kSecondNs)) {
        came_.push_back(due_s);
        ask(message_);
        due_s += evenly ? 1 / rate : gap(random);
      }
      const bool over = due_ns >= ends_ns_;
      if (over && asked_ == (looks ? 1 : 0)) return;
      if (!looks && !over && health_ns <= now) {
        looks = true;
        ask(kHealth);
      }
      wake_at(over ? 0 : looks || due_ns < health_ns ? due_ns : health_ns);
      wait([&](Connection& done) {
        if (!done.asks_health) return;
        looks = false;
        health_ns = now_ns() + kHealthEveryNs;
      });
    }
  }

  void print() const {
    std::printf("{\"came\": ");
    print(came_);
    for (const auto& [name, list] : {std::pair{"answered", &answered_}, {"refused", &refused_}, {"health", &health_}}) {
      std::printf(", \"%s\": ", name);
      print(*list);
    }
    std::printf(", \"late\": %d}\n", late_);
  }

 private:
  static void print(const std::vector<double>& list) {
    std::putchar('[');
    for (size_t k = 0; k < list.size(); ++k) std::printf("%s%.7g", k == 0 ? "" : ",", list[k]);
    std::putchar(']');
  }

  void watch(int descriptor, Connection* connection, uint32_t events, int what) const {
    epoll_event event{};
    event.events = events;
    event.data.ptr = connection;
    checked(epoll_ctl(poll_, what, descriptor, &event), "epoll_ctl");
  }

  void wake_at(int64_t at_ns) const {  // 0: not at all
    itimerspec at{};
    at.it_value.tv_sec = at_ns / kSecondNs;
    at.it_value.tv_nsec = at_ns % kSecondNs;
    checked(timerfd_settime(timer_, TFD_TIMER_ABSTIME, &at, nullptr), "timerfd_settime");
  }

  void ask(std::string_view request) {
    if (idle_.empty()) {
      connections_.push_back(std::make_unique<Connection>());
      idle_.push_back(connections_.back().get());
    }
    Connection& connection = *idle_.back();
    idle_.pop_back();
    begin(connection, request);
  }

  void begin(Connection& connection, std::string_view request) {
    connection.begun_ns = now_ns();
    connection.asks_health = request.data() == kHealth.data();
    connection.waits = true;
    connection.request = request;
    connection.answer.clear();
    connection.length = 0;
    ++asked_;
    if (connection.socket < 0) open(connection);
    send_rest(connection);
  }

  void open(Connection& connection) const {
    connection.socket = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    checked(connect(connection.socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), "connect");
    const int one = 1;
    checked(setsockopt(connection.socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "TCP_NODELAY");
    checked(fcntl(connection.socket, F_SETFL, O_NONBLOCK), "O_NONBLOCK");
    watch(connection.socket, &connection, EPOLLIN, EPOLL_CTL_ADD);
  }

  void send_rest(Connection& connection) {
    while (!connection.request.empty()) {
      const ssize_t sent = send(connection.socket, connection.request.data(), connection.request.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return lost(connection);
      if (sent < 0) return watch(connection.socket, &connection, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
      connection.request.remove_prefix(static_cast<size_t>(sent));
      if (connection.request.empty() && static_cast<size_t>(sent) < message_.size())
        watch(connection.socket, &connection, EPOLLIN, EPOLL_CTL_MOD);
    }
  }

  // The server ends connections that were idle for long; one may have been asked at that moment.
  void lost(Connection& connection) {
    if (!connection.answer.empty()) throw std::runtime_error("the server closed a connection in an answer");
    checked(close(connection.socket), "close");
    connection.socket = -1;
    if (!connection.waits) return;
    --asked_;
    begin(connection, connection.asks_health ? kHealth : std::string_view(message_));
  }

  // Whether the answer is whole now.
  bool receive(Connection& connection) {
    char bytes[1 << 14];
    const ssize_t got = recv(connection.socket, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EAGAIN) return false;
    if (got <= 0) {
      lost(connection);
      return false;
    }
    std::string& answer = connection.answer;
    answer.append(bytes, static_cast<size_t>(got));
    if (connection.length == 0) {
      const size_t end = answer.find("\r\n\r\n"), name = answer.find("content-length: ");
      if (end == std::string::npos) return false;
      if (name > end) throw std::runtime_error("an answer without its length");
      size_t body = 0;
      std::from_chars(answer.data() + name + 16, answer.data() + end, body);
      connection.length = end + 4 + body;
    }
    return answer.size() >= connection.length;
  }

  template <typename Done>
  void wait(const Done& done) {
    epoll_event events[64];
    int count = epoll_wait(poll_, events, 64, -1);
    if (count < 0 && errno == EINTR) count = 0;
    for (int k = 0; k < checked(count, "epoll_wait"); ++k) {
      auto* connection = static_cast<Connection*>(events[k].data.ptr);
      if (connection == nullptr) {
        uint64_t times = 0;
        static_cast<void>(!read(timer_, &times, sizeof times));
        continue;
      }
      if ((events[k].events & EPOLLOUT) != 0) send_rest(*connection);
      if ((events[k].events & ~uint32_t{EPOLLOUT}) == 0 || !receive(*connection)) continue;
      --asked_;
      const bool good = connection->answer.compare(9, 3, "200") == 0;
      connection->waits = false;
      connection->answer.clear();
      const int64_t ended_ns = now_ns();
      const double took_s = static_cast<double>(ended_ns - connection->begun_ns) / kSecondNs;
      if (good && !connection->asks_health && ended_ns > ends_ns_) ++late_;
      (connection->asks_health ? health_ : good ? answered_ : refused_).push_back(took_s);
      const int before = asked_;
      done(*connection);
      if (asked_ == before) idle_.push_back(connection);
    }
  }

  uint16_t port_;
  std::string message_;
  int poll_, timer_;
  int asked_ = 0, late_ = 0;
  int64_t ends_ns_ = 0;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> idle_;
  std::vector<double> came_, answered_, refused_, health_;
};

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::vector<std::string> given(arguments + 1, arguments + count);
    if (given.size() != 5) throw std::runtime_error("http_load PORT MESSAGE busy|evenly|random COUNT|RATE SECONDS");
    std::ifstream file(given[1], std::ios::binary);
    std::string message((std::istreambuf_iterator<char>(file)), {});
    if (message.empty()) throw std::runtime_error("cannot read " + given[1]);
    hetnn::ask_for_slices(100'000);  // its own waits for a core would count as the server's, too
    Load load(static_cast<uint16_t>(std::stoi(given[0])), std::move(message));
    if (given[2] == "busy")
      load.busy(std::stoi(given[3]), std::stod(given[4]));
    else
      load.at_rate(std::stod(given[3]), std::stod(given[4]), given[2] == "evenly");
    load.print();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "http_load: %s\n", error.what());
    return 1;
  }
}
