// The streaming speech-to-text gateway on net/http and github.com/coder/websocket.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"gonethttpplain/internal/config"
	"gonethttpplain/internal/gateway"
)

// headerTimeout is how long a client may take for its request; an open session has no such limit.
const headerTimeout = 10 * time.Second

func main() {
	settings, err := config.Load(os.LookupEnv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := run(settings); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until SIGTERM or SIGINT, then drains.
func run(settings *config.Config) error {
	runtime.GOMAXPROCS(settings.WorkerThreads)
	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := json.NewEncoder(os.Stdout).Encode(versions()); err != nil {
		return err
	}
	sessions := gateway.New(settings)
	address := fmt.Sprintf("0.0.0.0:%d", settings.Port)
	server := &http.Server{Addr: address, Handler: sessions, ReadHeaderTimeout: headerTimeout}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case err := <-failed:
		return err
	case <-stopped.Done():
	}

	// HTTP goes on during the drain, to answer 503.
	patience, cancel := context.WithTimeout(context.Background(), settings.DrainTimeout)
	defer cancel()
	sessions.Drain(patience)
	return server.Close()
}

// versions are those of what the program is made of, as found in it.
func versions() map[string]any {
	libraries := map[string]string{}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			libraries[module.Path] = module.Version
		}
	}
	return map[string]any{"runtime": runtime.Version(), "libraries": libraries}
}
