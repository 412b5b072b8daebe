// The voice gateway on net/http and github.com/coder/websocket.
package main

import (
	"fmt"
	"os"

	"gonethttp/common/serve"

	"gonethttpvoice/internal/config"
	"gonethttpvoice/internal/gateway"
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
		Gateway:       "go-nethttp-voice",
		Port:          settings.Port,
		WorkerThreads: settings.WorkerThreads,
		Handler:       sessions,
		Drain:         sessions.Drain,
		// A twentieth is kept for the close handshakes of those who had to give up.
		DrainSessions:    settings.DrainTimeout * 19 / 20,
		DrainAll:         settings.DrainTimeout,
		ProfilingAddress: settings.ProfilingAddress,
	})
}
