// An HTTP server on net/http: HTTP/1.1, and HTTP/2 with prior knowledge at the same port.
package main

import (
	"context"
	"encoding/json"
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

	"gohttp/internal/config"
	"gohttp/internal/server"
)

const (
	exitBadConfig = 2
	// readTimeout is how long a client may take for a request. On a new connection net/http counts from its beginning: so
	// it is also how long that may be idle, and the contract allows no shorter time.
	readTimeout = 60 * time.Second
	// idleTimeout is how long a connection may wait for its next request.
	idleTimeout = 120 * time.Second
	// headBytesMax is the longest head; net/http allows 4 KiB more.
	headBytesMax = 16 << 10
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

	site := server.New(settings)
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	httpServer := &http.Server{
		Handler:        site,
		ConnState:      site.ConnState,
		Protocols:      &protocols,
		ReadTimeout:    readTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: headBytesMax,
		ErrorLog:       log.New(os.Stderr, "net/http: ", 0),
	}
	failed := make(chan error, 1)
	go func() { failed <- httpServer.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-stopped.Done():
	}

	// A twentieth is kept for the exit itself.
	patience, cancel := context.WithTimeout(context.Background(), settings.DrainTimeout*19/20)
	defer cancel()
	// Out of time or done: the process ends either way.
	_ = httpServer.Shutdown(patience)
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
		"target":         "go-nethttp-http",
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
