// The streaming speech-to-text gateway on net/http and github.com/coder/websocket.
package main

import (
	"fmt"
	"os"

	"gonethttp/common/serve"
	"gonethttp/internal/config"
	"gonethttp/internal/gateway"
)

const exitBadConfig = 2

func main() {
	settings, err := config.Load(os.LookupEnv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitBadConfig)
	}
	if err := run(settings); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(settings *config.Config) error {
	sessions := gateway.New(settings)
	return serve.Run(&serve.Options{
		Gateway:       "go-nethttp",
		Port:          settings.Port,
		WorkerThreads: settings.WorkerThreads,
		Handler:       sessions,
		Drain:         sessions.Drain,
		// What is in flight gets four fifths of the time, so that a session that gives up can still say so; a twentieth
		// is kept for the exit itself.
		DrainSessions:    settings.DrainTimeout * 4 / 5,
		DrainAll:         settings.DrainTimeout * 19 / 20,
		ProfilingAddress: settings.ProfilingAddress,
	})
}
