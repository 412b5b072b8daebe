// The streaming speech-to-text gateway on net/http and github.com/coder/websocket.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof" // On http.DefaultServeMux, which only PROFILING_ADDRESS serves.
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"gonethttp/internal/config"
	"gonethttp/internal/gateway"
)

const (
	exitBadConfig = 2
	// headerTimeout is how long a client may take for its request; a session that is open has no such limit.
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
	// The backlog is the kernel's somaxconn, and TCP_NODELAY is set on what is accepted: both are Go's defaults.
	listener, err := net.Listen("tcp4", fmt.Sprintf(":%d", settings.Port))
	if err != nil {
		return err
	}
	fmt.Println(startLine(settings))

	sessions := gateway.New(settings)
	server := &http.Server{
		Handler:           sessions,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          log.New(os.Stderr, "net/http: ", 0),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if settings.ProfilingAddress != "" {
		go func() { log.Print(http.ListenAndServe(settings.ProfilingAddress, nil)) }()
	}
	select {
	case err := <-failed:
		return err
	case <-stopped.Done():
	}

	// What is in flight gets four fifths of the time, so that a session that gives up can still say so; a twentieth is
	// kept for the exit itself. HTTP goes on meanwhile, to answer 503.
	now := time.Now()
	patience, cancel := context.WithDeadline(context.Background(), now.Add(settings.DrainTimeout*19/20))
	defer cancel()
	sessions.Drain(patience, now.Add(settings.DrainTimeout*4/5))
	if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
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
		"gateway":        "go-nethttp",
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
