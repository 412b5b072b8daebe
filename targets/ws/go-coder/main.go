// A WebSocket echo on net/http and github.com/coder/websocket.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"gocoder/internal/config"
	"gocoder/internal/server"
)

const (
	exitBadConfig = 2
	// headerTimeout is how long a client may take for its request; a WebSocket that is open has no such limit.
	headerTimeout = 10 * time.Second
	idleTimeout   = 60 * time.Second
)

func main() {
	settings, err := config.Load(os.LookupEnv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitBadConfig)
	}
	runtime.GOMAXPROCS(settings.WorkerThreads)
	if err := run(settings); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until SIGTERM or SIGINT, then drains.
func run(settings *config.Config) error {
	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// The backlog is the kernel's somaxconn, TCP_NODELAY is set on what is accepted, and the soft limit of descriptors is
	// raised to the hard one: all are Go's defaults.
	listener, err := net.Listen("tcp4", fmt.Sprintf(":%d", settings.Port))
	if err != nil {
		return err
	}
	fmt.Println(startLine(settings))

	sockets := server.New(settings)
	httpServer := &http.Server{
		Handler:           sockets,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          log.New(os.Stderr, "net/http: ", 0),
	}
	failed := make(chan error, 1)
	go func() { failed <- httpServer.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-stopped.Done():
	}

	// Closes the listener, and what still speaks HTTP; WebSockets are no longer net/http's.
	if err := httpServer.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	// A twentieth is kept for the exit itself.
	patience, cancel := context.WithTimeout(context.Background(), settings.DrainTimeout*19/20)
	defer cancel()
	sockets.Drain(patience)
	return nil
}

// startLine names the versions of what the program is made of, as found in it.
func startLine(settings *config.Config) string {
	libraries := map[string]string{}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			libraries[module.Path] = module.Version
		}
	}
	line, err := json.Marshal(map[string]any{
		"event":          "start",
		"target":         "go-coder",
		"runtime":        strings.Fields(runtime.Version())[0],
		"libraries":      libraries,
		"port":           settings.Port,
		"worker_threads": settings.WorkerThreads,
	})
	if err != nil {
		panic(err)
	}
	return string(line)
}
