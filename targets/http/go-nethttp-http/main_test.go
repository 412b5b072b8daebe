package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	host    = " HTTP/1.1\r\nHost: x\r\n"
	posting = "POST /sum" + host
)

func TestRoutes(t *testing.T) {
	target := start(t)
	c := target.connect()
	ask := func(path, contentType, body string) {
		t.Helper()
		c.send("GET ", path, host, "\r\n")
		c.expect(contentType, body)
	}
	ask("/", "text/plain", "ok")
	ask("/?a=/bytes/1", "text/plain", "ok")
	ask("/healthz", "text/plain", "ok")
	for _, count := range []int{1, 2, 17, 4096, 65536, 1 << 20} {
		ask(fmt.Sprintf("/bytes/%d?q", count), "application/octet-stream", pattern(count))
	}
	ask("/json/0", "application/json", `{"id":0,"name":"item 0","even":true}`)
	ask("/json/9007199254740991", "application/json", `{"id":9007199254740991,"name":"item 9007199254740991","even":false}`)
	for _, length := range []int{0, 1, 1024, 1 << 20} {
		c.send(posting, fmt.Sprintf("Content-Length: %d\r\n\r\n", length), payload(length))
		c.expect("text/plain", sum(payload(length)))
	}
	for _, path := range []string{
		"/nowhere", "/bytes/", "/bytes/0", "/bytes/01", "/bytes/+1", "/bytes/1048577", "/bytes/1/2", "/json/", "/json/-1",
		"/json/9007199254740992",
	} {
		if response, _ := c.get(path); response.StatusCode != 404 {
			t.Errorf("%s: %v", path, response)
		}
	}
	for _, request := range []string{"POST /", "PUT /bytes/1", "GET /sum", "BREW /"} {
		c.send(request, host, "Content-Length: 0\r\n\r\n")
		if response, _ := c.receive(http.MethodPost); response.StatusCode != 405 || response.Close {
			t.Errorf("%s: %v", request, response)
		}
	}
	for _, path := range []string{"/", "/bytes/65536", "/json/12"} {
		c.send("HEAD ", path, host, "\r\n")
		head, _ := c.receive(http.MethodHead)
		got, body := c.get(path)
		if head.ContentLength != int64(len(body)) || head.Header.Get("Content-Type") != got.Header.Get("Content-Type") {
			t.Errorf("%s: %v", path, head)
		}
	}
	if got := target.metric("http_requests_total"); got != 3+6+2+4+10+4+6+1 {
		t.Errorf("%d requests", got)
	}
	if accepted := target.metric("http_connections_accepted_total"); accepted != 3 {
		t.Errorf("%d connections", accepted)
	}
}

func TestKeepAliveAndPipelining(t *testing.T) {
	c := start(t).connect()
	for range 1000 {
		c.send("GET /", host, "\r\n")
		c.expect("text/plain", "ok")
	}
	var requests strings.Builder
	for count := 1; count <= 16; count++ {
		fmt.Fprintf(&requests, "GET /bytes/%d%s\r\n", count, host)
	}
	c.send(requests.String())
	for count := 1; count <= 16; count++ {
		c.expect("application/octet-stream", pattern(count))
	}
	get := "GET /" + host + "\r\n"
	c.send(get, posting, "Content-Length: 5\r\n\r\nhello", get)
	c.expect("text/plain", "ok")
	c.expect("text/plain", sum("hello"))
	c.expect("text/plain", "ok")
	c.send(get, get, "GET /", host, "Connection: close\r\n\r\n", get, get)
	c.expect("text/plain", "ok")
	c.expect("text/plain", "ok")
	if response := c.expect("text/plain", "ok"); !response.Close {
		t.Error("it does not say that it closes")
	}
	c.expectEnd()
}

func TestBodies(t *testing.T) {
	target := start(t, "MAX_BODY_BYTES=1000")
	c := target.connect()
	chunked := posting + "Transfer-Encoding: chunked\r\n"
	for body, whole := range map[string]string{
		"0\r\n\r\n":                            "",
		"5\r\nhello\r\n0\r\n\r\n":              "hello",
		"1;a=b\r\nh\r\n4\r\nello\r\n0\r\n\r\n": "hello",
		"5\r\nhello\r\n0\r\nX-T: v\r\n\r\n":    "hello",
	} {
		c.send(chunked, "\r\n", body)
		c.expect("text/plain", sum(whole))
	}
	c.send(chunked, "Expect: 100-continue\r\n\r\n")
	if response, _ := c.receive(http.MethodPost); response.StatusCode != 100 {
		t.Errorf("got %v", response)
	}
	c.send("5\r\nhello\r\n0\r\n\r\n")
	c.expect("text/plain", sum("hello"))
	for request, status := range map[string]int{
		chunked + "\r\nx\r\nhello\r\n0\r\n\r\n":                          400,
		chunked + "\r\n3e9\r\n" + payload(1001) + "\r\n0\r\n\r\n":        413,
		posting + "Content-Length: 1001\r\n\r\n" + payload(1001):         413,
		posting + "Content-Length: 99999999999999\r\n\r\n":               413,
		posting + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!": 400,
		posting + "Content-Length: +5\r\n\r\nhello":                      400,
		posting + "Content-Length: -1\r\n\r\n":                           400,
		posting + "Transfer-Encoding: smoke\r\n\r\n":                     501,
		"GET /" + host + "X-A : b\r\n\r\n":                               400,
		"GET / HTTP/1.1\r\n\r\n":                                         400,
		"GET / HTTP/3.7\r\nHost: x\r\n\r\n":                              505,
		"GET /" + host + "X: " + strings.Repeat("a", 65536) + "\r\n\r\n": 431,
		"GET /" + host + strings.Repeat("X: y\r\n", 10000) + "\r\n":      431,
	} {
		c := target.connect()
		// The server may close while the rest is still on its way.
		_, _ = io.WriteString(c.socket, request)
		response, _ := c.receive(http.MethodPost)
		if response != nil && (response.StatusCode != status || !response.Close) {
			t.Errorf("%.60q: %v", request, response)
		}
		c.expectEnd()
	}
}

func TestHTTP2(t *testing.T) {
	target := start(t)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	asking := http.Client{Transport: &http.Transport{Protocols: &protocols}}
	var all sync.WaitGroup
	for number := range 100 {
		all.Go(func() {
			body := payload(number * 1000)
			response, err := asking.Post("http://"+target.address+"/sum", "text/plain", strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			got, _ := io.ReadAll(response.Body)
			if response.ProtoMajor != 2 || string(got) != sum(body) {
				t.Errorf("got %v, %s", response, got)
			}
		})
	}
	all.Wait()
	response, err := asking.Get("http://" + target.address + "/bytes/1048576")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got, _ := io.ReadAll(response.Body); string(got) != pattern(1<<20) || response.ContentLength != 1<<20 {
		t.Errorf("got %d bytes", len(got))
	}
	response.Body.Close()
	// A connection is idle a moment after its last answer was read, so once is not enough.
	for begun := time.Now(); target.metric("http_connections_open") != 1; time.Sleep(5 * time.Millisecond) {
		asking.CloseIdleConnections()
		if time.Since(begun) > patience {
			t.Fatal("a connection stays open")
		}
	}
}

func TestDrain(t *testing.T) {
	target := start(t, "WORKER_THREADS=2")
	idle, busy := target.connect(), target.connect()
	idle.get("/")
	busy.send(posting, "Content-Length: 5\r\n\r\nhel")
	time.Sleep(100 * time.Millisecond)
	begun := time.Now()
	target.terminate()
	idle.expectEnd()
	for {
		socket, err := net.Dial("tcp", target.address)
		if err != nil {
			break
		}
		_ = socket.Close()
		if time.Since(begun) > patience {
			t.Fatal("connections are accepted")
		}
	}
	busy.send("lo")
	if response := busy.expect("text/plain", sum("hello")); !response.Close {
		t.Error("it does not say that it closes")
	}
	busy.expectEnd()
	if err := target.process.Wait(); err != nil {
		t.Error(err)
	}

	target = start(t, "DRAIN_TIMEOUT_MS=500")
	target.connect().send(posting, "Content-Length: 5\r\n\r\nhel")
	time.Sleep(100 * time.Millisecond)
	begun = time.Now()
	target.terminate()
	if err := target.process.Wait(); err != nil || time.Since(begun) > 700*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}

func TestBadVariables(t *testing.T) {
	for _, variable := range []string{"PORT=http", "PORT=65536", "WORKER_THREADS=0", "MAX_BODY_BYTES=1k"} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		command := exec.CommandContext(ctx, program().Path)
		command.Env = program(variable).Env
		var output, errs bytes.Buffer
		command.Stdout, command.Stderr = &output, &errs
		var exit *exec.ExitError
		if err := command.Run(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
			t.Errorf("%s: %v", variable, err)
		}
		name, _, _ := strings.Cut(variable, "=")
		if strings.Count(errs.String(), "\n") != 1 || !strings.HasPrefix(errs.String(), name+"=") || output.Len() > 0 {
			t.Errorf("%s: %s", variable, errs.String())
		}
	}
}
