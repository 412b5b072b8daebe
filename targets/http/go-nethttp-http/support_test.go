package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// asServer tells the program of the tests to be the server.
	asServer = "GOHTTP_TEST_SERVES"
	patience = 20 * time.Second
)

// TestMain makes the program of the tests the server, for tests that need it as a process.
func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// program is the server, yet to be started.
func program(variables ...string) *exec.Cmd {
	command := exec.Command(os.Args[0])
	// Under the race detector a process would wait a second before its exit.
	command.Env = append([]string{asServer + "=1", "GORACE=atexit_sleep_ms=0"}, variables...)
	return command
}

// target is a running server.
type target struct {
	t       *testing.T
	address string
	process *exec.Cmd
}

func start(t *testing.T, variables ...string) *target {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(address)
	command := program(append(variables, "PORT="+port)...)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	// It listens before it prints.
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || !strings.Contains(line, `"runtime":"go1.`) {
		t.Fatalf("got %q, %v", line, err)
	}
	return &target{t, address, command}
}

func (s *target) terminate() {
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Error(err)
	}
}

// metric reads one of the metrics.
func (s *target) metric(name string) int {
	s.t.Helper()
	asking := s.connect()
	// It is one of the open connections, and must not be one of the next look's.
	defer asking.socket.Close()
	_, body := asking.get("/metrics")
	found := regexp.MustCompile("(?m)^" + name + " ([0-9]+)$").FindStringSubmatch(body)
	if found == nil {
		s.t.Fatalf("no %s in\n%s", name, body)
	}
	value, _ := strconv.Atoi(found[1])
	return value
}

// client is a connection that sends the bytes that it is given.
type client struct {
	t      *testing.T
	socket net.Conn
	reader *bufio.Reader
}

func (s *target) connect() *client {
	s.t.Helper()
	socket, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = socket.Close() })
	_ = socket.SetDeadline(time.Now().Add(patience))
	return &client{s.t, socket, bufio.NewReader(socket)}
}

func (c *client) send(texts ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c.socket, strings.Join(texts, "")); err != nil {
		c.t.Error(err)
	}
}

// receive reads an answer; nil if the connection ends before it.
func (c *client) receive(method string) (*http.Response, string) {
	c.t.Helper()
	if _, err := c.reader.Peek(1); err != nil {
		return nil, ""
	}
	response, err := http.ReadResponse(c.reader, &http.Request{Method: method})
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response, string(body)
}

// expect wants the next answer to be a good one with this body.
func (c *client) expect(contentType, body string) *http.Response {
	c.t.Helper()
	response, got := c.receive(http.MethodGet)
	if response == nil || response.StatusCode != 200 || got != body {
		c.t.Fatalf("got %v with %d bytes", response, len(got))
	}
	header := response.Header
	if !strings.HasPrefix(header.Get("Content-Type"), contentType) || header.Get("Date") == "" ||
		response.ContentLength != int64(len(body)) || response.TransferEncoding != nil {
		c.t.Fatalf("got %v", header)
	}
	return response
}

func (c *client) get(path string) (*http.Response, string) {
	c.t.Helper()
	c.send("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n")
	return c.receive(http.MethodGet)
}

// expectEnd wants nothing more to come.
func (c *client) expectEnd() {
	c.t.Helper()
	if response, _ := c.receive(http.MethodGet); response != nil {
		c.t.Fatalf("got %v", response)
	}
}

// pattern is what /bytes/N answers with.
func pattern(count int) string {
	return strings.Repeat("0123456789abcdef", count/16+1)[:count]
}

// payload is a body in which every byte's place shows.
func payload(length int) string {
	var text bytes.Buffer
	for i := range length {
		text.WriteByte(byte(i * 31 % 251))
	}
	return text.String()
}

// sum is what /sum answers with; the CRC bit by bit, so that it is not the code that is tested.
func sum(body string) string {
	rest := ^uint32(0)
	for i := range len(body) {
		rest ^= uint32(body[i])
		for range 8 {
			rest = rest>>1 ^ 0xEDB88320&-(rest&1)
		}
	}
	return fmt.Sprintf("%08x %d", ^rest, len(body))
}
