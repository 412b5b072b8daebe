package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"gocoder/internal/config"
)

func TestStartLine(t *testing.T) {
	var line struct {
		Runtime string `json:"runtime"`
		Port    int    `json:"port"`
	}
	text := startLine(&config.Config{Port: 3000, WorkerThreads: 2})
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		t.Fatal(err)
	}
	if line.Port != 3000 || line.Runtime == "" {
		t.Errorf("got %s", text)
	}
}

// TestRun sends this process the signal that ends the program.
func TestRun(t *testing.T) {
	settings := &config.Config{
		Port: freePort(t), WorkerThreads: 1, DrainTimeout: 3 * time.Second, MessageBytesMax: 1024,
	}
	ended := make(chan error, 1)
	go func() { ended <- run(settings) }()
	address := fmt.Sprintf("127.0.0.1:%d", settings.Port)
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		response, err := http.Get("http://" + address + "/healthz")
		if err == nil {
			_ = response.Body.Close()
			break
		}
		if time.Since(begun) > 10*time.Second {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	socket, _, err := websocket.Dial(ctx, "ws://"+address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	if err := socket.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, payload, err := socket.Read(ctx); err != nil || string(payload) != "hello" {
		t.Fatalf("got %q, %v", payload, err)
	}

	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, _, err := socket.Read(ctx); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("got %v instead of a close", err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(2 * time.Second):
		t.Error("it did not end, though the client has closed")
	}
	if socket, err := net.Dial("tcp", address); err == nil {
		_ = socket.Close()
		t.Error("a connection is accepted")
	}
}

func freePort(t *testing.T) uint16 {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return uint16(listener.Addr().(*net.TCPAddr).Port)
}
