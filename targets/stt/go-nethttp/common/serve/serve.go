// Package serve is the life of a gateway's process: the start line, the listener, and the drain at SIGTERM or SIGINT.
// The gateways of both workloads use it.
package serve

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
)

const (
	// headerTimeout is how long a client may take for its request; a session that is open has no such limit.
	headerTimeout = 10 * time.Second
	idleTimeout   = 60 * time.Second
)

// Options says what to serve and how it ends.
type Options struct {
	// Gateway is the name in the start line.
	Gateway       string
	Port          uint16
	WorkerThreads int
	Handler       http.Handler
	// Drain returns when the last session is closed, or ctx ends. Sessions give up at until.
	Drain func(ctx context.Context, until time.Time)
	// DrainSessions is how long sessions may take once draining begins, DrainAll how long Drain may.
	DrainSessions, DrainAll time.Duration
	// ProfilingAddress is where net/http/pprof listens; nowhere if it is empty.
	ProfilingAddress string
}

// Run serves until SIGTERM or SIGINT, then drains.
func Run(o *Options) error {
	runtime.GOMAXPROCS(o.WorkerThreads)
	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// The backlog is the kernel's somaxconn, and TCP_NODELAY is set on what is accepted: both are Go's defaults.
	listener, err := net.Listen("tcp4", fmt.Sprintf(":%d", o.Port))
	if err != nil {
		return err
	}
	fmt.Println(startLine(o))

	server := &http.Server{
		Handler:           o.Handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          log.New(os.Stderr, "net/http: ", 0),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if o.ProfilingAddress != "" {
		go func() { log.Print(http.ListenAndServe(o.ProfilingAddress, nil)) }()
	}
	select {
	case err := <-failed:
		return err
	case <-stopped.Done():
	}

	// HTTP goes on meanwhile, to answer 503.
	now := time.Now()
	patience, cancel := context.WithDeadline(context.Background(), now.Add(o.DrainAll))
	defer cancel()
	o.Drain(patience, now.Add(o.DrainSessions))
	if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// startLine names the versions of what the program is made of, as found in it.
func startLine(o *Options) string {
	libraries := map[string]string{}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			// A module from a folder beside this one has no version.
			if module.Replace == nil {
				libraries[module.Path] = module.Version
			}
		}
	}
	line, err := json.Marshal(map[string]any{
		"event":          "start",
		"gateway":        o.Gateway,
		"runtime":        strings.Fields(runtime.Version())[0],
		"libraries":      libraries,
		"port":           o.Port,
		"worker_threads": o.WorkerThreads,
	})
	if err != nil {
		panic(err)
	}
	return string(line)
}
